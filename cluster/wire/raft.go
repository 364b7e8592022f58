package wire

import (
	"context"
	"net"
	"sync"
	"time"
)

// raftListener hands the connections of raft to whoever adapts it.
type raftListener struct {
	addr  net.Addr
	conns chan net.Conn
	done  <-chan struct{} // the end of the port

	once   sync.Once
	closed chan struct{}
}

// Raft returns the listener of the connections that are for raft. Their peers
// are members of the cluster, as Admit has it.
func (p *Port) Raft() net.Listener { return p.raft }

// hand waits until raft takes the connection. If raft takes none within the
// stall time it is closed, so that the peer does not wait for ever.
func (r *raftListener) hand(l *link) {
	// The handshake left its deadline on the connection. It would cut the
	// connection off in the middle of raft's work.
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

// Accept returns the next connection.
func (r *raftListener) Accept() (net.Conn, error) {
	select {
	case c := <-r.conns:
		return c, nil
	case <-r.closed:
	case <-r.done:
	}
	return nil, net.ErrClosed
}

// Close ends Accept; the port goes on.
func (r *raftListener) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

// Addr is the address of the port.
func (r *raftListener) Addr() net.Addr { return r.addr }

// DialRaft connects to the raft of a node.
func (p *Port) DialRaft(ctx context.Context, t Target) (net.Conn, error) {
	return p.dial(ctx, t, Raft)
}
