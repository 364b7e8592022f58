package job

import (
	"fmt"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// place places, applies the plan, and counts the repositories of each member.
func (w *world) place(balance bool) map[string]int {
	w.t.Helper()
	w.do(Place(Placement{View: w.state.View(), Nodes: w.nodes, Copies: 2, Balance: balance})...)
	view, count := w.state.View(), map[string]int{}
	for repo := range view.Repos() {
		for _, id := range targetsOf(view, groupOf(repo.ID)) {
			count[id]++
		}
	}
	return count
}

// A cluster forms within moments: when all members are there, the first have
// been given everything, and next to nothing of it is indexed yet.
func TestWhatIsNotIndexedYetIsSpreadToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"connections": {"a": {"type": "git", "url": "file:///x"}}}`, 2)
	w.plan()
	const repos = 100
	fence := w.state.View().Job(catalog.JobSync, "a").Fence
	page := &catalog.SyncPage{Connection: "a", Fence: fence}
	for i := range repos {
		page.Repos = append(page.Repos, catalog.ListedRepo{Name: fmt.Sprintf("r%02d", i)})
	}
	w.do(page, &catalog.FinishSync{Connection: "a", Fence: fence, Hash: w.state.View().Connection("a").Hash, Complete: true, Listed: repos})
	w.place(true)
	for i := 1; i <= 3; i++ {
		w.finish(catalog.RepoID(i), catalog.ShardRef{ID: fmt.Sprintf("%064x", i), Text: 4000, Bytes: 2000})
	}
	for i := range 3 {
		id := fmt.Sprintf("n%d", i+3)
		w.do(&catalog.PutMember{Member: catalog.Member{ID: id, Epoch: epoch, Weight: 100, Zone: "z", Addr: "a"}})
		w.nodes = append(w.nodes, Node{ID: id, Epoch: epoch, Zone: "z", Weight: 1, Alive: true})
	}
	count := w.place(true)
	for _, n := range w.nodes {
		if got, fair := count[n.ID], 2*repos/5; got < fair*85/100 || got > fair*115/100 {
			t.Errorf("%s is to have %d repositories, a fair share is %d; all: %v", n.ID, got, fair, count)
		}
	}
	for repo := range w.state.View().Repos() {
		if ids := targetsOf(w.state.View(), groupOf(repo.ID)); len(slices.Compact(slices.Sorted(slices.Values(ids)))) != 2 {
			t.Errorf("repository %d is to be on %q", repo.ID, ids)
		}
	}
}
