package node_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/node/nodetest"
)

// One machine is lost, comes back empty, and is lost again, three times. Two of three nodes
// always run, so a repository always has a copy; each time the new node gets the lost copies.
func TestReplaceNode_threeTimesInARowLosesNothing(t *testing.T) {
	t.Parallel()
	const repos = 12
	dir := t.TempDir()
	var all []string
	for i := range repos {
		nodetest.NewRepo(t, filepath.Join(dir, fmt.Sprintf("r%02d", i)), map[string]string{"a.txt": "nautilus\n"})
		all = append(all, fmt.Sprintf("local/r%02d:a.txt", i))
	}
	f := nodetest.StartFleet(t, 3, nodetest.Config{File: unpolled(dir)})
	steady := f.Nodes[:2]
	copied := func() {
		t.Helper()
		for _, n := range steady {
			n.Wait("every copy", func() error { return settled(n, 3, repos) })
		}
		whole(t, steady, all)
	}
	copied()

	for range 3 {
		f.Crash(2)
		f.Nodes[2].RemoveAll("")
		whole(t, steady, all)
		f.Nodes[2].Launch()
		whole(t, steady, all)
		copied()
	}
	f.Crash(2)
	whole(t, steady, all)
}

// settled returns what a node still waits for, from its own catalog and gossip.
func settled(n *nodetest.Node, members, repos int) error {
	s := n.Status()
	alive := 0
	for _, m := range s.Members {
		if m.Health == "alive" {
			alive++
		}
	}
	if alive != members || s.Repos.Indexed != repos || s.Placement.UnderReplicated+s.Placement.Moves > 0 {
		return fmt.Errorf("%d members alive, placement %+v, repositories %+v", alive, s.Placement, s.Repos)
	}
	return nil
}

// whole checks that no answer lacks a file. A search may notice the loss of a node, and then
// reports that it is incomplete.
func whole(t *testing.T, nodes []*nodetest.Node, all []string) {
	t.Helper()
	for _, n := range nodes {
		answer := n.Results("nautilus")
		var got []string
		for _, file := range answer.Files {
			got = append(got, file.Repository+":"+file.Path)
		}
		slices.Sort(got)
		if !slices.Equal(got, all) {
			t.Fatalf("%s finds %q, want %q; exhaustive %t, %+v; %+v", n.ID(), got, all, answer.Coverage.Exhaustive(), answer.Cluster, n.Status().Placement)
		}
		if p := n.Status().Placement; p.NoLiveCopy > 0 {
			t.Fatalf("no live copy of %q", p.Missing)
		}
	}
}
