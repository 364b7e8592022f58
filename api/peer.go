package api

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// peerInterval is the pause between two checks of the clients of running requests. A search may run
// that long after its client has left.
const peerInterval = 100 * time.Millisecond

// peers cancels the requests of clients that have left. fasthttp does not notice that a client has
// left, because it does not read from a connection while a handler runs. peers checks the sockets
// without reading from them. One goroutine checks all requests, so each request costs only two map
// operations.
type peers struct {
	mu     sync.Mutex // guards the fields below
	lastID uint64
	all    map[uint64]peer
}

type peer struct {
	conn   net.Conn
	cancel context.CancelCauseFunc
}

func newPeers() *peers { return &peers{all: map[uint64]peer{}} }

// add watches the connection of a request until remove is called with the returned id, which is
// never 0. If the client closes the connection, run calls cancel with errPeerGone.
func (p *peers) add(conn net.Conn, cancel context.CancelCauseFunc) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastID++
	p.all[p.lastID] = peer{conn, cancel}
	return p.lastID
}

func (p *peers) remove(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, id)
}

// run checks the connections until ctx ends.
func (p *peers) run(ctx context.Context) {
	tick := time.NewTicker(peerInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.checkAll()
		}
	}
}

// checkAll checks every connection once. If a client has closed its connection, checkAll cancels the
// request. It holds the lock, so that it never uses the connection of a removed request. Each check is
// one system call that does not block.
func (p *peers) checkAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, watched := range p.all {
		if isClosed(watched.conn) {
			watched.cancel(errPeerGone)
			delete(p.all, id)
		}
	}
}

// isClosed reports whether the client has closed its connection: whether a read would return the end
// or an error at once. A client that has sent bytes of its next request is still there.
func isClosed(conn net.Conn) bool {
	if g := guestOf(conn); g != nil { // check the socket below TLS
		conn = g
	}
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}

	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}

	closed := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch {
		case err == syscall.EAGAIN || err == syscall.EINTR: // nothing to read now
		case err != nil || n == 0:
			closed = true
		}
	})
	return closed || err != nil
}
