package api

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// peerInterval is how often running requests are checked, and so how long a search may go on
// after its client left.
const peerInterval = 100 * time.Millisecond

// peers ends the requests of clients that have left. fasthttp cannot notice that, because it does
// not read from a connection while a handler runs. peers checks the sockets without reading from
// them. One goroutine checks all requests, so each request costs only two map operations.
type peers struct {
	mu   sync.Mutex // guards the fields below
	next uint64
	all  map[uint64]peer
}

type peer struct {
	conn net.Conn
	gone context.CancelCauseFunc
}

func newPeers() *peers { return &peers{all: map[uint64]peer{}} }

// add watches the connection of a request until remove is called with the returned number. If the
// client closes the connection, add calls gone with errPeerGone.
func (p *peers) add(conn net.Conn, gone context.CancelCauseFunc) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	p.all[p.next] = peer{conn, gone}
	return p.next
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

// checkAll checks every connection once. It holds the lock meanwhile, so that it never touches the
// connection of a request that has been removed. Each check is one system call that does not
// block.
func (p *peers) checkAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, w := range p.all {
		if isClosed(w.conn) {
			w.gone(errPeerGone)
			delete(p.all, id)
		}
	}
}

// isClosed reports whether the client closed its connection: a read would return the end or an
// error at once. Waiting bytes of a next request mean that the client is there.
func isClosed(conn net.Conn) bool {
	if g := guestOf(conn); g != nil { // below TLS
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

	gone := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch {
		case err == syscall.EAGAIN || err == syscall.EINTR:
		case err != nil || n == 0:
			gone = true
		}
	})
	return gone || err != nil
}
