package node

import (
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
)

// A repository whose index nobody has is not counted as indexed: after a
// restored catalog, who waits for the index must not be told that it is there.
func TestAnIndexThatNobodyHasIsNoIndex(t *testing.T) {
	t.Parallel()
	state, index, now := catalog.New(), uint64(0), time.Unix(1_700_000_000, 0)
	do := func(cmd catalog.Command) uint64 {
		t.Helper()
		index++
		r := state.Apply(catalog.Entry{Index: index, At: now, Node: "n1", Commands: []catalog.Command{cmd}})[0]
		if r.Err != nil {
			t.Fatalf("%T: %v", cmd, r.Err)
		}
		return r.ID
	}
	grant := func(kind catalog.JobKind, subject string) uint64 {
		t.Helper()
		return do(&catalog.GrantJob{Kind: kind, Subject: subject, Node: "n1", Epoch: 1 << 24, Deadline: now.Add(time.Hour)})
	}
	raw := []byte(`{"connections": {"a": {"type": "git", "url": "https://localhost/r"}}}`)
	file, err := config.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	do(&catalog.InitCluster{ID: "c"})
	do(catalog.NewSetConfig(raw, file))
	do(&catalog.PutMember{Member: catalog.Member{ID: "n1", Epoch: 1 << 24, Weight: 100, Zone: "z", Addr: "a"}})
	fence := grant(catalog.JobSync, "a")
	do(&catalog.SyncPage{Connection: "a", Fence: fence, Repos: []catalog.ListedRepo{{Name: "r"}}})
	do(&catalog.FinishSync{Connection: "a", Fence: fence, Hash: state.View().Connection("a").Hash, Complete: true, Listed: 1})
	repo := state.View().RepoByName("r").ID
	fence = grant(catalog.JobIndex, catalog.RepoSubject(repo))
	do(&catalog.FinishIndex{Repo: repo, Fence: fence, Holder: "n1", Shards: []catalog.ShardRef{{ID: strings.Repeat("ab", 32)}},
		Revisions: []catalog.Revision{{Name: "HEAD", Commit: strings.Repeat("cd", 20)}}})
	if got, want := countRepos(state.View(), nil), (RepoCounts{Total: 1, Indexed: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	state.Refound("d", "")
	if got, want := countRepos(state.View(), nil), (RepoCounts{Total: 1}); got != want {
		t.Errorf("after a restore: got %+v, want %+v", got, want)
	}
}
