package node_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
)

func TestADrainedNodeLeavesNoGap(t *testing.T) {
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
	if _, err := first.Remove(ctx, node.Owner(), node.RemoveRequest{Node: "nobody"}); !errors.Is(err, node.ErrNotFound) {
		t.Errorf("removing an unknown node gives %v", err)
	}
	first.Wait("the drain", func() error {
		d, err := first.Drain(ctx, node.Owner(), node.DrainRequest{Node: leaving})
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
