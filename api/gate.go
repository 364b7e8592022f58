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

// gate is the listener of a door of the server. It bounds the connections of
// the process and of one network, and it never ends because accepting one
// failed: a process that has run out of descriptors for a moment goes on when
// it has some again.
//
// A connection waits while no request of it is under way: nothing came yet, or a
// head or a stranger's body is incomplete, or it is kept alive between two
// requests. Where there are too many connections the one that has waited longest
// makes room, first of those that have never asked anything, then of strangers.
// So somebody who opens thousands and says nothing takes places from themselves
// only. A newcomer always finds room: what is under way has a bound of its own,
// below that of connections. The operator's connections do not count.
type gate struct {
	net.Listener
	door  door
	crowd *crowd
}

// door says by which way a connection came in.
type door uint8

const (
	doorAPI     door = iota // the address of the API: whoever asks says who they are
	doorSocket              // the socket in the data directory: whoever can open it is the operator
	doorMetrics             // the address for metrics: nothing else is told there
)

// The pace of waiting for descriptors and memory.
const (
	acceptPause  = 5 * time.Millisecond // after the first failure; twice as long after each further one
	acceptPauses = time.Second          // at most
	acceptWarns  = time.Minute          // between two warnings
)

// Accept waits for the next connection. It fails only when the listener is closed.
func (g *gate) Accept() (net.Conn, error) {
	pause := acceptPause
	for {
		raw, err := g.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}

		if err != nil {
			// Somebody who waits gives up a descriptor: else nobody might, for minutes.
			g.crowd.starved(err)
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
	from  *network // nil where connections of an address are not counted

	// The fields below are guarded by crowd.mu.
	gone  bool
	state int               // one of the states below
	here  [2]*queue.Element // places in the lists of the crowd and of the origin, nil while a request is answered
}

// The states of a connection. Those before busyHolder are the ones that wait.
const (
	fresh        = iota // has never asked anything
	idleStranger        // has asked before, without a credential
	idleHolder          // has asked before, with one
	busyHolder
	busyStranger
)

// Close closes the connection and gives its place back.
func (c *guest) Close() error {
	c.crowd.leave(c)
	return c.Conn.Close()
}

// SyscallConn is the socket, for those who look whether the client is still there.
func (c *guest) SyscallConn() (syscall.RawConn, error) {
	sc, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return sc.SyscallConn()
}

// guestOf finds the connection below a layer of TLS.
func guestOf(c net.Conn) *guest {
	if layer, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = layer.NetConn()
	}
	g, _ := c.(*guest)
	return g
}

// by is the door that a connection came in by.
func (c *guest) by() door {
	if c == nil {
		return doorAPI
	}
	return c.door
}

// network is where connections come from: an address, or a /64 of IPv6.
type network struct {
	addr    netip.Addr
	open    int
	waiting [busyHolder]queue.List
}

// crowd is all open connections of a server.
type crowd struct {
	limit      int                   // connections
	perAddress int                   // of one network
	trusted    func(netip.Addr) bool // addresses that speak for others: not bounded by perAddress
	log        *slog.Logger
	now        func() time.Time
	stop       <-chan struct{} // ends a pause
	dropped    prometheus.Counter

	mu            sync.Mutex // guards the fields below, and those of guests and networks
	open          int
	busyStrangers int
	networks      map[netip.Addr]*network
	waiting       [busyHolder]queue.List
	warned        time.Time
}

// enter counts a new connection. Where there are too many, one that waits makes
// room: of the same network, or of all. Where all are under way there is room for
// one more, which waits and makes room for the next.
func (w *crowd) enter(raw net.Conn, d door) *guest {
	c := &guest{Conn: raw, door: d, crowd: w}
	if d == doorSocket {
		return c
	}
	w.mu.Lock()
	from := w.network(raw, d)

	var victim *guest
	if from != nil && from.open >= w.perAddress {
		victim = oldest(&from.waiting)
	}
	if victim == nil && w.open >= w.limit {
		victim = w.longest()
	}

	// Its place is given away at once, or two newcomers would take the same victim.
	if victim != nil {
		w.forget(victim)
	}

	w.open++
	if c.from = from; from != nil {
		from.open++
		w.networks[from.addr] = from
	}
	w.put(c, fresh)
	w.mu.Unlock()

	// Closing is a system call or two: not under the lock.
	w.drop(victim)
	return c
}

// network finds or makes the network of a connection; nil where it is not bounded.
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

// longest is the connection that makes room for a newcomer, nil where all are
// under way. Strangers that ask keep half of all places at most: else the places
// of those that have never asked would be few, and newcomers would close each other.
func (w *crowd) longest() *guest {
	if e := w.waiting[idleStranger].Front(); e != nil && w.waiting[idleStranger].Len()+w.busyStrangers > w.limit/2 {
		return e.Value.(*guest)
	}
	return oldest(&w.waiting)
}

// drop closes a connection that made room; nil is none.
func (w *crowd) drop(victim *guest) {
	if victim != nil {
		w.dropped.Inc()
		victim.Conn.Close()
	}
}

// oldest is the connection that has waited longest, those first that have never asked.
func oldest(lists *[busyHolder]queue.List) *guest {
	for i := range lists {
		if e := lists[i].Front(); e != nil {
			return e.Value.(*guest)
		}
	}
	return nil
}

// put moves a connection to a state. Callers hold the lock.
func (w *crowd) put(c *guest, state int) {
	lists := func() [2]*queue.List {
		all := [2]*queue.List{&w.waiting[c.state], nil}
		if c.from != nil {
			all[1] = &c.from.waiting[c.state]
		}
		return all
	}

	// Out of the lists of the state before.
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

// begin notes that a request of a connection is under way, end that it was answered.
func (w *crowd) begin(c *guest, by standing) {
	if by == stranger {
		w.move(c, busyStranger)
	} else {
		w.move(c, busyHolder)
	}
}

func (w *crowd) end(c *guest, by standing) {
	if by == stranger {
		w.move(c, idleStranger)
	} else {
		w.move(c, idleHolder)
	}
}

func (w *crowd) move(c *guest, state int) {
	if c == nil || c.door == doorSocket {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !c.gone {
		w.put(c, state)
	}
}

func (w *crowd) leave(c *guest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(c)
}

// forget gives the place of a connection back. Callers hold the lock.
func (w *crowd) forget(c *guest) {
	// The victim's own Close comes later, and must not count twice.
	if c.gone || c.door == doorSocket {
		return
	}
	w.put(c, busyHolder) // in no list
	c.gone = true
	w.open--
	if c.from == nil {
		return
	}
	if c.from.open--; c.from.open == 0 {
		delete(w.networks, c.from.addr)
	}
}

// starved closes the connection that has waited longest, because one more
// could not be accepted, and warns from time to time.
func (w *crowd) starved(err error) {
	// One each time: a descriptor is all that is missing, and the pause grows.
	w.mu.Lock()
	victim := oldest(&w.waiting)

	// Outside of the lock, as all closing.
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

// pause waits, and reports false when the server stops.
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
