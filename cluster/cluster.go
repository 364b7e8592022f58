// Package cluster connects the nodes. Raft agrees on the catalog, gossip tells which nodes are
// reachable, and calls use one port with mutual TLS.
//
//	Propose -> leader -> raft -> Apply on every node -> View, Changed
//
// Every node has the whole catalog, so reading is a pointer load. A single node is a cluster of one
// voter and runs the same code.
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

// Options configure a node. A zero value means the default in the field's comment.
type Options struct {
	DataDir         string // holds raft/ and node.json; required
	ClusterListen   string // host:port for calls between nodes; default 127.0.0.1:7701
	GossipListen    string // host:port for gossip; default 127.0.0.1:7702
	Advertise       string // host that the others use; default that of ClusterListen
	API             string // base URL of the node's API, for links and status
	Name            string // name for display; "": none. Only gossip carries it, so that no log entry depends on it
	Join            []string
	BootstrapExpect int    // default 1
	ClusterKeyFile  string // default <DataDir>/cluster.key, which a lone node creates
	Zone            string // default "default"
	Weight          float64
	Version         string        // of the program
	HoldTime        time.Duration // how long a write waits for a leader; default 5 s
	Timing          float64       // multiplies the timeouts of raft and gossip; default 1
	Audit           func() Audit  // how changes are audited; default: all of them, up to the limit of events
	Errors          []Kind        // further error kinds that keep their identity between nodes; default: none
	Now             func() time.Time
	Log             *slog.Logger          // default: discards
	Metrics         prometheus.Registerer // default: none
	Exit            func(reason string)   // called when the disk of raft stalls or fails; default: exit with code 70

	Build catalog.Build // levels that the program can apply; default: those of this program

	// For tests: how to connect, and which gossip addresses are reachable. Nil means the real
	// network.
	Dial  func(ctx context.Context, network, addr string) (net.Conn, error)
	Reach func(network, addr string) bool
}

// Audit tells whether changes proposed by this node leave audit events, and for how long events are
// kept.
type Audit struct {
	Off  bool
	Keep time.Duration // 0: up to the limit of events
}

// Member is a node as seen by this one: its record in the catalog, and whether it is reachable.
type Member struct {
	catalog.Member
	Name   string // for display, from gossip; "": none
	Self   bool
	Leader bool
	Voter  bool
	Alive  bool          // reachable according to gossip; true for Self
	Since  time.Time     // when Alive changed, or this node's start if it was not heard of since
	Load   Load          // last reported by gossip
	Ahead  time.Duration // how far its clock is ahead of this node's, to half a second; 0 if not measured yet
}

// Called returns how messages name a node: by its name, if any, and its id.
func Called(name, id string) string {
	if name == "" {
		return id
	}
	return name + " (" + id + ")"
}

// ClockSlack is the largest difference between clocks that counts as none.
const ClockSlack = 5 * time.Second

// Load is what a node reports about itself by gossip.
type Load struct {
	Searches  uint32    `json:"s,omitempty"` // in flight
	DiskUsed  uint8     `json:"d,omitempty"` // percent of the volume of the data directory
	Applied   uint64    `json:"i,omitempty"` // index of its applied catalog
	StartedAt time.Time `json:"t,omitzero"`
	Replicas  uint32    `json:"r,omitempty"` // copies of each file that it would keep as leader; 0: it runs an older version
	Disputed  bool      `json:"x,omitempty"` // it leads but refuses writes: see ErrDisputed
	Keys      string    `json:"k,omitempty"` // fingerprints of the cluster keys that it accepts, the one that it uses first
	Backup    time.Time `json:"b,omitzero"`  // when it last gave a back-up of the catalog
}

// Kind is a row of the table of error kinds; see wire.Kind.
type Kind = wire.Kind

// Peer is the calling node. Its certificate proves its identity.
type Peer = wire.Peer

// Handler answers a call. The context ends at the caller's deadline, when the caller gives up, or
// when the connection breaks.
type Handler = wire.Handler

// StreamHandler answers a call with a long answer.
type StreamHandler = wire.StreamHandler

// Cluster is this node's part in the cluster. It owns the parts and wires them. All methods are
// safe for concurrent use.
type Cluster struct {
	env     *env
	o       Options
	started time.Time

	self       *self       // identity of this node
	keys       keyring     // the cluster keys
	network    *network    // contact with other nodes
	replica    *replica    // raft and the catalog
	proposer   *proposer   // writes
	formation  *formation  // how this node enters a cluster
	admission  *admission  // admits other nodes, and announces this one
	proof      *proof      // proves the identity of this node before it votes
	ballot     ballot      // whether this node may vote
	expulsion  *expulsion  // stops followers that lost acknowledged data
	succession *succession // notices a cluster that replaced this one
	electorate *electorate // chooses the voters
	secrets    *secrets    // secrets of the catalog
	watch      *watch      // watchdogs of raft
	arbiter    *arbiter    // resolves differing catalogs
	inquiry    *inquiry    // measures the age of the catalog

	ready     atomic.Bool
	ran       atomic.Bool // if true, Run closes the network
	fatal     chan error  // the first error that stops the node
	end       context.CancelFunc
	closeOnce sync.Once
}

