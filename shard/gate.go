package shard

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// gate shares the cores among the searches of a node. Each goroutine of a
// search holds a slot while it works, and offers it to others after each piece.
// Who waits, waits in one of two lanes: a search begins in the light one and
// moves to the heavy one when it has used heavyAfter. The light lane goes first,
// but every fourth slot goes to the heavy one.
type gate struct {
	mu    sync.Mutex         // guards the fields below
	free  int                // free slots; while one is free nobody waits
	lanes [2][]chan struct{} // who waits: light, heavy
	turn  int
}

// heavyAfter is how much time, summed over cores, a search may use before it
// makes room for others.
const heavyAfter = 20 * time.Millisecond

// heavyTurn: of so many slots one goes to a waiting heavy search, so that light
// ones cannot starve it.
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

// enter waits for a slot. An error is ctx's: there is no slot then.
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

	// We gave up. If we still wait, that is all; else leave has handed us a slot
	// in the meantime, which goes to the next.
	g.mu.Lock()
	for i, c := range g.lanes[lane] {
		if c == ready {
			g.lanes[lane] = append(g.lanes[lane][:i:i], g.lanes[lane][i+1:]...)
			g.mu.Unlock()
			return ctx.Err()
		}
	}
	g.mu.Unlock()
	g.leave()
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

// leave hands the slot to who has waited longest in the lane whose turn it is.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()

	// Every heavyTurn-th slot goes to the heavy lane, so that light searches cannot starve it.
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

// yield hands the slot on if somebody waits who goes first, and waits for
// another. With an error the slot is lost.
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
