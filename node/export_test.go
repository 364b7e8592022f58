package node

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/hold"
)

// View returns the catalog as this node has applied it.
func (n *Node) View() *catalog.View { return n.cluster.View() }

// Changed is closed when View changes.
func (n *Node) Changed() <-chan struct{} { return n.cluster.Changed() }

// Announced reports whether the catalog has this start of the node.
func (n *Node) Announced() bool {
	m := n.cluster.View().Member(n.cluster.Self())
	return m != nil && m.Epoch == n.cluster.Epoch()
}

// Propose changes the catalog.
func (n *Node) Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error) {
	return n.cluster.Propose(ctx, cmds...)
}

// Await waits until this node has applied an index.
func (n *Node) Await(ctx context.Context, index uint64) error { return n.cluster.Await(ctx, index) }

// Fill uses up all places for searches on this node, and the queue, until free is called.
func (n *Node) Fill() (free func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for !n.lanes.light.Full() {
		wg.Go(func() {
			leave, _, err := n.lanes.light.Enter(ctx)
			if err == nil {
				<-ctx.Done()
				leave()
			}
		})
		runtime.Gosched()
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// KeepsEvents reports whether the node has begun to record events.
func (n *Node) KeepsEvents() bool { return n.Chronicle.Recording() }

// LiveFiles returns the index files of live generations.
func (n *Node) LiveFiles() []string {
	var files []string
	for repo := range n.cluster.View().Repos() {
		for _, p := range hold.Parts(repo) {
			files = append(files, p.Files()...)
		}
	}

	// Repositories in a pack share its files.
	slices.Sort(files)
	return slices.Compact(files)
}
