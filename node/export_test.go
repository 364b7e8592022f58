package node

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// SetStreamBatch lets parts of streams come from fewer shards. It must be
// called before the first stream.
func (n *Node) SetStreamBatch(shards int) { n.streamBatch = shards }

// View is the catalog as this node has applied it.
func (n *Node) View() *catalog.View { return n.cluster.View() }

// Changed is closed when View changes.
func (n *Node) Changed() <-chan struct{} { return n.cluster.Changed() }

// Announced tells whether the catalog knows of this start of the node.
func (n *Node) Announced() bool {
	m := n.cluster.View().Member(n.cluster.Self())
	return m != nil && m.Epoch == n.cluster.Epoch()
}

// Await waits until this node has applied an index.
func (n *Node) Await(ctx context.Context, index uint64) error { return n.cluster.Await(ctx, index) }
