package node_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// An owner sees where all data is, what moves, and what a node's loss would cost.
func TestPlacementReport_showsWhereDataIsAndWhatALossWouldCost(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{"one", "two", "three"} {
		nodetest.NewRepo(t, filepath.Join(root, name), map[string]string{"a.txt": name})
	}
	fleet := nodetest.StartFleet(t, 3, nodetest.Config{File: fmt.Sprintf(`{"connections": {"main": {"type": "git", "url": "file://%s/*"}}}`, root)})
	n := fleet.Nodes[0]
	n.WaitIndexed(3)
	ask := func(req node.PlacementRequest) *node.PlacementResponse {
		t.Helper()
		r, err := n.Placement(t.Context(), account.Operator(), req)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}

	// With two copies of everything in place nothing moves and nothing can be lost.
	n.Wait("all copies", func() error {
		r := ask(node.PlacementRequest{})
		if r.Replicas != 2 || r.Tolerates.Searches != 1 || r.UnderReplicated != 0 || len(r.Nodes) != 3 || r.Total == 0 || len(r.Units) != r.Total {
			return fmt.Errorf("%+v", r)
		}
		repos := 0
		for _, u := range r.Units {
			repos += u.Repos
			targets := slices.Sorted(slices.Values(u.Targets))
			if u.Kind != "group" || u.Live != 2 || !slices.Equal(u.Holders, targets) {
				return fmt.Errorf("%+v", u)
			}
		}
		for _, x := range r.Nodes {
			if x.Health != "alive" || x.Coming+x.Going+x.Loses.Repos > 0 {
				return fmt.Errorf("%+v", x)
			}
		}
		if repos != 3 {
			return fmt.Errorf("%d repositories in %+v", repos, r.Units)
		}
		return nil
	})

	// The same page by page.
	var units []uint64
	all := ask(node.PlacementRequest{})
	for page := range all.Total {
		for _, u := range ask(node.PlacementRequest{Page: page + 1, PerPage: 1}).Units {
			units = append(units, u.Unit)
		}
	}
	if len(units) != all.Total || !slices.IsSorted(units) || len(ask(node.PlacementRequest{Page: 1 << 30}).Units) != 0 {
		t.Errorf("units %v of %d", units, all.Total)
	}
	if _, err := n.Placement(t.Context(), account.Operator(), node.PlacementRequest{PerPage: 101}); !errors.Is(err, call.ErrInvalid) {
		t.Errorf("too many of a page: %v", err)
	}
}

// While a node is down, the others have the only copies of its data.
func TestPlacementReport_namesOnlyCopiesWhileANodeIsDown(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(root, "one"), map[string]string{"a.txt": "a"})
	n := nodetest.Start(t, nodetest.Config{File: fmt.Sprintf(`{"connections": {"main": {"type": "git", "url": "file://%s/*"}}}`, root)})
	n.WaitIndexed(1)
	n.Wait("the only copy", func() error {
		r, err := n.Placement(t.Context(), account.Operator(), node.PlacementRequest{})
		if err != nil || len(r.Nodes) != 1 || r.Nodes[0].Loses.Repos != 1 || len(r.Nodes[0].Loses.Names) != 1 || r.Nodes[0].Loses.Names[0] != "local/one" || r.Tolerates.Searches != 0 {
			return fmt.Errorf("%+v, %v", r, err)
		}
		return nil
	})
}
