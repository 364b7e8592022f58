package shard

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// gate shares the cores among the searches of a node. Each goroutine of a
// search holds a slot while it works. There are two lanes: a search begins in
// the light one and moves to the heavy one when it has used up heavyAfter;
// heavy goroutines offer their slot after each piece of work, and light ones
// that wait go first, but for every fourth turn.
type gate struct {
	mu    sync.Mutex // guards the fields below
	free  int
	lanes [2][]chan struct{} // who waits: light, heavy
	turn  int
}

// heavyAfter is how much time, summed over cores, a search may use before it
// makes room for others.
const heavyAfter = 20 * time.Millisecond

// heavyTurn is how often a waiting heavy search goes before waiting light
// ones, so that these cannot shut it out.
const heavyTurn = 4

const (
	light = 0
	heavy = 1
)

func newGate(slots int) *gate {
	if slots <= 0 {
		slots = runtime.GOMAXPROCS(0)
	}
	return &gate{free: slots}
}

// enter waits for a slot.
func (g *gate) enter(ctx context.Context, lane int) error {
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		g.mu.Unlock()
		return nil
	}
	ready := make(chan struct{})
	g.lanes[lane] = append(g.lanes[lane], ready)
	g.mu.Unlock()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	for i, c := range g.lanes[lane] {
		if c == ready {
			g.lanes[lane] = append(g.lanes[lane][:i:i], g.lanes[lane][i+1:]...)
			g.mu.Unlock()
			return ctx.Err()
		}
	}
	g.mu.Unlock()
	g.leave() // the slot came at the same moment
	return ctx.Err()
}

// tryEnter takes a slot if one is free.
func (g *gate) tryEnter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free == 0 {
		return false
	}
	g.free--
	return true
}

// leave gives the slot to who waits longest in the lane whose turn it is.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	lane := light
	if len(g.lanes[light]) == 0 || len(g.lanes[heavy]) > 0 && g.turn%heavyTurn == heavyTurn-1 {
		lane = heavy
	}
	if len(g.lanes[lane]) == 0 {
		g.free++
		return
	}
	g.turn++
	next := g.lanes[lane][0]
	g.lanes[lane] = g.lanes[lane][1:]
	close(next)
}

// yield lets others go first if somebody waits. The slot is lost when ctx
// ends meanwhile.
func (g *gate) yield(ctx context.Context, lane int) error {
	g.mu.Lock()
	waiting := len(g.lanes[light]) > 0 || lane == light && len(g.lanes[heavy]) > 0
	g.mu.Unlock()
	if !waiting {
		return nil
	}
	g.leave()
	return g.enter(ctx, lane)
}
