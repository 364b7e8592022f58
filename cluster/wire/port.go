// Package wire is the one TCP port between nodes.
//
//	TLS 1.3, both sides with a certificate under the cluster key
//	└── ALPN: raft | call | bulk | join
//	    └── the identities of both sides are compared, then frames or raft
//
// Whoever has the cluster key is trusted; a certificate says which node of
// which cluster speaks, and each side checks that before it reads a frame. The
// package knows nothing of what calls mean.
//
// A connection carries one call at a time and is used again; streams have
// connections of their own, so that a long copy delays nothing. Everything is
// bounded: handshakes, connections, frames, and how long a side may stall.
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

// Protocol is what a connection is for; it is agreed on by ALPN.
type Protocol string

// The protocols of a port.
const (
	Raft Protocol = "shoal-raft/1" // handed out by Port.Raft and DialRaft
	Call Protocol = "shoal-call/1" // one call at a time
	Bulk Protocol = "shoal-bulk/1" // one stream
	Join Protocol = "shoal-join/1" // calls from and to nodes that are in no cluster yet
)

// Peer is a node as its certificate names it.
type Peer struct {
	Cluster string // id of its cluster; empty while it is in none
	Node    string
	Epoch   uint64 // counts the starts of the node
	Boot    string // random for each start, so that a copy of a data directory is told from the original; made by Listen when empty
}

// Target is a node to be called.
type Target struct {
	Node string // who must answer; empty for whoever does
	Addr string // host:port
}

// Handler answers a call. The context ends with the caller's deadline, when
// the caller gives up, and when the connection breaks.
type Handler func(ctx context.Context, from Peer, in []byte) ([]byte, error)

// StreamHandler answers a call whose answer is long. A write fails when the
// reader has gone or takes nothing for the stall time.
type StreamHandler func(ctx context.Context, from Peer, in []byte, out io.Writer) error

// Options say how a port works. Zero values are the defaults named.
type Options struct {
	Listen string // host:port; required
	Self   Peer   // Node is required
	Keys   Keys   // required

	// Admit is asked for each connection, on both of its sides, after the
	// peer's identity was proved; the text of its error is shown to the peer
	// that called. Default: all of the own cluster.
	Admit func(peer Peer, p Protocol) error

	// Errors are the kinds of errors that keep their identity on the way
	// between nodes, besides those of this package, io/fs and context. An error
	// of several kinds travels as the first. Rows are the same on all nodes.
	Errors []Kind

	Dial func(ctx context.Context, network, addr string) (net.Conn, error) // default net.Dialer
	Now  func() time.Time                                                  // for certificates; default clock.Now
	Log  *slog.Logger                                                      // default: discards

	HandshakeTimeout time.Duration // default 5 s
	StallTimeout     time.Duration // how long a peer may take no byte or send none in a message; default 30 s
	IdleTimeout      time.Duration // after which an unused connection is closed; default 90 s
}

// The bounds of a port.
const (
	MaxRequest     = 16 << 20 // bytes of a request
	MaxResponse    = 64 << 20 // bytes of a response; a stream has no bound
	MaxConns       = 2048     // connections that came in
	MaxHandshakes  = 256      // of those, without a proved identity
	MaxCallsToNode = 64       // calls to one node at a time; more wait

	MaxHandshakesOfOne = 128 // connections of one network without a proved identity
)

// Port is a node's end of all connections to and from the other nodes. All
// methods are safe for concurrent use.
type Port struct {
	o      Options
	ring   *ring
	kinds  kinds
	ln     net.Listener
	raft   *raftListener
	base   context.Context // of handlers and of dialing; ends with the port
	cancel context.CancelFunc
	slots  chan struct{}     // connections that came in
	shakes *origin.Strangers // of those, without a proved identity
	pool   *pool
	wg     sync.WaitGroup // every goroutine of the port

	mu       sync.Mutex // guards the fields below
	calls    map[string]Handler
	joins    map[string]Handler
	streams  map[string]StreamHandler
	links    map[*link]struct{} // open connections
	finished bool
}

