package hold

import (
	"fmt"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
)

const oneConnection = `{"connections": {"a": {"type": "git", "url": "file:///x"}}}`

// named returns n names of repositories.
func named(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("r%03d", i+1))
	}
	return names
}

// nodesOf returns the members of a world as planners see them, all with equal weight.
func nodesOf(w *clustertest.World) []Node {
	var nodes []Node
	for _, m := range w.Node("n1").Members() {
		nodes = append(nodes, Node{ID: m.ID, Epoch: m.Epoch, Zone: m.Zone, Weight: 1, Alive: m.Alive, Closed: m.State != catalog.MemberAlive, Disk: int(m.Load.DiskUsed)})
	}
	return nodes
}

// placeAll places the repositories, applies the plan, and counts the repositories of each member.
func placeAll(w *clustertest.World, nodes []Node, balance bool) map[string]int {
	w.Do(Place(Placement{View: w.View(), Nodes: nodes, Copies: 2, Balance: balance})...)
	view, count := w.View(), map[string]int{}
	for repo := range view.Repos() {
		for _, id := range RepoTargets(view, repo.ID) {
			count[id]++
		}
	}
	return count
}

// When a cluster starts, its members join within moments. By then the first members have
// everything, and almost nothing is indexed yet.
func TestPlacement_spreadsRepositoriesWithoutAnIndex(t *testing.T) {
	t.Parallel()
	const repos = 100
	w := clustertest.New(t, oneConnection, 2)
	w.Repos("a", named(repos)...)
	placeAll(w, nodesOf(w), true)
	for i := 1; i <= 3; i++ {
		w.Index(catalog.RepoID(i), "n1", catalog.ShardRef{ID: fmt.Sprintf("%064x", i), Text: 4000, Bytes: 2000})
	}
	w.Join("n3")
	w.Join("n4")
	w.Join("n5")

	count := placeAll(w, nodesOf(w), true)
	for _, n := range nodesOf(w) {
		if got, fair := count[n.ID], 2*repos/5; got < fair*85/100 || got > fair*115/100 {
			t.Errorf("%s is to have %d repositories, a fair share is %d; all: %v", n.ID, got, fair, count)
		}
	}
	for repo := range w.View().Repos() {
		if ids := RepoTargets(w.View(), repo.ID); len(slices.Compact(slices.Sorted(slices.Values(ids)))) != 2 {
			t.Errorf("repository %d is to be on %q", repo.ID, ids)
		}
	}
}
