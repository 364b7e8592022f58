package hold

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// What holding data takes of the agreement of nodes: each part names those of
// these that it uses. Their methods are safe for concurrent use.
type (
	// Catalog is what the cluster has agreed on, as far as this node knows.
	Catalog interface {
		View() *catalog.View
		// Ready says why this node should not act on it yet.
		Ready() error
	}

	// Member is this node as one of the cluster, in whose name it proposes.
	Member interface {
		Self() string
		Epoch() uint64
		Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error)
	}

	// Peers are the other nodes.
	Peers interface {
		// Alive reports whether a node can be reached now.
		Alive(node string) bool
	}
)

// Node is a member of the cluster as planners see it.
type Node struct {
	ID     string
	Epoch  uint64
	Zone   string
	Weight float64
	Alive  bool
	Silent time.Duration // for how long it has not been reached, at Timing 1
	// Replaced is set where a member that joined later is reached at its address:
	// its disk was emptied, or another machine stands in its place.
	Replaced bool
	Closed   bool // draining: takes no job and no data
	Disk     int  // percent of its volume in use
}

// DiskFull is how full a volume may be, in percent, before its node is given
// no more data.
const DiskFull = 85

// DiskStop is how full a volume may be, in percent, before nothing more is
// copied to it or built on it.
const DiskStop = 95

// LostAfter is how long a silent node keeps its jobs. Then what it alone has is
// made anew.
const LostAfter = 25 * time.Second

// When others take the places of a silent node. One that was replaced is only
// waited for a moment, since two nodes may be changing addresses.
const (
	deadAfter     = 5 * time.Minute
	replacedAfter = 5 * time.Second // it loses its jobs then, too
)

// Lost reports whether a node will hardly be back in time to end its jobs.
func (n Node) Lost() bool { return n.silent(LostAfter) }

// Gone reports whether a node is not expected back: others take its places.
func (n Node) Gone() bool { return n.silent(deadAfter) }

func (n Node) silent(after time.Duration) bool {
	return !n.Alive && (n.Silent >= after || n.Replaced && n.Silent >= replacedAfter)
}