// Listen opens the port; Run serves it. After Listen either Run or Close must
// be called.
func Listen(o Options) (*Port, error) {
	defaults(&o)
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

// keepAlive finds out within half a minute that a machine is gone.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}

// defaults fills in what was not given.
func defaults(o *Options) {
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

// Addr is the address on which the port listens, with the real number where
// port 0 was asked for.
func (p *Port) Addr() string { return p.ln.Addr().String() }

// Self is this node as its certificates name it.
func (p *Port) Self() Peer { return p.ring.me() }

// Handle sets who answers calls of a method, by nodes of the own cluster.
// Names have at most 255 bytes.
func (p *Port) Handle(method string, h Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[method] = h
}

// HandleJoin sets who answers calls of a method that nodes without a cluster
// may make. The peer's Cluster tells which those are.
func (p *Port) HandleJoin(method string, h Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.joins[method] = h
}

// HandleStream sets who answers streams of a method.
func (p *Port) HandleStream(method string, h StreamHandler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams[method] = h
}

// SetCluster sets the cluster that this node belongs to from now on.
func (p *Port) SetCluster(id string) error {
	if err := p.ring.setCluster(id); err != nil {
		return err
	}

	// What is idle was opened under the old identity.
	p.pool.closeIdle()
	return nil
}

// SetKeys replaces the keys: the first signs from now on, the others are
// accepted too. Connections under a key that is no longer valid are closed.
func (p *Port) SetKeys(keys Keys) error {
	if err := p.ring.setKeys(keys); err != nil {
		return err
	}
	p.dropLinks(func(l *link) bool { return !p.ring.valid(l.key) })
	return nil
}

// Drop closes all connections with a node, as when it was removed.
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

// dropLinks closes the connections that which chooses.
func (p *Port) dropLinks(which func(*link) bool) {
	p.mu.Lock()
	var drop []*link
	for l := range p.links {
		if which(l) {
			drop = append(drop, l)
		}
	}
	p.mu.Unlock()

	// Closing a link removes it from p.links, which takes the lock.
	for _, l := range drop {
		l.Close()
	}
}

// Run serves the port until the context ends. Then it closes every
// connection, those of raft too, waits for the handlers and returns nil.
func (p *Port) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.shut)
	defer stop()

	p.wg.Go(func() { p.pool.janitor(p.base) })
	err := p.accept()

	// Only a failed listener gets here without shut: the rest ends with it.
	p.shut()
	p.wg.Wait()
	return err
}

// Close ends a port that was never run.
func (p *Port) Close() error {
	p.shut()
	p.wg.Wait()
	return nil
}

// shut ends everything that the port has started. After finished is set no
// connection and no goroutine is added, so that waiting for those that are
// there is enough.
func (p *Port) shut() {
	p.mu.Lock()
	p.finished = true
	p.mu.Unlock()

	p.cancel()
	p.ln.Close()
	p.dropLinks(func(*link) bool { return true })
}

// accept takes connections until the listener is closed. When the system has
// no file descriptors left it waits for some to be closed.
func (p *Port) accept() error {
	for {
		raw, err := p.ln.Accept()
		switch {
		case p.base.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept from other nodes: %w", err)

		// No file descriptors, most likely: some are freed in a moment.
		case err != nil:
			p.o.Log.Warn("accept from other nodes", "err", err)
			if !clock.Wait(p.base, 100*time.Millisecond) {
				return nil
			}
			continue
		}

		// A peer that opens too many connections is turned away, not queued.
		select {
		case p.slots <- struct{}{}:
		default:
			p.o.Log.Warn("too many connections from other nodes", "max", MaxConns)
			raw.Close()
			continue
		}

		p.wg.Go(func() {
			defer func() { <-p.slots }()
			p.welcome(raw)
		})
	}
}
