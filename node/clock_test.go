package node_test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/operate"
)

// Somebody sets the clocks of the machines back by an hour, after copies were
// made: the next ones do not wait for that hour to come again.
func TestCopiesGoOnWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	app := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "narwhal\n"})
	var skew atomic.Int64
	f := nodetest.StartFleet(t, 2, nodetest.Config{File: unpolled(dir), Edit: func(o *node.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }
	}})
	copied := func(commit string) {
		t.Helper()
		for _, n := range f.Nodes {
			n.Wait("both copies of "+commit, func() error {
				if got := n.Find(commit); len(got) != 1 {
					return fmt.Errorf("found %q", got)
				}
				if p := n.Status().Placement; p.UnderReplicated > 0 || p.Groups == 0 {
					return fmt.Errorf("%+v", p)
				}
				return nil
			})
		}
	}
	copied("narwhal")

	skew.Store(-int64(time.Hour))
	for i := range 3 {
		word := fmt.Sprintf("beluga%d", i)
		app.Commit(map[string]string{"b.txt": word + "\n"})
		if _, err := f.Nodes[0].Reindex(t.Context(), account.Operator(), operate.ReindexRequest{ID: 1}); err != nil {
			t.Fatal(err)
		}
		copied(word)
	}
}
