package node_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/search"
)

// If another node is overloaded, the asked node returns an overload too. Nothing is reported as
// missing or failed, and the caller learns when to retry.
func TestOverload_ofAnotherNodeIsReturnedAsOverload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 6 {
		nodetest.NewRepo(t, filepath.Join(dir, fmt.Sprintf("r%d", i)), map[string]string{"a.txt": "narwhal\n"})
	}
	f := nodetest.StartFleet(t, 2, nodetest.Config{File: local(dir), Edit: func(o *node.Options) { o.Replicas = 1 }})
	asked, busy := f.Nodes[0], f.Nodes[1]
	asked.WaitIndexed(6)
	asked.Wait("data on each node alone", func() error {
		var holders []string
		view := asked.View()
		for repo := range view.Repos() {
			for _, s := range repo.Shards {
				if on := view.Holders(catalog.ShardKey(s.ID)); len(on) == 1 {
					holders = append(holders, on[0])
				}
			}
		}
		if slices.Contains(holders, asked.ID()) && slices.Contains(holders, busy.ID()) {
			return nil
		}
		return fmt.Errorf("single copies are on %q", holders)
	})
	complete(t, asked, "narwhal")

	free := busy.Fill()
	_, err := asked.Node.Search.Search(t.Context(), catalog.Operator(), search.Request{Query: "narwhal"})
	if e := (*call.Error)(nil); !errors.As(err, &e) || !errors.Is(err, call.ErrOverloaded) || e.RetryAfter < time.Second {
		t.Errorf("got %#v, want an overload with a time to ask again", err)
	}

	free()
	complete(t, asked, "narwhal")
}
