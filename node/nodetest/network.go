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

// network simulates the network between the nodes of a fleet. Each pair of nodes has two links, one
// in each direction, and every connection uses both:
//
//	n1 dials n2     what n1 writes passes the link 1→2, what it reads 2→1
//	n1 gossips      a packet to n2 passes the link 1→2, a connection needs both
//
// Data on a cut link is neither lost nor refused: it waits until the link is restored or the sender
// gives up, as if TCP sent it again. Gossip packets are lost.
type network struct {
	mu      sync.Mutex // guards the fields below
	owner   map[string]int
	links   map[[2]int]link
	changed chan struct{} // closed and replaced when a link changes
	flaps   []chan struct{}
}

// link is one direction between two nodes.
type link struct {
	cut   bool
	delay time.Duration // for each piece that is sent
}

func newNetwork() *network {
	return &network{owner: map[string]int{}, links: map[[2]int]link{}, changed: make(chan struct{})}
}

// setOwner records which node listens at an address.
func (w *network) setOwner(addr string, node int) {
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

// setLocked changes links, and wakes those who wait on them. The caller holds mu.
func (w *network) setLocked(change func(l *link), links [][2]int) {
	for _, id := range links {
		l := w.links[id]
		change(&l)
		w.links[id] = l
	}

	// Wake all waiters, which then check their links again.
	close(w.changed)
	w.changed = make(chan struct{})
}

// heal restores every link and ends all flapping.
func (w *network) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	// Hold the lock throughout, so that no flap cuts a link after this.
	for _, stop := range w.flaps {
		close(stop)
	}
	w.flaps = nil

	clear(w.links)
	close(w.changed)
	w.changed = make(chan struct{})
}

// flap cuts and restores links in turn until heal.
func (w *network) flap(period time.Duration, links ...[2]int) {
	stop := make(chan struct{})

	// Register it before it runs, so that an immediate heal ends it.
	w.mu.Lock()
	w.flaps = append(w.flaps, stop)
	w.mu.Unlock()

	go func() {
		tick := time.NewTicker(period)
		defer tick.Stop()
		for cut := true; w.setLinks(stop, cut, links); cut = !cut {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
}

// setLinks cuts or restores links for a flap. It returns false if the flap has ended.
func (w *network) setLinks(stop <-chan struct{}, cut bool, links [][2]int) bool {
	// Check and change under one lock: after a heal in between, nobody would restore the link.
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

// worstState returns the worst state of the links, and a channel that closes when any link changes.
func (w *network) worstState(links ...[2]int) (link, <-chan struct{}) {
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

// pair returns the links between a node and the owner of an address.
func (w *network) pair(from int, addr string) (out, in [2]int, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	to, known := w.owner[addr]
	return [2]int{from, to}, [2]int{to, from}, known
}

// reach returns the Reach option of a node.
func (w *network) reach(from int) func(network, addr string) bool {
	return func(network, addr string) bool {
		out, in, known := w.pair(from, addr)
		// Addresses outside of the fleet, such as a test's code host, are always reachable.
		if !known {
			return true
		}

		links := [][2]int{out}
		if network == "tcp" {
			// A connection needs both directions, a packet only one.
			links = append(links, in)
		}
		l, _ := w.worstState(links...)
		return !l.cut
	}
}

// dial returns the Dial option of a node. Over cut links it waits, as for a machine that does not
// answer.
func (w *network) dial(from int) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		out, in, known := w.pair(from, addr)
		// Check again after each change: a link may be cut again meanwhile.
		for known {
			l, changed := w.worstState(out, in)
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

		// conn checks both links for each piece, because they may be cut at any time.
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
	held        []byte // read but not delivered before the deadline
}

// Write sends b when the link is open.
func (c *conn) Write(b []byte) (int, error) {
	if err := c.waitForLink(c.out, c.write); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// Read returns data when the link is open.
func (c *conn) Read(b []byte) (int, error) {
	// Deliver held bytes first, to keep the order.
	if len(c.held) == 0 {
		n, err := c.Conn.Read(b)
		// As in TCP, bytes that have arrived must be there for the next read.
		if err != nil || n == 0 {
			return n, err
		}

		// The link may be cut now.
		if err := c.waitForLink(c.in, c.read); err != nil {
			c.held = append(c.held, b[:n]...)
			return 0, err
		}
		return n, nil
	}
	if err := c.waitForLink(c.in, c.read); err != nil {
		return 0, err
	}
	n := copy(b, c.held)
	c.held = c.held[n:]
	return n, nil
}

// waitForLink waits until a link is open, and for its delay.
func (c *conn) waitForLink(id [2]int, d *deadline) error {
	slept := false
	for {
		// Check again after each event: the link may be cut during its delay.
		l, changed := c.w.worstState(id)
		if !l.cut && (slept || l.delay == 0) {
			return nil
		}

		var after <-chan time.Time
		if !l.cut {
			// Once the link is open, the delay runs to its end.
			timer := time.NewTimer(l.delay)
			defer timer.Stop()
			after, changed = timer.C, nil
		}

		// A reader may move its deadline to end a waiting read.
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

// Close also ends waiting reads and writes.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline limits reads, including waiting ones.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.read.set(t)
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline limits writes, including waiting ones.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.write.set(t)
	return c.Conn.SetWriteDeadline(t)
}

// deadline is a time that can be moved while a goroutine waits for it.
type deadline struct {
	mu    sync.Mutex // guards the fields below
	at    time.Time
	moved chan struct{} // closed and replaced when at changes
}

func newDeadline() *deadline { return &deadline{moved: make(chan struct{})} }

func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = t
	close(d.moved)
	d.moved = make(chan struct{})
}

// wait returns a channel that closes when the deadline has passed (nil without one), and a
// channel that closes when the deadline is moved.
func (d *deadline) wait() (passed <-chan time.Time, moved <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at.IsZero() {
		return nil, d.moved
	}
	return time.After(d.at.Sub(clock.Now())), d.moved
}
