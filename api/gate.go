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

	"github.com/shoalsearch/shoal/clock"
)

// gate is the listener of a door of the server. It bounds the connections of
// the process and of one address, and it never ends because accepting one
// failed: a process that has run out of descriptors for a moment goes on when
// it has some again.
//
// A connection waits while no request of it is being answered: nothing came
// yet, or a head is incomplete, or it is kept alive between two requests. Where
// there are too many connections the one that has waited longest makes room,
// first of those that have never asked anything. So somebody who opens
// thousands and says nothing takes places from themselves only.
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

// Accept waits for the next connection that there is room for. It fails only
// when the listener is closed.
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

		pause = acceptPause
		if c := g.crowd.enter(raw, g.door); c != nil {
			return c, nil
		}
	}
}

// guest is an open connection.
type guest struct {
	net.Conn
	door  door
	crowd *crowd
	from  *origin // nil where connections of an address are not counted

	// The fields below are guarded by crowd.mu.
	gone  bool
	state int               // of the states below
	here  [2]*queue.Element // places in the lists of the crowd and of the origin, nil while a request is answered
}

// The states of a connection. Those before serving are the ones that wait.
const (
	fresh = iota // has never asked anything
	idle         // has asked before
	serving
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

// origin is an address that connections come from.
type origin struct {
	addr    netip.Addr
	open    int
	waiting [serving]queue.List
}

// crowd is all open connections of a server.
type crowd struct {
	limit      int                   // connections
	perAddress int                   // of one address
	trusted    func(netip.Addr) bool // addresses that speak for others: not bounded by perAddress
	log        *slog.Logger
	now        func() time.Time
	stop       <-chan struct{} // ends a pause
	dropped    *prometheus.CounterVec

	mu      sync.Mutex // guards the fields below, and those of guests and origins
	open    int
	origins map[netip.Addr]*origin
	waiting [serving]queue.List
	warned  time.Time
}

// The reasons for which a connection is dropped, as the metric has them.
const (
	dropWaiting = "waited"  // made room for another one
	dropFull    = "full"    // there were too many
	dropAddress = "address" // there were too many of its address
)

// enter counts a new connection, or closes it where nobody can make room.
func (w *crowd) enter(raw net.Conn, d door) *guest {
	c := &guest{Conn: raw, door: d, crowd: w}
	w.mu.Lock()
	from := w.origin(raw, d)

	var victim *guest
	reason := ""

	// Room is made by the oldest that waits: of the same address, or of all.
	if from != nil && from.open >= w.perAddress {
		if victim = oldest(&from.waiting); victim == nil {
			reason = dropAddress
		}
	}
	if victim == nil && reason == "" && w.open >= w.limit {
		if victim = oldest(&w.waiting); victim == nil {
			reason = dropFull
		}
	}

	// Its place is given away at once, or two newcomers would take the same victim.
	if victim != nil {
		w.forget(victim)
	}

	if reason == "" {
		w.open++
		if c.from = from; from != nil {
			from.open++
			w.origins[from.addr] = from
		}
		w.put(c, fresh)
	}
	w.mu.Unlock()

	// Closing is a system call or two: not under the lock.
	if victim != nil {
		w.dropped.WithLabelValues(dropWaiting).Inc()
		victim.Conn.Close()
	}
	if reason != "" {
		w.dropped.WithLabelValues(reason).Inc()
		refuse(raw)
		return nil
	}
	return c
}

// origin finds or makes the origin of a connection; nil where it is not bounded.
func (w *crowd) origin(c net.Conn, d door) *origin {
	addr := addressOf(c.RemoteAddr())
	if d != doorAPI || !addr.IsValid() || w.trusted(addr) {
		return nil
	}
	if o := w.origins[addr]; o != nil {
		return o
	}
	return &origin{addr: addr}
}

// addressOf is the address of a peer without its port; not valid where it has none.
func addressOf(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap()
}

// refuse tells a client that there is no room, if it takes the message at once.
func refuse(c net.Conn) {
	defer c.Close()
	body := (&failure{Status: 503, Code: codeUnavailable, Message: "This node has as many connections as it may: try again, or close some of yours."}).body()
	head := "HTTP/1.1 503 Service Unavailable\r\nContent-Type: " + mimeJSON + "\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
	if c.SetWriteDeadline(clock.In(50*time.Millisecond)) == nil {
		_, _ = c.Write(append([]byte(head), body...)) // best effort: the connection ends in any case
	}
}

// oldest is the connection that has waited longest, those first that have never asked.
func oldest(lists *[serving]queue.List) *guest {
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

	if c.state = state; state == serving {
		return
	}
	for i, l := range lists() {
		if l != nil {
			c.here[i] = l.PushBack(c)
		}
	}
}

// begin notes that a request of a connection is being answered, end that it was.
func (w *crowd) begin(c *guest) { w.move(c, serving) }

func (w *crowd) end(c *guest) { w.move(c, idle) }

func (w *crowd) move(c *guest, state int) {
	if c == nil {
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
	if c.gone {
		return
	}
	w.put(c, serving) // in no list
	c.gone = true
	w.open--
	if c.from == nil {
		return
	}
	if c.from.open--; c.from.open == 0 {
		delete(w.origins, c.from.addr)
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

	if victim != nil {
		w.dropped.WithLabelValues(dropWaiting).Inc()
		victim.Conn.Close()
	}
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
