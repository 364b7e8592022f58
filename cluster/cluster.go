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
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// Options say how a node takes part. Zero values are the defaults named.
type Options struct {
	DataDir         string // holds raft/ and node.json; required
	ClusterListen   string // host:port for calls between nodes; default 127.0.0.1:7701
	GossipListen    string // host:port for gossip; default 127.0.0.1:7702
	Advertise       string // host that the others use; default that of ClusterListen
	API             string // base URL of the node's API, for links and status
	Name            string // of the node, for people; "" = none. Gossip tells it, so that no entry depends on it
	Join            []string
	BootstrapExpect int    // default 1
	ClusterKeyFile  string // default <DataDir>/cluster.key, made by a lone node
	Zone            string // default "default"
	Weight          float64
	Version         string        // of the program
	HoldTime        time.Duration // how long a write waits for a leader; default 5 s
	Timing          float64       // multiplies the timeouts of raft and gossip; default 1
	Audit           func() Audit  // how changes are audited; default: all of them, for as long as there is room
	Errors          []Kind        // of the layers above, that keep their identity between nodes; default none
	Now             func() time.Time
	Log             *slog.Logger          // default: discards
	Metrics         prometheus.Registerer // default: none
	Exit            func(reason string)   // called when the disk of raft stalls or fails; default ends the process with code 70

	Build catalog.Build // the levels that the program applies; default: its own

	// For tests that stand between nodes: how to connect, and which gossip
	// addresses can be reached. Nil is the network as it is.
	Dial  func(ctx context.Context, network, addr string) (net.Conn, error)
	Reach func(network, addr string) bool
}

// Audit says whether the entries of this node leave events of who made a
// change, and for how long events are kept.
type Audit struct {
	Off  bool
	Keep time.Duration // 0: as long as there is room
}

// Member is a node as this node sees it: what the catalog says and whether
// it can be reached.
type Member struct {
	catalog.Member
	Name   string // for people, as gossip last told; "" where it told none
	Self   bool
	Leader bool
	Voter  bool
	Alive  bool          // by gossip; true for Self
	Load   Load          // as last told by gossip
	Ahead  time.Duration // how far its clock is ahead of this node's, to the half of a second; 0 where it was not asked yet
}

// Called is how messages name a node: by its name, if it has one, and its id.
func Called(name, id string) string {
	if name == "" {
		return id
	}
	return name + " (" + id + ")"
}

// ClockSlack is how far the clocks of two members may be apart to count as equal.
const ClockSlack = 5 * time.Second

// Load is what a node tells of itself.
type Load struct {
	Searches  uint32    `json:"s,omitempty"` // in flight
	DiskUsed  uint8     `json:"d,omitempty"` // percent of the volume of the data directory
	Applied   uint64    `json:"i,omitempty"` // index of its catalog
	StartedAt time.Time `json:"t,omitzero"`
	Replicas  uint32    `json:"r,omitempty"` // copies of each file that it would keep as leader; 0 of an older version
	Disputed  bool      `json:"x,omitempty"` // it leads, and takes no writes: see ErrDisputed
}

// Kind is a row of the table of error kinds: see wire.Kind.
type Kind = wire.Kind

// Peer is who calls. Its identity was proved by its certificate.
type Peer = wire.Peer

// Handler answers a call. The context ends with the caller's deadline, when
// the caller gives up, and when the connection breaks.
type Handler = wire.Handler

// StreamHandler answers a call whose answer is long.
type StreamHandler = wire.StreamHandler

// Cluster is this node's part in the cluster: the parts and what wires them. All
// methods are safe for concurrent use.
type Cluster struct {
	env     *env
	o       Options
	started time.Time

	self       *self       // who this node is
	keys       keyring     // the cluster keys
	network    *network    // how nodes reach each other
	replica    *replica    // raft and the catalog
	proposer   *proposer   // writes
	formation  *formation  // into a cluster
	admission  *admission  // of others, and of this start of the node
	proof      *proof      // that this node is itself
	ballot     ballot      // whether it votes
	expulsion  *expulsion  // of followers that went back in time
	succession *succession // by another cluster
	electorate *electorate // who votes
	secrets    *secrets    // of the catalog
	watch      *watch      // over raft
	arbiter    *arbiter    // of states that differ
	inquiry    *inquiry    // how old the catalog is

	ready     atomic.Bool
	ran       atomic.Bool // Run closes the network
	fatal     chan error  // the first error with which the node cannot go on
	end       context.CancelFunc
	closeOnce sync.Once
}

