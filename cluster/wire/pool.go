package wire

import (
	"context"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// pool keeps the connections on which this node calls others, and bounds how
// many calls to one node run at a time.
type pool struct {
	idleTime time.Duration

	mu    sync.Mutex // guards the fields below
	nodes map[poolKey]*poolNode
}

// poolKey tells connections apart that cannot stand for each other.
type poolKey struct {
	Target
	proto Protocol
	aside bool // for calls that wait for no others
}

// poolNode is what the pool knows of one node and protocol. A call has a slot
// from enter to leave, so
//
//	len(idle) <= cap(slots) = MaxCallsToNode
type poolNode struct {
	slots chan struct{} // holds one value for each call that runs
	users int           // calls that have a slot or wait for one
	idle  []*caller     // the one used last is the last
}

func newPool(idle time.Duration) *pool {
	return &pool{idleTime: idle, nodes: make(map[poolKey]*poolNode)}
}

// enter waits for a slot for a call. Unless it fails, leave must follow.
func (p *pool) enter(ctx context.Context, k poolKey) error {
	p.mu.Lock()
	n := p.nodes[k]
	if n == nil {
		n = &poolNode{slots: make(chan struct{}, MaxCallsToNode)}
		p.nodes[k] = n
	}
	n.users++ // from here on sweep does not forget the node
	p.mu.Unlock()

	// Outside of the lock: it may take as long as a call.
	select {
	case n.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		n.users--
		return context.Cause(ctx)
	}
}

// leave gives the slot of a call back.
func (p *pool) leave(k poolKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.nodes[k]
	<-n.slots
	n.users--
}

// get takes an idle connection, or returns nil.
func (p *pool) get(k poolKey) *caller {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.nodes[k]
	if n == nil || len(n.idle) == 0 {
		return nil
	}

	// The one used last: the others then stay idle until they are closed.
	c := n.idle[len(n.idle)-1]
	n.idle = n.idle[:len(n.idle)-1]
	return c
}

// put gives a connection back after a call. One that has ended meanwhile is
// not kept.
func (p *pool) put(c *caller) {
	p.mu.Lock()
	defer p.mu.Unlock()

	c.mu.Lock()
	dead := c.dead
	c.mu.Unlock()

	// A connection that ends after this look is taken out by drop, which waits for the pool.
	n := p.nodes[c.key]
	if dead || n == nil || len(n.idle) >= MaxCallsToNode {
		c.l.Close()
		return
	}

	c.since = clock.Now()
	n.idle = append(n.idle, c)
}

// drop forgets a connection that has ended.
func (p *pool) drop(c *caller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.nodes[c.key]
	if n == nil {
		return
	}

	// One that a call has at the moment is not among them: put closes it.
	for i, other := range n.idle {
		if other == c {
			n.idle = append(n.idle[:i], n.idle[i+1:]...)
			return
		}
	}
}

// closeIdle closes what is not in use.
func (p *pool) closeIdle() { p.sweep(time.Time{}) }

// sweep closes the connections that were not used since a time, all of them
// for the zero time, and forgets the nodes that have none left.
func (p *pool) sweep(since time.Time) {
	var old []*caller

	p.mu.Lock()
	for k, n := range p.nodes {
		keep := n.idle[:0]
		for _, c := range n.idle {
			if since.IsZero() || c.since.Before(since) {
				old = append(old, c)
			} else {
				keep = append(keep, c)
			}
		}

		clear(n.idle[len(keep):]) // so that the closed ones can be collected
		n.idle = keep

		if len(keep) == 0 && n.users == 0 {
			delete(p.nodes, k)
		}
	}
	p.mu.Unlock()

	// Closing locks the port, so it waits until the pool is unlocked.
	for _, c := range old {
		c.l.Close()
	}
}

// janitor closes connections that nobody uses.
func (p *pool) janitor(ctx context.Context) {
	for clock.Wait(ctx, p.idleTime/4) {
		p.sweep(clock.In(-p.idleTime))
	}
}
