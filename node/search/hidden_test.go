package search

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// agreed is a cluster in which all nodes have the same catalog.
type agreed struct{ view *catalog.View }

func (a agreed) View() *catalog.View                 { return a.view }
func (a agreed) Await(context.Context, uint64) error { return nil }
func (a agreed) Outlived() error                     { return nil }

// A leaf that gets a repository which the viewer may not see searches nothing and reports the
// hidden repositories. So a bug of the root leaks nothing.
func TestSearchingNode_refusesHiddenRepositories(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"c": {"type": "git", "url": "file:///srv/*", "enforcePermissions": true}}}`, 1)
	w.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: "c", Urgent: true})
	w.Do(&catalog.GrantJob{Kind: catalog.JobSync, Subject: "c", Node: "n1", Epoch: clustertest.Epoch})
	fence := w.View().Job(catalog.JobSync, "c").Fence
	w.Do(&catalog.SyncPage{Connection: "c", Fence: fence, Repos: []catalog.ListedRepo{
		{Name: "open", RepoFacts: catalog.RepoFacts{Visibility: catalog.Public, Public: true}}, {Name: "secret"},
	}})
	id := func(name string) uint32 { return w.View().RepoByName(name).ID }

	set, err := shard.OpenSet(t.TempDir(), shard.SetOptions{Now: w.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	here := &behind{Node: w.Node("n1"), old: w.View()}
	l := newLeaves(Deps{Cluster: here, Gate: account.NewGate(agreed{w.View()}), Set: set, Light: call.NewLane("searches", 1, 1), Log: slog.New(slog.DiscardHandler)})
	ask := func(pass account.Pass, repos ...string) *leafResponse {
		t.Helper()
		req := &leafRequest{Pass: pass, Q: queryBox{&query.Text{Pattern: "x"}}, Matches: 1}
		for _, name := range repos {
			parts := []shard.Part{{Repo: id(name), Shard: shard.FileID{byte(id(name))}}}
			req.Groups = append(req.Groups, leafGroup{group: shard.Groups(parts)[0]})
		}
		out, err := l.search(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}

	guest := account.Pass{Viewer: catalog.Guest(), Index: w.View().Index()}
	if out := ask(guest, "open", "secret"); !slices.Equal(out.Hidden, []uint32{id("secret")}) || out.Index != w.View().Index() || out.Verdicts[0] != verdictNone {
		t.Errorf("a leaf that is asked for too much answers %+v", out)
	}
	if out := ask(guest, "open"); len(out.Hidden) > 0 || out.Verdicts[0] == verdictNone {
		t.Errorf("a leaf that is asked for an open repository answers %+v", out)
	}
	if out := ask(account.Pass{Viewer: catalog.Operator()}, "open", "secret"); len(out.Hidden) > 0 {
		t.Errorf("a leaf hides %v from the operator", out.Hidden)
	}
}

// The hash and the holders of a missing shard depend on other repositories in it. A viewer who may
// not see all of those learns only the names of visible repositories.
func TestMissingIndexFile_isReportedByVisibleRepositories(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"c": {"type": "git", "url": "file:///srv/*"}}}`, 1)
	w.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: "c", Urgent: true})
	w.Do(&catalog.GrantJob{Kind: catalog.JobSync, Subject: "c", Node: "n1", Epoch: clustertest.Epoch})
	w.Do(&catalog.SyncPage{Connection: "c", Fence: w.View().Job(catalog.JobSync, "c").Fence, Repos: []catalog.ListedRepo{{Name: "b"}, {Name: "a"}, {Name: "waits"}}})
	var parts []shard.Part
	for _, name := range []string{"a", "b"} {
		parts = append(parts, shard.Part{Repo: w.View().RepoByName(name).ID, Shard: shard.FileID{1}})
	}
	for blind, want := range map[bool]string{
		false: "[" + shard.FileID{1}.Name(shard.KindShard) + "] [a b waits] [n2]",
		true:  "[] [a b waits] []",
	} {
		r := &root{
			q: &question{visible: &account.Repos{View: w.View()}, hideCounts: blind},
			a: &answer{lost: []*target{{group: shard.Groups(parts)[0]}}, failed: []string{"n2"}, unindexed: []string{"waits"}},
		}
		r.a.q = r.q
		c := r.clusterInfo()
		if got := fmt.Sprint(c.ShardsMissing, c.ReposMissing, c.NodesFailed); got != want {
			t.Errorf("blind %t: %s is missing, want %s", blind, got, want)
		}
	}
}

// The weight of a word depends only on documents of the searched repositories, not on others in the
// same files.
func TestRankedSearch_rarityCountsOnlySearchedDocuments(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"c": {"type": "git", "url": "file:///srv/*"}}}`, 1)
	w.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: "c", Urgent: true})
	w.Do(&catalog.GrantJob{Kind: catalog.JobSync, Subject: "c", Node: "n1", Epoch: clustertest.Epoch})
	w.Do(&catalog.SyncPage{Connection: "c", Fence: w.View().Job(catalog.JobSync, "c").Fence, Repos: []catalog.ListedRepo{{Name: "seen"}, {Name: "hidden"}}})
	for i, name := range []string{"seen", "hidden"} {
		id := w.View().RepoByName(name).ID
		w.Do(&catalog.GrantJob{Kind: catalog.JobIndex, Subject: catalog.RepoSubject(id), Node: "n1", Epoch: clustertest.Epoch})
		w.Do(&catalog.FinishIndex{
			Repo: id, Fence: w.View().Job(catalog.JobIndex, catalog.RepoSubject(id)).Fence, InputKey: "k", Holder: "n1", Revisions: []catalog.Revision{{Name: "HEAD", Commit: strings.Repeat("0a", 20)}},
			Shards: []catalog.ShardRef{{ID: strings.Repeat("ab", 32), Docs: uint32(10 + 1000*i), Bytes: 1}},
		})
	}
	a := &answer{q: &question{visible: &account.Repos{View: w.View()}, repos: roaring.BitmapOf(w.View().RepoByName("seen").ID)}}
	if got := a.documents(); got != 10 {
		t.Errorf("%d documents, want 10", got)
	}
}
