// Package wire is the TCP port between nodes.
//
//	TLS 1.3, both sides with a certificate under the cluster key
//	└── ALPN: raft | call | bulk | join
//	    └── the identities of both sides are compared, then frames or raft
//
// A node with the cluster key is trusted. Its certificate names the node and its cluster, and each
// side checks them before it reads a frame. The package does not know what calls mean.
//
// A connection carries one call at a time and is reused. Each stream has its own connection, so
// that a long copy delays no calls. Everything is limited: handshakes, connections, frames, and how
// long a side may stall.
package wire

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/origin"
)

// Protocol is the purpose of a connection, negotiated by ALPN.
type Protocol string

// The protocols of a port.
const (
	Raft Protocol = "shoal-raft/1" // used by Port.Raft and DialRaft
	Call Protocol = "shoal-call/1" // one call at a time
	Bulk Protocol = "shoal-bulk/1" // one stream
	Join Protocol = "shoal-join/1" // calls from and to nodes without a cluster
)

// Peer is the identity of a node in its certificate.
type Peer struct {
	Cluster string // id; "": it is in none
	Node    string
	Epoch   uint64 // number of the node's start
	Boot    string // random for each start, to tell a copied data directory from the original; Listen sets it if empty
}

// Target is a node to call.
type Target struct {
	Node string // id that must answer; "": any
	Addr string // host:port
}

// Handler answers a call. The context ends at the caller's deadline, when the caller gives up, or
// when the connection breaks.
type Handler func(ctx context.Context, from Peer, in []byte) ([]byte, error)

// StreamHandler answers a call with a long answer. A write fails if the reader has gone, or takes
// nothing for the stall time.
type StreamHandler func(ctx context.Context, from Peer, in []byte, out io.Writer) error

// Options configure a port. A zero value means the default in the field's comment.
type Options struct {
	Listen string // host:port; required
	Self   Peer   // Node is required
	Keys   Keys   // required

	// Admit is called for each connection, on both sides, after the peer's identity was verified.
	// If it returns an error, the calling peer gets the text. Default: admit every node of the same
	// cluster.
	Admit func(peer Peer, p Protocol) error

	// Errors are the error kinds that keep their identity between nodes, besides those of this
	// package, io/fs and context. An error of several kinds travels as the first one. All nodes
	// must have the same rows.
	Errors []Kind

	Dial func(ctx context.Context, network, addr string) (net.Conn, error) // default net.Dialer
	Now  func() time.Time                                                  // for certificates; default clock.Now
	Log  *slog.Logger                                                      // default: discards

	HandshakeTimeout time.Duration // default 5 s
	StallTimeout     time.Duration // how long a peer may accept or send no byte within a message; default 30 s
	IdleTimeout      time.Duration // an unused connection is closed after this time; default 90 s
}

// The limits of a port.
const (
	MaxRequest     = 16 << 20 // bytes per request
	MaxResponse    = 64 << 20 // bytes per response; streams are not limited
	MaxConns       = 2048     // incoming connections
	MaxHandshakes  = 256      // incoming connections without a verified identity
	MaxCallsToNode = 64       // concurrent calls to one node; more wait

	MaxHandshakesOfOne = 128 // connections of one network without a verified identity
)

// Port is a node's end of all connections to and from other nodes. All methods are safe for
// concurrent use.
type Port struct {
	o      Options
	ring   *ring
	kinds  kinds
	ln     net.Listener
	raft   *raftListener
	base   context.Context // of handlers and dials; ends with the port
	cancel context.CancelFunc
	slots  chan struct{}     // one value per incoming connection
	shakes *origin.Strangers // incoming connections without a verified identity
	pool   *pool
	wg     sync.WaitGroup // all goroutines of the port

	mu       sync.Mutex // guards the fields below
	calls    map[string]Handler
	joins    map[string]Handler
	streams  map[string]StreamHandler
	links    map[*link]struct{} // open connections
	finished bool
}

// Listen opens a port, which Run serves. The caller must call either Run or Close.
func Listen(o Options) (*Port, error) {
	setDefaults(&o)
	if o.Self.Boot == "" {
		o.Self.Boot = rand.Text()
	}

	r, err := newRing(o.Self, o.Keys, o.Now)
	if err != nil {
		return nil, err
	}

	table, err := newKinds(o.Errors)
	if err != nil {
		return nil, err
	}

	lc := net.ListenConfig{KeepAliveConfig: keepAlive}
	ln, err := lc.Listen(context.Background(), "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for other nodes: %w", err)
	}

	p := &Port{
		o:       o,
		ring:    r,
		kinds:   table,
		ln:      ln,
		slots:   make(chan struct{}, MaxConns),
		shakes:  origin.NewStrangers(MaxHandshakes, MaxHandshakesOfOne),
		calls:   make(map[string]Handler),
		joins:   make(map[string]Handler),
		streams: make(map[string]StreamHandler),
		links:   make(map[*link]struct{}),
	}

	// The raft listener and the pool end with the base context.
	p.base, p.cancel = context.WithCancel(context.Background())
	p.raft = &raftListener{addr: ln.Addr(), conns: make(chan net.Conn), done: p.base.Done(), closed: make(chan struct{})}
	p.pool = newPool(o.IdleTimeout)
	return p, nil
}

