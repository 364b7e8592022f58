package node_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// What is searched much more than the rest gets a copy on a third node, which
// then answers too, and loses it when the rush is over.
func TestHotDataGetsAnotherCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 6 {
		nodetest.NewRepo(t, filepath.Join(dir, fmt.Sprintf("r%d", i)), map[string]string{"a.txt": fmt.Sprintf("narwhal %d\n", i)})
	}
	// With the times of a network: searches without a pause take the processors from
	// the leader too, and data that is cold stays so only while one leads on.
	f := nodetest.StartFleet(t, 3, nodetest.Config{File: local(dir), Edit: func(o *node.Options) { o.HeatWindow, o.Timing = 100*time.Millisecond, 1 }})
	first := f.Nodes[0]
	first.WaitIndexed(6)
	copies := func(want int) func() error {
		return func() error {
			view := first.View()
			repo := view.RepoByName("local/r3")
			holders := view.Holders(catalog.ShardKey(repo.Shards[0].ID))
			if len(holders) != want || first.Status().Placement.Hot != want-2 {
				return fmt.Errorf("it is on %q, %+v", holders, first.Status().Placement)
			}
			return nil
		}
	}
	first.Wait("two copies", copies(2))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, n := range f.Nodes {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					n.Find("repo:^local/r3$ narwhal")
				}
			}
		})
	}
	first.Wait("a third copy", copies(3))
	close(stop)
	wg.Wait()
	for _, n := range f.Nodes {
		complete(t, n, "narwhal")
	}
	first.Wait("two copies again", copies(2))
	for _, n := range f.Nodes {
		complete(t, n, "narwhal")
	}
}
