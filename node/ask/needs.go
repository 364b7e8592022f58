package ask

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/symbols"
)

// Catalog is what nodes have agreed on; *cluster.Cluster has it. Its methods are
// safe for concurrent use.
type Catalog interface {
	// View is the catalog as this node has applied it.
	View() *catalog.View
	// Changed is closed when there is a view newer than that of now.
	Changed() <-chan struct{}
	// Sync brings this node's view up to the leader's.
	Sync(ctx context.Context) (index uint64, err error)
	// Propose has nodes agree on commands, all of them or none.
	Propose(ctx context.Context, cmds ...catalog.Command) (index uint64, err error)
}

// Nodes is who is in the cluster; *cluster.Cluster has it. Its methods are safe
// for concurrent use.
type Nodes interface {
	// Self is the id of this node.
	Self() string
	// Alive tells whether a node can be reached, as gossip has it.
	Alive(node string) bool
	// Leading tells whether this node leads the cluster.
	Leading() bool
}

// Sources is where the tools of a turn look.
type Sources struct {
	Search symbols.Searcher
	Browse browse.Reader
}

// pace multiplies times that depend on the network.
type pace float64

func (p pace) of(d time.Duration) time.Duration { return time.Duration(float64(d) * float64(p)) }
