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
// and of each network. Accept continues after errors, such as a moment without free descriptors.
//
// A connection waits while it has no running request: nothing has come yet, the head or a
// stranger's body is incomplete, or it is kept alive. A stranger is a client without a valid
// credential. If there are too many connections, the gate closes the one that waits longest: first
// among those that never sent a request, then among those of strangers, then among the others. So a
// client that opens thousands of idle connections only hurts itself.
// There is always a waiting connection to close, because the limit of running requests is lower.
// Connections of the operator do not count.
type gate struct {
	net.Listener
	door  door
	crowd *crowd
}

// door names the listener by which a connection came.
type door uint8

const (
	doorAPI     door = iota // the address of the API, where callers authenticate
	doorSocket              // the socket in the data directory: whoever can open it is the operator
	doorMetrics             // the address for metrics, which serves metrics and health only
)

// Pauses after Accept fails for lack of descriptors or memory.
const (
	firstAcceptPause = 5 * time.Millisecond // after the first failure; each further one doubles it
	maxAcceptPause   = time.Second
	acceptWarnPause  = time.Minute // between two warnings
)

// Accept returns the next connection. It fails only if the listener is closed or the server stops.
func (g *gate) Accept() (net.Conn, error) {
	pause := firstAcceptPause
	for {
		raw, err := g.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}

		if err != nil {
			// Close a waiting connection. Otherwise a descriptor may become free only after minutes.
			g.crowd.acceptFailed(err)
			if !g.crowd.pause(pause) {
				return nil, net.ErrClosed
			}
			pause = min(2*pause, maxAcceptPause)
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
	from  *network // nil if the client's network has no limit

	// The fields below are guarded by crowd.mu.
	gone     bool              // it counts no more
	state    int               // one of the states below
	elements [2]*queue.Element // of the waiting lists of the crowd and of the network; nil while a request runs
}

// States of a connection. In the states before busyHolder it waits. A stranger has no valid
// credential, a holder has one.
const (
	fresh        = iota // it has never sent a request
	idleStranger        // its last request was a stranger's
	idleHolder          // its last request was a holder's
	busyHolder          // it runs a holder's request
	busyStranger        // it runs a stranger's request
)

// Close closes the connection, which no longer counts.
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

// guestOf returns the guest below a TLS connection, or c itself; nil if there is none.
func guestOf(c net.Conn) *guest {
	if layer, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = layer.NetConn()
	}
	g, _ := c.(*guest)
	return g
}

// enteredBy returns the door by which a connection came; doorAPI for nil.
func (c *guest) enteredBy() door {
	if c == nil {
		return doorAPI
	}
	return c.door
}

// network counts the connections from one address, or a /64 of IPv6.
type network struct {
	addr    netip.Addr
	open    int
	waiting [busyHolder]queue.List // of *guest by state, the longest waiting first
}

// crowd is all open connections of a server.
type crowd struct {
	limit      int                   // of open connections
	perAddress int                   // limit of open connections of one network
	trusted    func(netip.Addr) bool // reports proxies, which perAddress does not limit
	log        *slog.Logger
	now        func() time.Time
	stop       <-chan struct{} // closed when the server stops
	dropped    prometheus.Counter

	mu            sync.Mutex // guards the fields below, and those of guests and networks
	open          int
	busyStrangers int
	networks      map[netip.Addr]*network
	waiting       [busyHolder]queue.List // of *guest by state, the longest waiting first
	warned        time.Time              // when the last warning was logged
}

// enter counts a new connection. If there are too many of its network, or altogether, it closes the
// longest waiting one of these. If none waits, the new one enters above the limit.
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
		victim = w.chooseVictim()
	}

	// Free the victim's place before unlocking. Otherwise another new connection could choose it too.
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

	// Close the victim without the lock, because that makes system calls.
	w.drop(victim)
	return c
}

// network returns the network of a connection, which is new if it has no other connection; nil if
// its connections are not limited. The caller must hold the lock.
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

// chooseVictim returns the waiting connection to close; nil if none waits. Strangers that have sent
// a request keep at most half of all places. Otherwise few places would remain for fresh
// connections, and these would close each other. The caller must hold the lock.
func (w *crowd) chooseVictim() *guest {
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

// longestIdle returns the longest waiting connection of the first state that has one: fresh, then
// strangers, then holders. It returns nil if none waits.
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
	waitingLists := func() [2]*queue.List { // of the crowd and of the network, for c.state
		lists := [2]*queue.List{&w.waiting[c.state], nil}
		if c.from != nil {
			lists[1] = &c.from.waiting[c.state]
		}
		return lists
	}

	// Remove it from the lists of the previous state.
	if c.elements[0] != nil {
		for i, l := range waitingLists() {
			if l != nil {
				l.Remove(c.elements[i])
			}
		}
		c.elements = [2]*queue.Element{}
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
	for i, l := range waitingLists() {
		if l != nil {
			c.elements[i] = l.PushBack(c)
		}
	}
}

// begin marks a connection as running a request of a client with the standing by.
func (w *crowd) begin(c *guest, by standing) {
	if by == stranger {
		w.setStateIfOpen(c, busyStranger)
	} else {
		w.setStateIfOpen(c, busyHolder)
	}
}

// end marks a connection as waiting after a request of a client with the standing by.
func (w *crowd) end(c *guest, by standing) {
	if by == stranger {
		w.setStateIfOpen(c, idleStranger)
	} else {
		w.setStateIfOpen(c, idleHolder)
	}
}

// setStateIfOpen sets the state of a connection that still counts.
func (w *crowd) setStateIfOpen(c *guest, state int) {
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

// forget stops counting a connection; a second call does nothing. The caller must hold the lock.
func (w *crowd) forget(c *guest) {
	// enter has forgotten a victim before its Close calls forget again.
	if c.gone || c.door == doorSocket {
		return
	}
	w.setState(c, busyHolder) // to remove it from the waiting lists
	c.gone = true
	w.open--
	if c.from == nil {
		return
	}
	if c.from.open--; c.from.open == 0 {
		delete(w.networks, c.from.addr)
	}
}

// acceptFailed closes the longest waiting connection, and logs err at most once a minute.
func (w *crowd) acceptFailed(err error) {
	// Close one connection only: the next Accept needs one descriptor.
	w.mu.Lock()
	victim := longestIdle(&w.waiting)

	if victim != nil {
		w.forget(victim)
	}
	warn := w.now().Sub(w.warned) >= acceptWarnPause
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

// pause waits for d and returns true, or returns false as soon as the server stops.
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
