package node_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
)

func TestDrain_keepsAllRepositoriesSearchable(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	var all []string
	for i := range 5 {
		nodetest.NewRepo(t, filepath.Join(dir, fmt.Sprintf("r%d", i)), map[string]string{"a.txt": "beluga\n"})
		all = append(all, fmt.Sprintf("local/r%d:a.txt", i))
	}
	f := nodetest.StartFleet(t, 3, nodetest.Config{File: local(dir)})
	first := f.Nodes[0]
	first.WaitIndexed(5)
	first.Wait("every copy", func() error {
		if s := first.Status(); s.Placement.UnderReplicated > 0 {
			return fmt.Errorf("%+v", s.Placement)
		}
		return nil
	})
	leaving := f.Nodes[2].ID()
	if _, err := first.Operate.Remove(ctx, account.Operator(), "nobody", false); !errors.Is(err, call.ErrNotFound) {
		t.Errorf("removing an unknown node gives %v", err)
	}
	first.Wait("the drain", func() error {
		d, err := first.Operate.Drain(ctx, account.Operator(), leaving)
		if err != nil {
			return err
		}
		got := first.Find("beluga")
		slices.Sort(got)
		if !slices.Equal(got, all) {
			t.Fatalf("while a node drains %q is found", got)
		}
		if !d.Done {
			return fmt.Errorf("%+v", d)
		}
		return nil
	})
	f.Nodes[2].Stop()
	first.Wait("the answer without the node", found(first, "beluga", all...))
	complete(t, first, "beluga")
}

// The last node that can hold the data cannot be drained, because nothing would serve it.
func TestDrain_isRefusedForTheLastNode(t *testing.T) {
	t.Parallel()
	ctx, by := context.Background(), account.Operator()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "beluga\n"})
	n := nodetest.Start(t, nodetest.Config{File: local(dir)})
	n.WaitIndexed(1)

	_, err := n.Operate.Drain(ctx, by, n.ID())
	if !errors.Is(err, call.ErrUnable) || !strings.Contains(err.Error(), "it is the only node") || !strings.Contains(err.Error(), "just stop it") {
		t.Errorf("draining the only node gives: %v", err)
	}
	if !n.Ready().Ready {
		t.Errorf("after the refusal it is not ready: %q", n.Ready().Reasons)
	}
	if _, err := n.Operate.Undrain(ctx, by, n.ID()); err != nil {
		t.Errorf("undraining an ordinary node: %v", err)
	}
}

// Two of three nodes are drained, and the third has all data and cannot be drained. Then both are
// taken back and get data again.
func TestDrain_ofTwoOfThreeNodesCanBeUndone(t *testing.T) {
	t.Parallel()
	ctx, by := context.Background(), account.Operator()
	const repos = 5
	dir := t.TempDir()
	var all []string
	for i := range repos {
		nodetest.NewRepo(t, filepath.Join(dir, fmt.Sprintf("r%d", i)), map[string]string{"a.txt": "nautilus\n"})
		all = append(all, fmt.Sprintf("local/r%d:a.txt", i))
	}
	f := nodetest.StartFleet(t, 3, nodetest.Config{File: unpolled(dir)})
	first := f.Nodes[0]
	for _, n := range f.Nodes {
		n.Wait("everything to be there twice", func() error { return settled(n, 3, repos) })
	}

	for i, leaving := range f.Nodes[1:] {
		first.Wait("the drain", func() error {
			whole(t, f.Nodes, all)
			d, err := first.Operate.Drain(ctx, by, leaving.ID()[:8])
			if err != nil {
				return err
			}
			if d.Node != leaving.ID() {
				t.Errorf("the answer to drain %d is %+v", i+1, d)
			}
			if leaving.Ready().Ready {
				t.Error("a node that is drained says that it is ready")
			}

			// A member that gossip briefly reports as dead takes no data.
			if !d.Done || (d.Warning != "") != (i == 1) {
				return fmt.Errorf("%+v", d)
			}
			return nil
		})
	}
	if _, err := first.Operate.Drain(ctx, by, first.ID()); !errors.Is(err, call.ErrUnable) || !strings.Contains(err.Error(), f.Nodes[1].ID()+" is being drained") {
		t.Errorf("draining the third gives: %v", err)
	}
	for _, m := range first.Status().Members {
		if m.Draining != (m.ID != first.ID()) || m.Drained != m.Draining || m.Left != 0 {
			t.Errorf("status of a member: %+v", m)
		}
	}

	for _, back := range f.Nodes[1:] {
		if _, err := first.Operate.Undrain(ctx, by, back.ID()); err != nil {
			t.Fatal(err)
		}
		if r := back.Ready(); !r.Ready {
			t.Errorf("a node that is taken back is not ready: %q", r.Reasons)
		}
	}
	first.Wait("data on those that came back", func() error {
		whole(t, f.Nodes, all)
		s := first.Status()
		for _, m := range s.Members {
			if m.Bytes == 0 || s.Placement.UnderReplicated > 0 {
				return fmt.Errorf("%+v of %+v", m, s.Placement)
			}
		}
		return nil
	})
}

func TestNodeLookup_acceptsAUniquePrefixOfItsID(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Config{})
	addr := ""
	for _, m := range n.Status().Members {
		addr = m.Address
	}
	for _, c := range []struct {
		name string
		want error
	}{
		{n.ID(), nil}, {n.ID()[:4], nil}, {addr, nil},
		{n.ID()[:3], call.ErrNotFound}, {"nobody", call.ErrNotFound}, {"", call.ErrNotFound},
	} {
		_, err := n.Operate.Undrain(context.Background(), account.Operator(), c.name)
		if !errors.Is(err, c.want) {
			t.Errorf("%q: %v, want %v", c.name, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), n.ID()) {
			t.Errorf("%q: the refusal does not say which nodes there are: %v", c.name, err)
		}
	}
}