// New opens what the data directory holds and serves the catalog as it was
// committed there; Run takes part in the cluster. After New either Run or
// Close must be called.
func New(o Options) (*Cluster, error) {
	o.setDefaults()
	c := &Cluster{o: o, fatal: make(chan error, 1), started: clock.Now(), keys: keyring{file: o.ClusterKeyFile}}
	c.env = &env{timing: o.Timing, log: o.Log, fail: c.fail}
	c.env.life, c.end = context.WithCancel(context.Background())

	if err := c.open(); err != nil {
		c.release()
		return nil, err
	}
	c.replica.metrics.register(o.Metrics, c)
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

	if o.Build.Highest() == 0 {
		o.Build = catalog.ThisBuild()
	}
	if o.Now == nil {
		o.Now = clock.Now
	}
	if o.Audit == nil {
		o.Audit = func() Audit { return Audit{} }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}

	// At once, and with no clean stop: what would be written to a failed disk on the way
	// down would be no better. The code tells a supervisor that another start may help.
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
	if c.self, err = openSelf(c.o.DataDir); err != nil {
		return err
	}
	c.env.log = c.env.log.With("node", c.self.node)
	if c.o.Name != "" {
		c.env.log = c.env.log.With("name", c.o.Name)
	}

	// Alone by its options, it may make the key of the cluster; others must be given it.
	lone := len(c.o.Join) == 0 && c.o.BootstrapExpect == 1
	if err := c.keys.load(c.self.cluster() != "", lone); err != nil {
		return err
	}

	c.wire(lone)
	// Ports before raft: with port 0 the address that others are told is known only now.
	if err := c.network.open(c.keys.valid()); err != nil {
		return err
	}
	c.answer()
	return c.startRaft()
}

// wire makes the parts.
func (c *Cluster) wire(lone bool) {
	memory, err := openMemory(c.o.DataDir)
	if err != nil {
		c.env.log.Warn("what was remembered of the other nodes is lost", "error", err)
	}

	r := &replica{env: c.env, self: c.self, metrics: newMetrics()}
	r.machine = newMachine(c.env.log, c.o.Build, c.fail, func(committed uint64) { r.store.note(committed) })
	r.machine.unsealWith(func(box []byte) ([]byte, error) { return c.keys.unseal(sealedConfig, box) })
	r.machine.loop.exit, r.machine.took = c.o.Exit, r.metrics.apply
	n := &network{env: c.env, o: c.o, self: c.self, view: r.view, applied: r.machine.applied.Load, term: r.term}
	c.arbiter = &arbiter{env: c.env, network: n, replica: r}
	n.disputed = c.arbiter.disputed.Load
	c.replica, c.network = r, n

	// Each part gets the ones before it: none of them knows the cluster as a whole.
	twins := &twins{env: c.env, network: n}
	c.succession = &succession{env: c.env, network: n}
	c.proposer = &proposer{
		env:     c.env,
		network: n,
		replica: r,
		time:    &agreedTime{own: func() time.Time { return c.o.Now().Add(n.apart()) }, newest: func() time.Time { return r.view().Time() }},
		hold:    c.o.HoldTime,
		seal:    c.keys.sealConfigs,
		audit:   c.o.Audit,
		stopped: c.arbiter.disputed.Load,
		given:   c.succession.reason,
	}

	c.formation = &formation{env: c.env, self: c.self, network: n, replica: r, alone: lone, expect: c.o.BootstrapExpect}
	c.admission = &admission{env: c.env, network: n, replica: r, proposer: c.proposer, twins: twins, succession: c.succession}
	c.proof = &proof{env: c.env, network: n, replica: r, twins: twins, memory: memory, ballot: &c.ballot}
	c.expulsion = &expulsion{env: c.env, network: n, replica: r}
	c.electorate = &electorate{env: c.env, network: n, replica: r}
	c.secrets = &secrets{env: c.env, keys: &c.keys, network: n, replica: r, proposer: c.proposer}
	c.watch = &watch{env: c.env, replica: r, proposer: c.proposer, arbiter: c.arbiter, build: c.o.Build, expect: c.o.BootstrapExpect, started: c.started, exit: c.o.Exit}
	c.inquiry = &inquiry{env: c.env, replica: r, proposer: c.proposer, now: c.o.Now}
	c.inquiry.fresh.note(memory.current(c.self.cluster()))
}