// New opens the data directory and serves the catalog as last committed there. Run joins the
// cluster. The caller must call either Run or Close.
func New(o Options) (*Cluster, error) {
	o.setDefaults()
	c := &Cluster{o: o, fatal: make(chan error, 1), started: clock.Now(), keys: keyring{file: o.ClusterKeyFile}}
	c.env = &env{timing: o.Timing, log: o.Log, fail: c.fail}
	c.env.life, c.end = context.WithCancel(context.Background())

	if err := c.open(); err != nil {
		c.closeAll()
		return nil, err
	}
	c.replica.metrics.register(o.Metrics, c)
	return c, nil
}

// setDefaults sets the options that the caller has left out.
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

	// Exit at once: a clean stop would only write more to a failed disk. The exit code tells the
	// supervisor that a restart may help.
	if o.Exit == nil {
		log := o.Log
		o.Exit = func(reason string) {
			log.Error("the node stops at once", "reason", reason)
			os.Exit(70)
		}
	}
}

// open opens the data directory and starts raft.
func (c *Cluster) open() (err error) {
	if c.self, err = openSelf(c.o.DataDir); err != nil {
		return err
	}
	c.env.log = c.env.log.With("node", c.self.node)
	if c.o.Name != "" {
		c.env.log = c.env.log.With("name", c.o.Name)
	}

	// A node that expects no others may create the cluster key. Other nodes must get it.
	lone := len(c.o.Join) == 0 && c.o.BootstrapExpect == 1
	if err := c.keys.loadOrCreateKey(c.self.cluster() != "", lone); err != nil {
		return err
	}

	c.connectParts(lone)
	// Open the ports first: with port 0, the advertised address is only known afterwards.
	if err := c.network.open(c.keys.valid()); err != nil {
		return err
	}
	c.registerHandlers()
	return c.startRaft()
}

// connectParts creates the parts of the cluster, and gives each the other parts that it uses. lone
// says that this node is the only one.
func (c *Cluster) connectParts(lone bool) {
	memory, err := openMemory(c.o.DataDir)
	if err != nil {
		c.env.log.Warn("what was remembered of the other nodes is lost", "error", err)
	}

	r := &replica{env: c.env, self: c.self, metrics: newMetrics()}
	r.machine = newMachine(c.env.log, c.o.Build, c.fail, func(committed uint64) { r.store.setCommit(committed) })
	r.machine.unsealWith(func(box []byte) ([]byte, error) { return c.keys.unseal(sealedConfig, box) })
	r.machine.loop.exit, r.machine.duration = c.o.Exit, r.metrics.apply
	n := &network{env: c.env, o: c.o, self: c.self, view: r.view, applied: r.machine.applied.Load, term: r.term, keys: c.keys.valid}
	c.arbiter = &arbiter{env: c.env, network: n, replica: r}
	n.disputed = c.arbiter.disputed.Load
	c.replica, c.network = r, n

	// Each part gets only the parts that it needs, never the cluster as a whole.
	twins := &twins{env: c.env, network: n}
	c.succession = &succession{env: c.env, network: n}
	c.proposer = &proposer{
		env:      c.env,
		network:  n,
		replica:  r,
		time:     &agreedTime{own: func() time.Time { return c.o.Now().Add(n.clockLag()) }, newest: func() time.Time { return r.view().Time() }},
		hold:     c.o.HoldTime,
		seal:     c.keys.sealConfigs,
		audit:    c.o.Audit,
		disputed: c.arbiter.disputed.Load,
		replaced: c.succession.stopReason,
	}

	c.formation = &formation{env: c.env, self: c.self, network: n, replica: r, alone: lone, expect: c.o.BootstrapExpect}
	c.admission = &admission{env: c.env, network: n, replica: r, proposer: c.proposer, twins: twins, succession: c.succession}
	c.proof = &proof{env: c.env, network: n, replica: r, twins: twins, memory: memory, ballot: &c.ballot}
	c.expulsion = &expulsion{env: c.env, network: n, replica: r}
	c.electorate = &electorate{env: c.env, network: n, replica: r, callNode: n.call}
	c.secrets = &secrets{env: c.env, keys: &c.keys, network: n, replica: r, proposer: c.proposer}
	c.watch = &watch{env: c.env, replica: r, proposer: c.proposer, arbiter: c.arbiter, build: c.o.Build, expect: c.o.BootstrapExpect, started: c.started, exit: c.o.Exit}
	c.inquiry = &inquiry{env: c.env, replica: r, proposer: c.proposer, now: c.o.Now}
	c.inquiry.fresh.recordAnswer(memory.contactFor(c.self.cluster()))
}

