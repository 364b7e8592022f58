package api

import (
	queue "container/list"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shoalsearch/shoal/cluster/origin"
)

// gate is the listener of one door of the server. It limits the open connections of the server
// and of each network. Accept survives errors, such as a moment without free descriptors.
//
// A connection waits while it has no running request: nothing has come yet, the head or a
// stranger's body is incomplete, or it is kept alive. If there are too many connections, the
// longest waiting one is closed: first those that never sent a request, then strangers. So a
// client that opens thousands of idle connections only hurts itself. There is always a waiting
// connection to close, because running requests have a lower limit. Connections of the operator
// do not count.
type gate struct {
	net.Listener
	door  door
	crowd *crowd
}

// door is the listener by which a connection came.
type door uint8

const ( // the address of the API, where callers authenticate
	doorAPI     door = iota // the socket in the data directory: whoever can open it is the operator
	doorSocket              // the address for metrics, which serves nothing else
	doorMetrics             // the address for metrics: nothing else is told there
)

// Pauses after Accept fails for lack of descriptors or memory.
const (
	acceptPause  = 5 * time.Millisecond // after the first failure, doubled after each further one
	acceptPauses = time.Second          // longest pause
	acceptWarns  = time.Minute          // between two warnings
)

// Accept returns the next connection. It fails only if the listener is closed.
func (g *gate) Accept() (net.Conn, error) {
	pause := acceptPause
	for {
		raw, err := g.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}

		if err != nil {
			// Close a waiting connection: otherwise no descriptor might become free for minutes.
			g.crowd.acceptFailed(err)
			if !g.crowd.pause(pause) {
				return nil, net.ErrClosed
			}
			pause = min(2*pause, acceptPauses)
			continue
		}

		return g.crowd.enter(raw, g.door), nil
	}
}

// guest is an open connection.
type guest struct {
	net.Conn
	door  door
	crowd *crowd
	from  *network // nil if connections of the address are not limited

	// The fields below are guarded by crowd.mu.
	gone  bool
	state int               // one of the states below
	here  [2]*queue.Element // its places in the lists of the crowd and of the network; nil while a request runs
}

// States of a connection. Those before busyHolder wait.
const (
	fresh        = iota // has never sent a request
	idleStranger        // has sent requests without a credential
	idleHolder          // has sent requests with a credential
	busyHolder
	busyStranger
)

// Close closes the connection and frees its place.
func (c *guest) Close() error {
	c.crowd.leave(c)
	return c.Conn.Close()
}

// SyscallConn gives access to the socket, to check whether the client is still connected.
func (c *guest) SyscallConn() (syscall.RawConn, error) {
	sc, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return sc.SyscallConn()
}

// guestOf returns the connection below TLS.
func guestOf(c net.Conn) *guest {
	if layer, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = layer.NetConn()
	}
	g, _ := c.(*guest)
	return g
}

// by returns the door by which a connection came.
func (c *guest) by() door {
	if c == nil {
		return doorAPI
	}
	return c.door
}

// network counts the connections from one address, or a /64 of IPv6.
type network struct {
	addr    netip.Addr
	open    int
	waiting [busyHolder]queue.List
}

// crowd is all open connections of a server.
type crowd struct {
	limit      int                   // open connections
	perAddress int                   // open connections of one network
	trusted    func(netip.Addr) bool // proxies, which perAddress does not limit
	log        *slog.Logger
	now        func() time.Time
	stop       <-chan struct{} // closed when the server stops
	dropped    prometheus.Counter

	mu            sync.Mutex // guards the fields below, and those of guests and networks
	open          int
	busyStrangers int
	networks      map[netip.Addr]*network
	waiting       [busyHolder]queue.List
	warned        time.Time
}

// enter counts a new connection. If there are too many, it closes the longest waiting one of the
// same network, or of all. If none waits, it admits one more, which then waits itself.
func (w *crowd) enter(raw net.Conn, d door) *guest {
	c := &guest{Conn: raw, door: d, crowd: w}
	if d == doorSocket {
		return c
	}
	w.mu.Lock()
	from := w.network(raw, d)

	var victim *guest
	if from != nil && from.open >= w.perAddress {
		victim = longestIdle(&from.waiting)
	}
	if victim == nil && w.open >= w.limit {
		victim = w.longest()
	}

	// Free the victim's place now, or two new connections would choose the same victim.
	if victim != nil {
		w.forget(victim)
	}

	w.open++
	if c.from = from; from != nil {
		from.open++
		w.networks[from.addr] = from
	}
	w.setState(c, fresh)
	w.mu.Unlock()

	// Close outside of the lock, because it makes system calls.
	w.drop(victim)
	return c
}

