package wire

import (
	"context"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// pool keeps outgoing connections for reuse, and limits the concurrent calls per node.
type pool struct {
	idleTime time.Duration

	mu    sync.Mutex // guards the fields below
	nodes map[poolKey]*poolNode
}

// poolKey identifies connections that may replace each other.
type poolKey struct {
	Target
	proto Protocol
	aside bool // for CallAside
}

// poolNode is the pool of one node and protocol. A call has a slot from acquireSlot to releaseSlot, so
//
//	len(idle) <= cap(slots) = MaxCallsToNode
type poolNode struct {
	slots chan struct{} // holds one value per running call
	users int           // calls that have a slot or wait for one
	idle  []*caller     // the most recently used is last
}

func newPool(idle time.Duration) *pool {
	return &pool{idleTime: idle, nodes: make(map[poolKey]*poolNode)}
}

// acquireSlot waits for a slot. Unless it fails, the caller must call releaseSlot.
func (p *pool) acquireSlot(ctx context.Context, k poolKey) error {
	p.mu.Lock()
	n := p.nodes[k]
	if n == nil {
		n = &poolNode{slots: make(chan struct{}, MaxCallsToNode)}
		p.nodes[k] = n
	}
	n.users++ // keeps closeIdleSince from removing the node
	p.mu.Unlock()

	// Wait without the lock: it may take as long as a call.
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

// releaseSlot returns the slot of a call.
func (p *pool) releaseSlot(k poolKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.nodes[k]
	<-n.slots
	n.users--
}

// takeIdle takes an idle connection out of the pool, or returns nil.
func (p *pool) takeIdle(k poolKey) *caller {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.nodes[k]
	if n == nil || len(n.idle) == 0 {
		return nil
	}

	// Take the most recently used connection, so that the others stay idle until they are closed.
	c := n.idle[len(n.idle)-1]
	n.idle = n.idle[:len(n.idle)-1]
	return c
}

// putBack returns a connection to the pool after a call. It closes the connection if it
// is dead, or if the pool has enough.
func (p *pool) putBack(c *caller) {
	p.mu.Lock()
	defer p.mu.Unlock()

	c.mu.Lock()
	dead := c.dead
	c.mu.Unlock()

	// If the connection dies after this check, removeDead removes it: it waits for the pool's lock.
	n := p.nodes[c.key]
	if dead || n == nil || len(n.idle) >= MaxCallsToNode {
		c.l.Close()
		return
	}

	c.since = clock.Now()
	n.idle = append(n.idle, c)
}

// removeDead removes a dead connection from the pool.
func (p *pool) removeDead(c *caller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.nodes[c.key]
	if n == nil {
		return
	}

	// A connection in use is not in the list: putBack closes it.
	for i, other := range n.idle {
		if other == c {
			n.idle = append(n.idle[:i], n.idle[i+1:]...)
			return
		}
	}
}

// closeIdle closes all idle connections.
func (p *pool) closeIdle() { p.closeIdleSince(time.Time{}) }

// closeIdleSince closes the connections that were idle since before a time, or all for the zero
// time. It removes nodes without connections.
func (p *pool) closeIdleSince(since time.Time) {
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

		clear(n.idle[len(keep):]) // release the closed ones to the garbage collector
		n.idle = keep

		if len(keep) == 0 && n.users == 0 {
			delete(p.nodes, k)
		}
	}
	p.mu.Unlock()

	// Close the connections without the lock of the pool: closing locks the port.
	for _, c := range old {
		c.l.Close()
	}
}

// closeUnused closes unused connections from time to time.
func (p *pool) closeUnused(ctx context.Context) {
	for clock.Wait(ctx, p.idleTime/4) {
		p.closeIdleSince(clock.In(-p.idleTime))
	}
}
