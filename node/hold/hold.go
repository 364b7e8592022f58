package hold

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Cluster is what holding data takes of the agreement of nodes; *cluster.Cluster is one.
// Its methods are safe for concurrent use.
type Cluster interface {
	View() *catalog.View
	Changed() <-chan struct{} // closed when there is a newer View
	Age() time.Duration       // how old View may be
	Ready() error             // why this node should not act on View yet

	Self() string
	Epoch() uint64
	Alive(node string) bool // whether a node can be reached now
	Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error)
}

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
