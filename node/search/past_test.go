package search

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/shard/query"
)

// With many repositories no mirror is asked for a revision: the answer says how many repositories
// lack it in the index.
func TestRevisionGap_countsRepositoriesThatLackIt(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"c": {"type": "git", "url": "file:///srv/*"}}}`, 1)
	w.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: "c", Urgent: true})
	w.Do(&catalog.GrantJob{Kind: catalog.JobSync, Subject: "c", Node: "n1", Epoch: clustertest.Epoch})
	page := &catalog.SyncPage{Connection: "c", Fence: w.View().Job(catalog.JobSync, "c").Fence}
	for i := range pastRepos + 3 {
		page.Repos = append(page.Repos, catalog.ListedRepo{Name: fmt.Sprint("r", i)})
	}
	w.Do(page)

	// The first repository has a tag that the others lack. The last one has no index.
	all := roaring.New()
	for i, listed := range page.Repos {
		id := w.View().RepoByName(listed.Name).ID
		all.Add(id)
		if i == len(page.Repos)-1 {
			break
		}
		revisions := []catalog.Revision{{Name: "HEAD", Commit: strings.Repeat("0a", 20)}}
		if i == 0 {
			revisions = append(revisions, catalog.Revision{Name: "refs/tags/v1", Commit: strings.Repeat("0b", 20)})
		}
		w.Do(&catalog.GrantJob{Kind: catalog.JobIndex, Subject: catalog.RepoSubject(id), Node: "n1", Epoch: clustertest.Epoch})
		w.Do(&catalog.FinishIndex{
			Repo: id, Fence: w.View().Job(catalog.JobIndex, catalog.RepoSubject(id)).Fence, InputKey: "k", Holder: "n1", Revisions: revisions,
			Shards: []catalog.ShardRef{{ID: strings.Repeat("ab", 32), Docs: 1, Bytes: 1}},
		})
	}

	for rev, want := range map[string]coverage.Gap{
		"v1":   {Kind: coverage.Revision, Ref: "v1", Count: pastRepos + 1, Of: pastRepos + 2},
		"nope": {Kind: coverage.NoRevision, Ref: "nope", Count: pastRepos + 2, Of: pastRepos + 2},
		"HEAD": {},
	} {
		parsed, err := query.Parse("x rev:"+rev, query.Options{})
		if err != nil {
			t.Fatal(err)
		}
		q := &question{visible: &account.Repos{View: w.View(), Set: all}, repos: all, tree: parsed.Q}
		if err := q.searchGit(t.Context(), catalog.Viewer{}, nil, time.Time{}); err != nil {
			t.Fatal(err)
		}
		c := (&answer{q: q}).coverage(false)
		if got := c.Gap(want.Kind); fmt.Sprint(got) != fmt.Sprint(want) || c.Exhaustive() != (want.Count == 0) {
			t.Errorf("rev:%s: the gap is %+v, want %+v", rev, got, want)
		}
	}
}