// answer lets other nodes ask this one.
func (c *Cluster) answer() {
	for _, part := range []interface{ answer() }{c.proposer, c.formation, c.admission, c.proof, c.proof.twins, c.expulsion, c.arbiter} {
		part.answer()
	}
	c.network.handle(methodLead, c.serveLead)
}

// startRaft opens the log, makes a cluster of one where that is asked for, and
// starts raft.
func (c *Cluster) startRaft() error {
	r := c.replica
	if err := r.openLog(c.o.Exit); err != nil {
		return err
	}

	trans := newTransport(c.network, r, &c.ballot, newFollowers(r, c.proof.memory, c.expulsion.expel))
	if c.formation.foundsAlone() {
		if err := c.formation.foundAlone(trans); err != nil {
			return err
		}
	}
	if err := r.start(trans); err != nil {
		return err
	}

	// Where there are others, they are asked first whether this is the node
	// that they know: see proof.go.
	if r.lone() && len(r.others()) == 0 {
		return r.hurry()
	}
	return nil
}

// fail notes an error with which the node cannot go on; Run returns it.
func (c *Cluster) fail(err error) {
	select {
	case c.fatal <- err:
		c.env.log.Error("the node cannot go on", "error", err)
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

	var tasks, ports sync.WaitGroup
	portCtx, stopPorts := context.WithCancel(context.Background())
	ports.Go(func() { c.network.run(portCtx) })
	c.ran.Store(true)
	for _, task := range []func(context.Context){
		c.formation.run, c.proof.run, c.replica.watchLeadership, c.admission.announce, c.tell, c.electorate.run, c.watch.run, c.secrets.run, c.inquiry.run, c.arbiter.run,
	} {
		tasks.Go(func() { task(ctx) })
	}

	var err error
	select {
	case <-ctx.Done():
		c.electorate.handOver()
	case err = <-c.fatal:
	}
	cancel()
	tasks.Wait()

	// The network goes before raft: an endless transfer must not hold it up.
	stopPorts()
	ports.Wait()
	return err
}

// Times of telling, at Timing 1.
const (
	tellPause = 2 * time.Second // between two looks at what gossip tells of this node
	keepPause = 5 * time.Second // after which what is remembered of the others is written down
)

// tell keeps what gossip says of this node up to date, and looks at what the
// others say.
func (c *Cluster) tell(ctx context.Context) {
	kept, twin := clock.Now(), time.Time{}
	for {
		c.network.refresh()
		c.proof.remember()
		c.proof.meetTwin(ctx, &twin)
		c.succession.look()

		// Writing it at each look would cost a sync to the disk every time.
		if clock.Since(kept) >= c.env.scaled(keepPause) {
			kept = clock.Now()
			c.keepMemory()
		}
		if !c.env.pause(ctx, c.env.scaled(tellPause)) {
			c.keepMemory()
			return
		}
	}
}

// keepMemory writes down what the next start has to know.
func (c *Cluster) keepMemory() {
	c.proof.memory.noteCurrent(c.self.cluster(), c.inquiry.fresh.newest(c.replica.machine.applied.Load()))
	c.proof.keep()
}

// Close ends a Cluster that was never Run.
func (c *Cluster) Close() error {
	c.release()
	return nil
}

// release closes everything that is open, once.
func (c *Cluster) release() {
	c.closeOnce.Do(func() {
		c.end()

		if c.replica != nil {
			c.replica.metrics.unregister(c.o.Metrics)
			if !c.ran.Load() {
				c.network.close()
			}
			c.replica.close()
		}

		// The lock of the directory goes last: until then something may write there.
		c.env.tasks.Wait()
		if c.self != nil {
			c.self.home.close()
		}
	})
}

// View is the catalog as this node has applied it. It is never nil.
func (c *Cluster) View() *catalog.View { return c.replica.view() }

// Changed returns a channel that is closed when the view changes after this
// call. Call it before View to miss nothing.
func (c *Cluster) Changed() <-chan struct{} { return c.replica.machine.next() }

// Age is for how long this node may have missed changes: the time since it asked
// a leader for the index that it has applied by now. It is 0 on a node that is
// alone, and UnknownAge where no such moment is known.
func (c *Cluster) Age() time.Duration { return c.inquiry.age() }

// Replaced says what differed when the state of this node was last replaced by that of the
// majority; "" where that has not happened since it was started.
func (c *Cluster) Replaced() string { return c.arbiter.said() }

// Time is the clock that this node stamps entries with and plans by while it leads:
// that of most members, but never before the newest entry.
func (c *Cluster) Time() time.Time { return c.proposer.time.now() }

// Self is the id of this node.
func (c *Cluster) Self() string { return c.self.node }

// Epoch is which start of the node this is: see catalog.NewEpoch.
func (c *Cluster) Epoch() uint64 { return c.self.epoch }

// Leader is the id of the leader as this node knows it; empty when none.
func (c *Cluster) Leader() string { return c.replica.leader() }

// Leading reports whether this node leads: it plans jobs and placement.
func (c *Cluster) Leading() bool { return c.replica.leading.Load() }

// ClusterAddr is the address for calls, with the real port.
func (c *Cluster) ClusterAddr() string { return c.network.clusterAddr() }

// GossipAddr is the address for gossip, with the real port.
func (c *Cluster) GossipAddr() string { return c.network.gossip.Addr() }

// SetLoad sets what gossip tells the others of this node. Applied and
// Disputed are filled in.
func (c *Cluster) SetLoad(l Load) { c.network.load.Store(&l) }

// Call asks a member; it is for what changes nothing there. A call to Self is
// answered without the network. The deadline and the end of the context reach
// the handler.
func (c *Cluster) Call(ctx context.Context, node, method string, in []byte) ([]byte, error) {
	return c.network.call(ctx, node, method, in)
}

// Stream is Call with a long answer, on a connection of its own. The error
// of a broken stream comes from Read.
func (c *Cluster) Stream(ctx context.Context, node, method string, in []byte) (io.ReadCloser, error) {
	return c.network.stream(ctx, node, method, in)
}

// Handle sets who answers calls of a method. Call it before Run.
func (c *Cluster) Handle(method string, h Handler) {
	if !c.Lacks(method) {
		c.network.handle(method, h)
	}
}

// Lacks reports whether the program does not know a method or a field of a question, since
// a test makes it an earlier one.
func (c *Cluster) Lacks(name string) bool { return c.o.Build.Lacks[name] }

// HandleStream sets who answers streaming calls. Call it before Run.
func (c *Cluster) HandleStream(method string, h StreamHandler) { c.network.handleStream(method, h) }

// Propose sends commands as one entry to the leader, waits until this node
// has applied it, and returns the index at which it took effect, which is that
// of its first try. An error that wraps
// *catalog.Refusal says that a command was refused; the others of the
// entry were still applied. ErrNoLeader is returned after the hold time.
func (c *Cluster) Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error) {
	return c.proposer.propose(ctx, cmds...)
}