// keepAlive detects a lost machine within half a minute.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}

// setDefaults fills in the options that are not set.
func setDefaults(o *Options) {
	if o.Admit == nil {
		o.Admit = func(Peer, Protocol) error { return nil }
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext
	}
	if o.Now == nil {
		o.Now = clock.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}

	for _, d := range []struct {
		to *time.Duration
		by time.Duration
	}{
		{&o.HandshakeTimeout, 5 * time.Second},
		{&o.StallTimeout, 30 * time.Second},
		{&o.IdleTimeout, 90 * time.Second},
	} {
		if *d.to <= 0 {
			*d.to = d.by
		}
	}
}

// Addr returns the address of the port. If Options had port 0, it has the actual port.
func (p *Port) Addr() string { return p.ln.Addr().String() }

// Self returns the identity of this node.
func (p *Port) Self() Peer { return p.ring.me() }

// Handle sets the handler of a method for nodes of the same cluster. Names have at most 255 bytes.
func (p *Port) Handle(method string, h Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[method] = h
}

// HandleJoin sets the handler of a method that nodes without a cluster may call, too. Their
// Peer.Cluster is "".
func (p *Port) HandleJoin(method string, h Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.joins[method] = h
}

// HandleStream sets the handler of a streaming method.
func (p *Port) HandleStream(method string, h StreamHandler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams[method] = h
}

// SetCluster sets the cluster that this node belongs to.
func (p *Port) SetCluster(id string) error {
	if err := p.ring.setCluster(id); err != nil {
		return err
	}

	// Idle connections were opened under the old identity.
	p.pool.closeIdle()
	return nil
}

// SetKeys replaces the keys: the first one signs, all are accepted. It closes connections under
// other keys.
func (p *Port) SetKeys(keys Keys) error {
	if err := p.ring.setKeys(keys); err != nil {
		return err
	}
	p.dropLinks(func(l *link) bool { return !p.ring.accepts(l.key) })
	return nil
}

// Drop closes all connections with a node, as after its removal.
func (p *Port) Drop(node string) {
	p.dropLinks(func(l *link) bool { return l.peer.Node == node })
}

// Connections counts the open connections, in both directions.
func (p *Port) Connections() map[Protocol]int {
	n := map[Protocol]int{Raft: 0, Call: 0, Bulk: 0, Join: 0}

	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		n[l.proto]++
	}
	return n
}

// dropLinks closes the connections for which mustDrop returns true.
func (p *Port) dropLinks(mustDrop func(*link) bool) {
	p.mu.Lock()
	var drop []*link
	for l := range p.links {
		if mustDrop(l) {
			drop = append(drop, l)
		}
	}
	p.mu.Unlock()

	// Close without the lock: Close removes the link from p.links, which takes the lock.
	for _, l := range drop {
		l.Close()
	}
}

// Run serves the port until the context ends. Then it closes every connection, waits for the
// handlers and returns nil.
func (p *Port) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.endEverything)
	defer stop()

	p.wg.Go(func() { p.pool.closeUnused(p.base) })
	err := p.accept()

	// If the context has not ended, the listener has failed: end everything else.
	p.endEverything()
	p.wg.Wait()
	return err
}

// Close closes a port that was never run.
func (p *Port) Close() error {
	p.endEverything()
	p.wg.Wait()
	return nil
}

// endEverything ends everything that the port has started. After it sets finished, no connection and no
// goroutine is added, so the caller can wait for the existing ones.
func (p *Port) endEverything() {
	p.mu.Lock()
	p.finished = true
	p.mu.Unlock()

	p.cancel()
	p.ln.Close()
	p.dropLinks(func(*link) bool { return true })
}

// accept accepts connections until the listener is closed. If the system has no file descriptors
// left, it waits.
func (p *Port) accept() error {
	for {
		raw, err := p.ln.Accept()
		switch {
		case p.base.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept from other nodes: %w", err)

		// Probably no file descriptors: some become free in a moment.
		case err != nil:
			p.o.Log.Warn("accept from other nodes", "err", err)
			if !clock.Wait(p.base, 100*time.Millisecond) {
				return nil
			}
			continue
		}

		// Close surplus connections at once instead of queueing them.
		select {
		case p.slots <- struct{}{}:
		default:
			p.o.Log.Warn("too many connections from other nodes", "max", MaxConns)
			raw.Close()
			continue
		}

		p.wg.Go(func() {
			defer func() { <-p.slots }()
			p.serveConnection(raw)
		})
	}
}
