package api

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// peerInterval is how often the connections of running requests are looked
// at, and so how long a search may go on for a client that has left.
const peerInterval = 100 * time.Millisecond

// peers ends the requests of clients that have left. fasthttp does not read
// from a connection while a handler runs and so cannot tell; a look at the
// socket without taking from it can. One goroutine looks after all requests,
// so a request costs two map operations and no goroutine of its own.
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

// add watches the connection of a request until the returned number is
// removed. When the client closes it, gone is called with errPeerGone.
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

// run looks until ctx ends.
func (p *peers) run(ctx context.Context) {
	tick := time.NewTicker(peerInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.look()
		}
	}
}

// look tests every connection once. It holds the lock all the while: a
// request that is removed is never looked at again, so a connection is never
// touched on behalf of a request that is over. A look is one system call that
// does not block.
func (p *peers) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, w := range p.all {
		if closed(w.conn) {
			w.gone(errPeerGone)
			delete(p.all, id)
		}
	}
}

// closed reports whether the other side closed its connection: a read that
// would not block finds the end, or an error. Bytes of a next request that
// wait in the socket mean the client is there.
func closed(conn net.Conn) bool {
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
