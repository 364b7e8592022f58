package hold

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Cluster is what this package needs of the cluster; *cluster.Cluster implements it. Its methods
// are safe for concurrent use.
type Cluster interface {
	View() *catalog.View
	Changed() <-chan struct{} // closed when there is a newer View
	Age() time.Duration       // how old View may be
	Ready() error             // an error while this node should not act on View yet

	Self() string
	Epoch() uint64
	Alive(node string) bool // reports whether a node can be reached now
	Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error)
}

// Node is a member of the cluster as planners see it.
type Node struct {
	ID     string
	Epoch  uint64
	Zone   string
	Weight float64
	Alive  bool
	Silent time.Duration // time since it was last reached; in units of Timing 1
	// Replaced reports that a member that joined later has its address: its disk was emptied, or
	// another machine took its place.
	Replaced bool
	Closed   bool // draining: gets no job and no data
	Disk     int  // used percent of its volume
}

// DiskFull is the used percent of a volume from which on its node gets no more data.
const DiskFull = 85

// DiskStop is the used percent of a volume from which on nothing is copied to it or built on it.
const DiskStop = 95

// LostAfter is how long a silent node keeps its jobs. Then data that only this node has is made
// again.
const LostAfter = 25 * time.Second

// The time after which others replace a silent node. For a node that was replaced it is short, but
// not zero: two nodes may be exchanging addresses.
const (
	deadAfter     = 5 * time.Minute
	replacedAfter = 5 * time.Second // it loses its jobs then too
)

// Lost reports whether a node will probably not be back in time to finish its jobs.
func (n Node) Lost() bool { return n.silent(LostAfter) }

// Gone reports whether a node is not expected back, so that others replace it.
func (n Node) Gone() bool { return n.silent(deadAfter) }

func (n Node) silent(after time.Duration) bool {
	return !n.Alive && (n.Silent >= after || n.Replaced && n.Silent >= replacedAfter)
}
