package wire

import (
	"context"
	"net"
	"sync"
	"time"
)

// raftListener passes raft's connections to its transport.
type raftListener struct {
	addr  net.Addr
	conns chan net.Conn
	done  <-chan struct{} // closed when the port ends

	once   sync.Once
	closed chan struct{}
}

// Raft returns the listener for raft connections. Admit has accepted their peers.
func (p *Port) Raft() net.Listener { return p.raft }

// handOver waits until raft accepts the connection. It closes the connection after the stall time, so
// that the peer does not wait for ever.
func (r *raftListener) handOver(l *link) {
	// Remove the deadline of the handshake: it would cut off raft later.
	if err := l.SetDeadline(time.Time{}); err != nil {
		l.Close()
		return
	}

	t := time.NewTimer(l.stall)
	defer t.Stop()

	select {
	case r.conns <- l:
	case <-t.C:
		l.Close()
	case <-r.closed:
		l.Close()
	case <-r.done:
		l.Close()
	}
}

// Accept returns the next raft connection.
func (r *raftListener) Accept() (net.Conn, error) {
	select {
	case c := <-r.conns:
		return c, nil
	case <-r.closed:
	case <-r.done:
	}
	return nil, net.ErrClosed
}

// Close ends Accept. The port stays open.
func (r *raftListener) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

// Addr returns the address of the port.
func (r *raftListener) Addr() net.Addr { return r.addr }

// DialRaft opens a raft connection to a node.
func (p *Port) DialRaft(ctx context.Context, t Target) (net.Conn, error) {
	return p.dial(ctx, t, Raft)
}
