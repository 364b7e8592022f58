package browse

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
)

// An order updated with changes equals a sorted one, also for an older view.
func TestRepositoryOrder_updatedWithChangesEqualsASort(t *testing.T) {
	t.Parallel()
	state, index, now := catalog.New(), uint64(0), time.Unix(1_700_000_000, 0)
	do := func(cmd catalog.Command) uint64 {
		index++
		return state.Apply(catalog.Entry{Index: index, At: now, Node: "n1", Commands: []catalog.Command{cmd}})[0].ID
	}
	raw := []byte(`{"connections": {"a": {"type": "git", "url": "https://localhost/r"}}}`)
	file, err := config.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	do(&catalog.InitCluster{ID: "c"})
	do(catalog.NewSetConfig(raw, file))
	do(&catalog.PutMember{Member: catalog.Member{ID: "n1", Epoch: 1 << 24, Weight: 100, Zone: "z", Addr: "a"}})
	fence := do(&catalog.GrantJob{Kind: catalog.JobSync, Subject: "a", Node: "n1", Epoch: 1 << 24, Deadline: now.Add(time.Hour)})

	r, o, before := rand.New(rand.NewPCG(1, 2)), new(orders), state.View()
	for step := range 300 {
		page := &catalog.SyncPage{Connection: "a", Fence: fence}
		for range 1 + r.IntN(6)*r.IntN(6) {
			n := r.IntN(80)
			page.Repos = append(page.Repos, catalog.ListedRepo{Name: fmt.Sprintf("r%d", (n*7+step/100)%90), RepoFacts: catalog.RepoFacts{
				ExternalID: fmt.Sprintf("github:github.com:%d", n), Stars: uint32(r.IntN(5)), PushedAt: now.Add(time.Duration(r.IntN(9)) * time.Hour)}})
		}
		do(page)

		view := state.View()
		for _, v := range []*catalog.View{view, before, view} {
			for _, sort := range RepoSorts() {
				req := &ReposRequest{Sort: sort, Desc: r.IntN(2) == 0}
				if got, want := o.sorted(v, req), slices.SortedFunc(v.Repos(), req.compareRepos); !slices.Equal(got, want) {
					t.Fatalf("step %d: by %s there are %d repositories in another order than sorting makes of %d", step, sort, len(got), len(want))
				}
			}
		}
		before = view
	}
	if state.View().RepoCount() < 50 {
		t.Fatalf("%d repositories are too few for this test", state.View().RepoCount())
	}
}
