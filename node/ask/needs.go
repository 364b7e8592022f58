package ask

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/symbols"
)

// Catalog is the part of *cluster.Cluster that reads and changes the catalog. Its methods are
// safe for concurrent use.
type Catalog interface {
	// View returns the catalog as this node has applied it.
	View() *catalog.View
	// Changed returns a channel that closes when there is a newer view.
	Changed() <-chan struct{}
	// Sync brings this node's view up to the leader's.
	Sync(ctx context.Context) (index uint64, err error)
	// Propose applies all commands on the cluster, or none.
	Propose(ctx context.Context, cmds ...catalog.Command) (index uint64, err error)
}

// Nodes is the part of *cluster.Cluster that knows the members. Its methods are safe for
// concurrent use.
type Nodes interface {
	// Self returns the id of this node.
	Self() string
	// Alive reports whether gossip can reach a node.
	Alive(node string) bool
	// Leading reports whether this node leads the cluster.
	Leading() bool
}

// Sources are the operations that the tools of a turn use.
type Sources struct {
	Search symbols.Searcher
	Browse browse.Reader
}

// pace multiplies times that depend on the network.
type pace float64

func (p pace) scale(d time.Duration) time.Duration { return time.Duration(float64(d) * float64(p)) }