// ProposeAll is Propose with the result of each command. The error is only
// about getting the entry committed.
//
// A write that fails on its way is sent again under the same request id,
// which the catalog remembers: it takes effect once.
func (c *Cluster) ProposeAll(ctx context.Context, cmds ...catalog.Command) (uint64, []catalog.Result, error) {
	return c.proposer.proposeAll(ctx, cmds...)
}

// Await waits until this node has applied an index.
func (c *Cluster) Await(ctx context.Context, index uint64) error { return c.proposer.await(ctx, index) }

// AwaitOn waits until other members have applied an index, as long as a write
// waits for a leader, and returns those that have not. It is for changes that
// must hold on a node when they are acknowledged: raft itself tells followers
// what is committed only with the next message. Members that are not alive are
// not waited for.
func (c *Cluster) AwaitOn(ctx context.Context, index uint64, nodes ...string) (behind []string) {
	return c.proposer.awaitOn(ctx, index, nodes...)
}

// Sync returns an index that is not older than any write acknowledged before
// the call, after this node has applied it. It needs a leader: ErrNoLeader
// is returned after the hold time.
func (c *Cluster) Sync(ctx context.Context) (uint64, error) { return c.proposer.sync(ctx) }

// Secret is a secret that all nodes share: 32 random bytes, made when the
// name is first asked for and the same for ever. It lies in the catalog
// sealed by the cluster key. ErrNoLeader is returned when it has yet to be
// made and there is no leader.
func (c *Cluster) Secret(ctx context.Context, name string) ([]byte, error) {
	return c.secrets.get(ctx, name)
}

// KnownSecret is a secret as this node has it; false where there is none of
// that name.
func (c *Cluster) KnownSecret(name string) ([]byte, bool, error) { return c.secrets.known(name) }

// SetSecret replaces a secret, or makes it. It returns when this node has it.
func (c *Cluster) SetSecret(ctx context.Context, name string, plain []byte) error {
	return c.secrets.set(ctx, name, plain)
}
