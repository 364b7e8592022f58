// Package cluster keeps the nodes together: raft decides what the catalog
// says, gossip tells who can be reached, and calls go over one port with
// mutual TLS.
//
//	Propose -> leader -> raft -> Apply on every node -> View, Changed
//
// Every node has the whole catalog, so reading is a pointer load. One node is
// a cluster of one voter and runs the same code.
package cluster

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Options say how a node takes part. Zero values are the defaults named.
type Options struct {
	DataDir         string // holds raft/ and node.json; required
	ClusterListen   string // host:port for calls between nodes; default 127.0.0.1:7701
	GossipListen    string // host:port for gossip; default 127.0.0.1:7702
	Advertise       string // host that the others use; default that of ClusterListen
	API             string // base URL of the node's API, for links and status
	Join            []string
	BootstrapExpect int    // default 1
	ClusterKeyFile  string // default <DataDir>/cluster.key, made by a lone node
	Zone            string // default "default"
	Weight          float64
	Version         string        // of the program
	HoldTime        time.Duration // how long a write waits for a leader; default 5 s
	Timing          float64       // multiplies the timeouts of raft and gossip; default 1
	Now             func() time.Time
	Log             *slog.Logger          // default: discards
	Metrics         prometheus.Registerer // default: none
	Exit            func(reason string)   // called when the disk of raft stalls; default ends the process with code 70
}

// ErrNoLeader is returned by Propose when no leader accepted the commands
// within the hold time: no quorum, or an election that does not end. It is
// not known whether commands that were already on their way take effect.
var ErrNoLeader = errors.New("cluster: no leader")

// ErrClosed is returned after Run has ended.
var ErrClosed = errors.New("cluster: closed")

// Member is a node as this node sees it: what the catalog says and whether
// it can be reached.
type Member struct {
	catalog.Member
	Self   bool
	Leader bool
	Voter  bool
	Alive  bool // by gossip; true for Self
	Load   Load // as last told by gossip
}

// Load is what a node tells of itself.
type Load struct {
	Searches  uint32 // in flight
	DiskUsed  uint8  // percent of the volume of the data directory
	Applied   uint64 // index of its catalog
	StartedAt time.Time
}

// Peer is who calls. Its identity was proved by its certificate.
type Peer struct {
	ID    string
	Epoch uint64
}

// Handler answers a call. The context ends with the caller's deadline.
type Handler func(ctx context.Context, from Peer, in []byte) ([]byte, error)

// StreamHandler answers a call whose answer is long.
type StreamHandler func(ctx context.Context, from Peer, in []byte, out io.Writer) error

// Cluster is this node's part in the cluster. All methods are safe for
// concurrent use.
type Cluster struct{}

// New opens what the data directory holds and serves the catalog as it was
// committed there; Run takes part in the cluster. After New either Run or
// Close must be called.
func New(o Options) (*Cluster, error) { return nil, errors.New("cluster: not yet") }

// Run takes part until the context ends, then leaves the leadership to
// another, closes everything and returns nil. An error means that the
// node cannot go on.
func (c *Cluster) Run(ctx context.Context) error { return nil }

// Close ends a Cluster that was never Run.
func (c *Cluster) Close() error { return nil }

// Propose sends commands as one entry to the leader, waits until this node
// has applied it, and returns its index. An error that wraps
// *catalog.Refusal says that a command was refused; the others of the
// entry were still applied. ErrNoLeader is returned after the hold time.
func (c *Cluster) Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error) {
	return 0, nil
}

// ProposeAll is Propose with the result of each command. The error is only
// about getting the entry committed.
func (c *Cluster) ProposeAll(ctx context.Context, cmds ...catalog.Command) (uint64, []catalog.Result, error) {
	return 0, nil, nil
}

// View is the catalog as this node has applied it. It is never nil.
func (c *Cluster) View() *catalog.View { return nil }

// Changed returns a channel that is closed when the view changes after this
// call. Call it before View to miss nothing.
func (c *Cluster) Changed() <-chan struct{} { return nil }

// Await waits until this node has applied an index.
func (c *Cluster) Await(ctx context.Context, index uint64) error { return nil }

// Sync returns an index that is not older than any write acknowledged before
// the call, after this node has applied it. It needs a leader.
func (c *Cluster) Sync(ctx context.Context) (uint64, error) { return 0, nil }

// Age is for how long this node may have missed changes: 0 on a leader, else
// the time since it last heard of one.
func (c *Cluster) Age() time.Duration { return 0 }

// Self is the id of this node.
func (c *Cluster) Self() string { return "" }

// Epoch counts the starts of this node.
func (c *Cluster) Epoch() uint64 { return 0 }

// Members are all that are not removed, by id.
func (c *Cluster) Members() []Member { return nil }

// Alive tells whether a member can be reached, as far as gossip knows.
func (c *Cluster) Alive(node string) bool { return false }

// Leader is the id of the leader as this node knows it; empty when none.
func (c *Cluster) Leader() string { return "" }

// Leading tells whether this node leads: it plans jobs and placement.
func (c *Cluster) Leading() bool { return false }

// Ready tells whether the node has a catalog to serve, and if not, why.
func (c *Cluster) Ready() error { return nil }

// Handle sets who answers calls of a method. Call it before Run.
func (c *Cluster) Handle(method string, h Handler) {}

// HandleStream sets who answers streaming calls. Call it before Run.
func (c *Cluster) HandleStream(method string, h StreamHandler) {}

// Call asks a member. A call to Self is answered without the network.
// Errors of handlers keep their kind as wire has it.
func (c *Cluster) Call(ctx context.Context, node, method string, in []byte) ([]byte, error) {
	return nil, nil
}

// Stream is Call with a long answer, on a connection of its own. The error
// of a broken stream comes from Read.
func (c *Cluster) Stream(ctx context.Context, node, method string, in []byte) (io.ReadCloser, error) {
	return nil, nil
}

// SetLoad sets what gossip tells the others of this node.
func (c *Cluster) SetLoad(l Load) {}

// Drain makes a member give away what it holds and its roles.
func (c *Cluster) Drain(ctx context.Context, node string) error { return nil }

// Remove removes a member for good.
func (c *Cluster) Remove(ctx context.Context, node string) error { return nil }

// Snapshot writes the catalog as a file for Restore.
func (c *Cluster) Snapshot(ctx context.Context, w io.Writer) error { return nil }
