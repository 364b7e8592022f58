package nodetest

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// network stands between the nodes of a fleet. Each pair of nodes has two
// links, one in each direction, and every connection passes through both:
//
//	n1 dials n2     what n1 writes passes the link 1→2, what it reads 2→1
//	n1 gossips      a packet to n2 passes the link 1→2, a connection needs both
//
// What is sent over a cut link is neither lost nor refused: it waits until
// the link is mended or the sender gives up, as bytes wait for TCP to send
// them again. Packets of gossip are lost.
type network struct {
	mu      sync.Mutex // guards the fields below
	owner   map[string]int
	links   map[[2]int]link
	changed chan struct{} // closed when a link changes
	flaps   []chan struct{}
}

// link is one direction between two nodes.
type link struct {
	cut   bool
	delay time.Duration // of each piece that is sent
}

func newNetwork() *network {
	return &network{owner: map[string]int{}, links: map[[2]int]link{}, changed: make(chan struct{})}
}

// own says which node listens at an address.
func (w *network) own(addr string, node int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owner[addr] = node
}

// set changes links.
func (w *network) set(change func(l *link), links ...[2]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setLocked(change, links)
}

func (w *network) setLocked(change func(l *link), links [][2]int) {
	for _, id := range links {
		l := w.links[id]
		change(&l)
		w.links[id] = l
	}

	// Whoever waits looks at its links again: that any has changed is all they are told.
	close(w.changed)
	w.changed = make(chan struct{})
}

// heal mends every link and ends all flapping.
func (w *network) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	// Under the same lock as the links: no flap cuts one behind this.
	for _, stop := range w.flaps {
		close(stop)
	}
	w.flaps = nil

	clear(w.links)
	close(w.changed)
	w.changed = make(chan struct{})
}

// flap cuts and mends links in turn until heal.
func (w *network) flap(period time.Duration, links ...[2]int) {
	stop := make(chan struct{})

	// Noted before it runs, so that a heal that comes at once ends it.
	w.mu.Lock()
	w.flaps = append(w.flaps, stop)
	w.mu.Unlock()

	go func() {
		tick := time.NewTicker(period)
		defer tick.Stop()
		for cut := true; w.turn(stop, cut, links); cut = !cut {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
}

// turn cuts or mends links for a flap. It reports false when that was ended.
func (w *network) turn(stop <-chan struct{}, cut bool, links [][2]int) bool {
	// One lock for the look and the change: a heal in between would be followed by a cut
	// that nobody mends.
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-stop:
		return false
	default:
		w.setLocked(func(l *link) { l.cut = cut }, links)
		return true
	}
}

// state is what links are now, the worst of them, and a channel that is
// closed when any link changes.
func (w *network) state(links ...[2]int) (link, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var worst link
	for _, id := range links {
		l := w.links[id]
		worst.cut = worst.cut || l.cut
		worst.delay = max(worst.delay, l.delay)
	}
	return worst, w.changed
}

// pair is the links between a node and the owner of an address.
func (w *network) pair(from int, addr string) (out, in [2]int, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	to, known := w.owner[addr]
	return [2]int{from, to}, [2]int{to, from}, known
}

// reach is the Reach of a node.
func (w *network) reach(from int) func(network, addr string) bool {
	return func(network, addr string) bool {
		out, in, known := w.pair(from, addr)
		// What is none of the fleet's, such as a code host of the test, is always reached.
		if !known {
			return true
		}

		links := [][2]int{out}
		if network == "tcp" {
			// A connection needs an answer, a packet none.
			links = append(links, in)
		}
		l, _ := w.state(links...)
		return !l.cut
	}
}

// dial is the Dial of a node: over cut links it waits, as for a machine that
// does not answer.
func (w *network) dial(from int) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		out, in, known := w.pair(from, addr)
		// Asked again after each change: a link may be cut again before this one has run.
		for known {
			l, changed := w.state(out, in)
			if !l.cut {
				break
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}

		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil || !known {
			return c, err
		}

		// Both links are looked at for each piece from here on: they may be cut at any time.
		return &conn{Conn: c, w: w, out: out, in: in, closed: make(chan struct{}), read: newDeadline(), write: newDeadline()}, nil
	}
}

// conn is a connection over two links.
type conn struct {
	net.Conn
	w       *network
	out, in [2]int

	once        sync.Once
	closed      chan struct{}
	read, write *deadline
	held        []byte // read, but not let through before the deadline
}

// Write sends b when the link lets it.
func (c *conn) Write(b []byte) (int, error) {
	if err := c.pass(c.out, c.write); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// Read returns what came once the link lets it through.
func (c *conn) Read(b []byte) (int, error) {
	// What is held goes first: bytes keep their order.
	if len(c.held) == 0 {
		n, err := c.Conn.Read(b)
		// The bytes have left the system: kept here they are there for the next read, as of TCP.
		if err != nil || n == 0 {
			return n, err
		}

		// Let through only now, however long they have been held.
		if err := c.pass(c.in, c.read); err != nil {
			c.held = append(c.held, b[:n]...)
			return 0, err
		}
		return n, nil
	}
	if err := c.pass(c.in, c.read); err != nil {
		return 0, err
	}
	n := copy(b, c.held)
	c.held = c.held[n:]
	return n, nil
}

// pass waits until a link is open, and for its delay.
func (c *conn) pass(id [2]int, d *deadline) error {
	slept := false
	for {
		// Read again after each event: a link may be cut while its delay runs.
		l, changed := c.w.state(id)
		if !l.cut && (slept || l.delay == 0) {
			return nil
		}

		var after <-chan time.Time
		if !l.cut {
			// The delay runs to its end whatever changes meanwhile, once the link is open.
			timer := time.NewTimer(l.delay)
			defer timer.Stop()
			after, changed = timer.C, nil
		}

		// A deadline can be moved while a read waits, by which the reader ends it.
		passed, moved := d.wait()
		select {
		case <-after:
			slept = true
		case <-changed:
		case <-moved:
		case <-passed:
			return os.ErrDeadlineExceeded
		case <-c.closed:
			return net.ErrClosed
		}
	}
}

// Close ends what waits.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline bounds reads, waiting ones too.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.read.set(t)
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline bounds writes, waiting ones too.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.write.set(t)
	return c.Conn.SetWriteDeadline(t)
}

// deadline is a time that can be moved while somebody waits for it.
type deadline struct {
	mu    sync.Mutex // guards the fields below
	at    time.Time
	moved chan struct{} // closed when at changes
}

func newDeadline() *deadline { return &deadline{moved: make(chan struct{})} }

func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = t
	close(d.moved)
	d.moved = make(chan struct{})
}

// wait returns a channel that tells when the deadline has passed, nil without
// one, and one that tells that it was moved.
func (d *deadline) wait() (passed <-chan time.Time, moved <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at.IsZero() {
		return nil, d.moved
	}
	return time.After(d.at.Sub(clock.Now())), d.moved
}
