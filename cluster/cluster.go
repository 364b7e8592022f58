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
	"cmp"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/gossip"
	"github.com/shoalsearch/shoal/cluster/wire"
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
	Exit            func(reason string)   // called when the disk of raft stalls or fails; default ends the process with code 70

	// For tests that stand between nodes: how to connect, and which gossip
	// addresses can be reached. Nil is the network as it is.
	Dial  func(ctx context.Context, network, addr string) (net.Conn, error)
	Reach func(network, addr string) bool
}

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
	Searches  uint32    `json:"s,omitempty"` // in flight
	DiskUsed  uint8     `json:"d,omitempty"` // percent of the volume of the data directory
	Applied   uint64    `json:"i,omitempty"` // index of its catalog
	StartedAt time.Time `json:"t,omitzero"`
}

// Peer is who calls. Its identity was proved by its certificate.
type Peer = wire.Peer

// Handler answers a call. The context ends with the caller's deadline, when
// the caller gives up, and when the connection breaks.
type Handler = wire.Handler

// StreamHandler answers a call whose answer is long.
type StreamHandler = wire.StreamHandler

// Cluster is this node's part in the cluster. All methods are safe for
// concurrent use.
type Cluster struct {
	o    Options
	log  *slog.Logger
	home *home
	keys atomic.Pointer[wire.Keys]

	idMu    sync.Mutex // guards what changes in id, and attempt
	id      *identity
	attempt string // id of the cluster that this node tries to found

	store   *store
	snaps   *raft.FileSnapshotStore
	machine *machine
	metrics *metrics
	raft    *raft.Raft
	trans   *transport
	port    *wire.Port
	gossip  *gossip.Gossip
	heard   atomic.Pointer[hearsay]

	leading atomic.Bool // an entry of this term was applied here
	load    atomic.Pointer[Load]
	ready   atomic.Bool
	ran     atomic.Bool // Run closes the network
	started time.Time

	transferring atomic.Int64 // UnixNano since when raft refuses writes for a transfer of leadership; 0 when it does not
	handlers     map[string]Handler
	streams      map[string]StreamHandler

	fatal     chan error // the first error with which the node cannot go on
	closed    chan struct{}
	closeOnce sync.Once
}

// New opens what the data directory holds and serves the catalog as it was
// committed there; Run takes part in the cluster. After New either Run or
// Close must be called.
func New(o Options) (*Cluster, error) {
	o.setDefaults()
	c := &Cluster{o: o, log: o.Log, fatal: make(chan error, 1), closed: make(chan struct{}),
		handlers: map[string]Handler{}, streams: map[string]StreamHandler{}, started: time.Now()}
	c.machine = newMachine(o.Log, c.fail, func(committed uint64) { c.store.note(committed) })
	c.metrics = newMetrics(c)
	c.machine.loop.exit, c.machine.took = o.Exit, c.metrics.apply
	if err := c.open(); err != nil {
		c.release()
		return nil, err
	}
	c.metrics.register(o.Metrics)
	c.Handle(methodPropose, c.servePropose)
	c.Handle(methodSync, c.serveSync)
	c.handleForming()
	return c, nil
}

func (o *Options) setDefaults() {
	o.ClusterListen = cmp.Or(o.ClusterListen, "127.0.0.1:7701")
	o.GossipListen = cmp.Or(o.GossipListen, "127.0.0.1:7702")
	o.BootstrapExpect = cmp.Or(o.BootstrapExpect, 1)
	o.ClusterKeyFile = cmp.Or(o.ClusterKeyFile, filepath.Join(o.DataDir, "cluster.key"))
	o.Zone = cmp.Or(o.Zone, "default")
	o.Weight = cmp.Or(o.Weight, 1)
	o.HoldTime = cmp.Or(o.HoldTime, 5*time.Second)
	o.Timing = cmp.Or(o.Timing, 1)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Exit == nil {
		log := o.Log
		o.Exit = func(reason string) {
			log.Error("the node stops at once", "reason", reason)
			os.Exit(70)
		}
	}
}

// open goes from the data directory to a running raft.
func (c *Cluster) open() (err error) {
	if c.home, err = openHome(c.o.DataDir); err != nil {
		return err
	}
	if c.id, err = c.home.loadIdentity(); err != nil {
		return err
	}
	if err := c.id.start(); err != nil {
		return err
	}
	keys, err := c.loadKeys()
	if err != nil {
		return err
	}
	c.keys.Store(&keys)
	c.log = c.log.With("node", c.id.NodeID)
	if err := c.openNetwork(); err != nil {
		return err
	}
	return c.openRaft()
}

// fail notes an error with which the node cannot go on; Run returns it.
func (c *Cluster) fail(err error) {
	select {
	case c.fatal <- err:
		c.log.Error("the node cannot go on", "error", err)
	default:
	}
}

// Run takes part until the context ends, then leaves the leadership to
// another, closes everything and returns nil. An error means that the
// node cannot go on.
func (c *Cluster) Run(ctx context.Context) error {
	defer c.release()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var tasks, network sync.WaitGroup
	netCtx, stopNetwork := context.WithCancel(context.Background())
	for _, run := range []func(context.Context) error{c.port.Run, c.gossip.Run} {
		network.Go(func() {
			if err := run(netCtx); err != nil {
				c.fail(err)
			}
		})
	}
	c.ran.Store(true)
	for _, task := range []func(context.Context){c.form, c.watchLeadership, c.announce, c.tell, c.chooseVoters, c.watch, c.watchKeys} {
		tasks.Go(func() { task(ctx) })
	}
	var err error
	select {
	case <-ctx.Done():
		c.handOver()
	case err = <-c.fatal:
	}
	cancel()
	tasks.Wait()
	// The network goes before raft: an endless transfer must not hold it up.
	stopNetwork()
	network.Wait()
	return err
}

// Close ends a Cluster that was never Run.
func (c *Cluster) Close() error {
	c.release()
	return nil
}

// release closes everything that is open, once.
func (c *Cluster) release() {
	c.closeOnce.Do(func() {
		close(c.closed)
		c.metrics.unregister(c.o.Metrics)
		if !c.ran.Load() {
			c.closeNetwork()
		}
		c.closeRaft()
		if c.home != nil {
			c.home.close()
		}
	})
}

// View is the catalog as this node has applied it. It is never nil.
func (c *Cluster) View() *catalog.View { return c.machine.view.Load() }

// Changed returns a channel that is closed when the view changes after this
// call. Call it before View to miss nothing.
func (c *Cluster) Changed() <-chan struct{} { return c.machine.next() }

// Age is for how long this node may have missed changes: 0 on a leader, else
// the time since it last heard of one.
func (c *Cluster) Age() time.Duration {
	if c.Leading() {
		return 0
	}
	if last := c.raft.LastContact(); !last.IsZero() {
		return time.Since(last)
	}
	return max(0, c.o.Now().Sub(c.View().Time()))
}

// Self is the id of this node.
func (c *Cluster) Self() string { return c.id.NodeID }

// Epoch is which start of the node this is: see catalog.NewEpoch.
func (c *Cluster) Epoch() uint64 { return c.id.epoch() }

// Leader is the id of the leader as this node knows it; empty when none.
func (c *Cluster) Leader() string {
	_, id := c.raft.LeaderWithID()
	return string(id)
}

// Leading tells whether this node leads: it plans jobs and placement.
func (c *Cluster) Leading() bool { return c.leading.Load() }
