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
	"io"
	"log/slog"
	"net"
	"time"
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

	// Admit is asked for each connection that comes in, after its identity
	// was proved; the text of its error is shown to the peer. Default: all of
	// the own cluster.
	Admit func(from Peer, p Protocol) error

	// Errors are the kinds of errors that keep their identity on the way,
	// besides those of io/fs and context: what errors.Is finds on one side it
	// finds on the other. The names must be the same on all nodes.
	Errors map[string]error

	Dial func(ctx context.Context, network, addr string) (net.Conn, error) // default net.Dialer
	Now  func() time.Time                                                 // for certificates; default time.Now
	Log  *slog.Logger                                                     // default: discards

	HandshakeTimeout time.Duration // default 5 s
	StallTimeout     time.Duration // how long a peer may take no byte or send none in a message; default 30 s
	IdleTimeout      time.Duration // after which an unused connection is closed; default 90 s
}

// The bounds of a port.
const (
	MaxRequest     = 16 << 20 // bytes of a request
	MaxResponse    = 64 << 20 // bytes of a response; a stream has no bound
	MaxConns       = 2048     // connections that came in
	MaxHandshakes  = 128      // of those, without a proved identity
	MaxCallsToNode = 64       // calls to one node at a time; more wait
)