// network returns the network of a connection, or a new one; nil if it is not limited.
func (w *crowd) network(c net.Conn, d door) *network {
	addr := origin.Of(c.RemoteAddr())
	if d != doorAPI || !addr.IsValid() || w.trusted(addr) {
		return nil
	}
	addr = origin.Network(addr)
	if n := w.networks[addr]; n != nil {
		return n
	}
	return &network{addr: addr}
}

// longest returns the connection to close; nil if none waits. Strangers with requests keep at
// most half of all places. Otherwise few places would remain for connections without a request,
// and new ones would close each other.
func (w *crowd) longest() *guest {
	if e := w.waiting[idleStranger].Front(); e != nil && w.waiting[idleStranger].Len()+w.busyStrangers > w.limit/2 {
		return e.Value.(*guest)
	}
	return longestIdle(&w.waiting)
}

// drop closes a connection; nil does nothing.
func (w *crowd) drop(victim *guest) {
	if victim != nil {
		w.dropped.Inc()
		victim.Conn.Close()
	}
}

// longestIdle returns the longest waiting connection; those without a request come first.
func longestIdle(lists *[busyHolder]queue.List) *guest {
	for i := range lists {
		if e := lists[i].Front(); e != nil {
			return e.Value.(*guest)
		}
	}
	return nil
}

// setState moves a connection to a state. The caller must hold the lock.
func (w *crowd) setState(c *guest, state int) {
	lists := func() [2]*queue.List {
		all := [2]*queue.List{&w.waiting[c.state], nil}
		if c.from != nil {
			all[1] = &c.from.waiting[c.state]
		}
		return all
	}

	// Remove it from the lists of the previous state.
	if c.here[0] != nil {
		for i, l := range lists() {
			if l != nil {
				l.Remove(c.here[i])
			}
		}
		c.here = [2]*queue.Element{}
	}
	if c.state == busyStranger {
		w.busyStrangers--
	}

	if c.state = state; state == busyStranger {
		w.busyStrangers++
	}
	if state >= busyHolder {
		return
	}
	for i, l := range lists() {
		if l != nil {
			c.here[i] = l.PushBack(c)
		}
	}
}

// begin marks a connection as running a request, end as waiting.
func (w *crowd) begin(c *guest, by standing) {
	if by == stranger {
		w.move(c, busyStranger)
	} else {
		w.move(c, busyHolder)
	}
}

// end marks a connection idle after a request. by is who sent the request.
func (w *crowd) end(c *guest, by standing) {
	if by == stranger {
		w.move(c, idleStranger)
	} else {
		w.move(c, idleHolder)
	}
}

// move changes the state of a connection, unless it is closed already.
func (w *crowd) move(c *guest, state int) {
	if c == nil || c.door == doorSocket {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !c.gone {
		w.setState(c, state)
	}
}

func (w *crowd) leave(c *guest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(c)
}

// forget frees the place of a connection. The caller must hold the lock.
func (w *crowd) forget(c *guest) {
	// A victim's own Close comes later and must not count again.
	if c.gone || c.door == doorSocket {
		return
	}
	w.setState(c, busyHolder) // in no list
	c.gone = true
	w.open--
	if c.from == nil {
		return
	}
	if c.from.open--; c.from.open == 0 {
		delete(w.networks, c.from.addr)
	}
}

// acceptFailed closes the longest waiting connection after Accept failed, and warns from time to time.
func (w *crowd) acceptFailed(err error) {
	// Close only one each time: one descriptor is enough to go on.
	w.mu.Lock()
	victim := longestIdle(&w.waiting)

	if victim != nil {
		w.forget(victim)
	}
	warn := w.now().Sub(w.warned) >= acceptWarns
	if warn {
		w.warned = w.now()
	}
	open := w.open
	w.mu.Unlock()

	w.drop(victim)
	if warn {
		w.log.Warn("a connection could not be accepted; the node goes on and tries again", "err", err, "connections", open)
	}
}

// pause waits; it returns false if the server stops.
func (w *crowd) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.stop:
		return false
	case <-t.C:
		return true
	}
}

func (w *crowd) count() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return float64(w.open)
}