// registerHandlers registers the handlers for other nodes.
func (c *Cluster) registerHandlers() {
	for _, part := range []interface{ registerHandlers() }{c.proposer, c.formation, c.admission, c.proof, c.proof.twins, c.expulsion, c.arbiter} {
		part.registerHandlers()
	}
	c.network.handle(methodLead, c.serveLead)
}

// startRaft opens the log, founds a cluster of one if configured so, and starts raft.
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

	// If there are other members, this node must first prove its identity to them: see proof.go.
	if r.isLoneVoter() && len(r.otherMembers()) == 0 {
		return r.leadAlone()
	}
	return nil
}

// fail stops the node with an error, which Run returns.
func (c *Cluster) fail(err error) {
	select {
	case c.fatal <- err:
		c.env.log.Error("the node cannot go on", "error", err)
	default:
	}
}

// Run takes part in the cluster until the context ends. Then it hands over the leadership, closes
// everything and returns nil. An error means that the node cannot continue.
func (c *Cluster) Run(ctx context.Context) error {
	defer c.closeAll()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	var tasks, ports sync.WaitGroup
	portCtx, stopPorts := context.WithCancel(context.Background())
	ports.Go(func() { c.network.run(portCtx) })
	c.ran.Store(true)
	for _, task := range []func(context.Context){
		c.formation.run, c.proof.run, c.replica.watchLeadership, c.admission.announce, c.keepGossipFresh, c.electorate.run, c.watch.run, c.secrets.run, c.inquiry.run, c.arbiter.run,
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

	// Close the network before raft: an endless transfer must not delay the stop.
	stopPorts()
	ports.Wait()
	return err
}

// Intervals at Timing 1.
const (
	tellPause = 2 * time.Second // between updates of what gossip reports about this node
	keepPause = 5 * time.Second // between writes of memory to the disk
)

// keepGossipFresh updates what gossip reports about this node, and evaluates what it reports about
// the others, until ctx ends.
func (c *Cluster) keepGossipFresh(ctx context.Context) {
	saved, twin := clock.Now(), time.Time{}
	for {
		c.network.refreshGossip()
		c.proof.recordPeers()
		c.proof.checkTwins(ctx, &twin)
		c.succession.checkPeers()

		// Save rarely, because that syncs the disk.
		if clock.Since(saved) >= c.env.scaled(keepPause) {
			saved = clock.Now()
			c.saveMemory()
		}
		if !c.env.pause(ctx, c.env.scaled(tellPause)) {
			c.saveMemory()
			return
		}
	}
}

// saveMemory writes to disk what the next start needs.
func (c *Cluster) saveMemory() {
	c.proof.memory.recordContact(c.self.cluster(), c.inquiry.fresh.newestAppliedContact(c.replica.machine.applied.Load()))
	c.proof.saveMemory()
}

// Close closes a Cluster that was never Run.
func (c *Cluster) Close() error {
	c.closeAll()
	return nil
}

// closeAll closes everything, once.
func (c *Cluster) closeAll() {
	c.closeOnce.Do(func() {
		c.end()

		if c.replica != nil {
			c.replica.metrics.unregister(c.o.Metrics)
			if !c.ran.Load() {
				c.network.close()
			}
			c.replica.close()
		}

		// Unlock the directory last: until then some part may write there.
		c.env.tasks.Wait()
		if c.self != nil {
			c.self.home.close()
		}
	})
}

// View returns the catalog as applied by this node. It is never nil.
func (c *Cluster) View() *catalog.View { return c.replica.view() }

// Changed returns a channel that is closed when the view changes after this call. To miss nothing,
// call it before View.
func (c *Cluster) Changed() <-chan struct{} { return c.replica.machine.nextChange() }

// Age returns for how long this node may have missed changes: the time since it asked a leader for
// an index that it has applied by now. It is 0 on a lone node, and UnknownAge if the node never had
// such an answer.
func (c *Cluster) Age() time.Duration { return c.inquiry.age() }

// Replaced returns a description of what differed when this node's state was last replaced by the
// majority's; "" if that has not happened since the start.
func (c *Cluster) Replaced() string { return c.arbiter.lastReport() }

// Time returns the clock by which this node stamps entries and plans as leader: that of most
// members, but never before the newest entry.
func (c *Cluster) Time() time.Time { return c.proposer.time.now() }

// Self returns the id of this node.
func (c *Cluster) Self() string { return c.self.node }

// Epoch identifies this start of the node: see catalog.NewEpoch.
func (c *Cluster) Epoch() uint64 { return c.self.epoch }

// Leader returns the id of the leader, or "" if this node knows none.
func (c *Cluster) Leader() string { return c.replica.leader() }

// Leading reports whether this node leads. The leader plans jobs and placement.
func (c *Cluster) Leading() bool { return c.replica.leading.Load() }

// ClusterAddr returns the advertised address for calls, with the actual port.
func (c *Cluster) ClusterAddr() string { return c.network.clusterAddr() }

// GossipAddr returns the address for gossip, with the actual port.
func (c *Cluster) GossipAddr() string { return c.network.gossip.Addr() }

// SetLoad sets what gossip reports about this node. Applied, Disputed and Keys are filled in.
func (c *Cluster) SetLoad(l Load) { c.network.load.Store(&l) }

// Call calls a member. The method must not change anything there. A call to Self does not use the
// network. The handler sees the deadline and the end of the context.
func (c *Cluster) Call(ctx context.Context, node, method string, in []byte) ([]byte, error) {
	return c.network.call(ctx, node, method, in)
}

// Stream is like Call, for a long answer on its own connection. If the stream breaks, Read returns
// the error.
func (c *Cluster) Stream(ctx context.Context, node, method string, in []byte) (io.ReadCloser, error) {
	return c.network.stream(ctx, node, method, in)
}

// Handle sets the handler of a method. The caller must call it before Run.
func (c *Cluster) Handle(method string, h Handler) {
	if !c.Lacks(method) {
		c.network.handle(method, h)
	}
}

// Lacks reports whether a test makes this program an older one that does not know a method, or a
// field of a question.
func (c *Cluster) Lacks(name string) bool { return c.o.Build.Lacks[name] }

// HandleStream sets the handler of a streaming method. The caller must call it before Run.
func (c *Cluster) HandleStream(method string, h StreamHandler) { c.network.handleStream(method, h) }

// Propose sends commands as one entry to the leader, and waits until this node has applied it. It
// returns the index at which the entry took effect; for a retry that is the index of the first try.
// An error that wraps *catalog.Refusal means that a command was refused; the other commands of the
// entry were still applied. It returns ErrNoLeader after the hold time.
func (c *Cluster) Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error) {
	return c.proposer.propose(ctx, cmds...)
}

// ProposeAll is like Propose, but returns the result of each command. The error only tells whether
// the entry was committed.
//
// A failed write is sent again under the same request id. The catalog remembers ids, so the write
// takes effect only once.
func (c *Cluster) ProposeAll(ctx context.Context, cmds ...catalog.Command) (uint64, []catalog.Result, error) {
	return c.proposer.proposeAll(ctx, cmds...)
}

// Await waits until this node has applied an index.
func (c *Cluster) Await(ctx context.Context, index uint64) error { return c.proposer.await(ctx, index) }

// AwaitOn waits until other members have applied an index, at most for the hold time, and returns
// those that have not. Raft tells followers about a commit only with the next message, so a change
// that must hold on a node once it is acknowledged needs AwaitOn. It does not wait for members that
// are not alive.
func (c *Cluster) AwaitOn(ctx context.Context, index uint64, nodes ...string) (behind []string) {
	return c.proposer.awaitOn(ctx, index, nodes...)
}

// Sync returns an index that covers every write acknowledged before the call, and waits until this
// node has applied it. Without a leader it returns ErrNoLeader after the hold time.
func (c *Cluster) Sync(ctx context.Context) (uint64, error) { return c.proposer.sync(ctx) }

// Secret returns a secret that all nodes share: 32 random bytes, created at the first call for the
// name. The catalog stores it sealed by the cluster key. Secret returns ErrNoLeader if it must
// create the secret and there is no leader.
func (c *Cluster) Secret(ctx context.Context, name string) ([]byte, error) {
	return c.secrets.get(ctx, name)
}

// KnownSecret returns a secret if this node has it. The bool is false if there is none.
func (c *Cluster) KnownSecret(name string) ([]byte, bool, error) { return c.secrets.known(name) }

// SetSecret creates or replaces a secret. It returns when this node has it.
func (c *Cluster) SetSecret(ctx context.Context, name string, plain []byte) error {
	return c.secrets.set(ctx, name, plain)
}
