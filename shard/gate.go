package shard

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// gate shares the cores among the searches of a node. A goroutine of a search takes a slot to work,
// and offers it to others after each piece of work. Goroutines wait in two lanes: a search begins
// in the light lane and moves to the heavy one after it has used heavyAfter. A free slot goes to
// the light lane, except every heavyTurn-th.
type gate struct {
	mu    sync.Mutex         // guards the fields below
	free  int                // free slots; no goroutine waits while there is one
	lanes [2][]chan struct{} // waiting goroutines: light, heavy
	turn  int                // number of slots that were handed over
}

// heavyAfter is how much time, summed over cores, a search may use in the light lane.
const heavyAfter = 20 * time.Millisecond

// heavyTurn says that every fourth slot goes to the heavy lane, so that light searches cannot
// starve heavy ones.
const heavyTurn = 4

const (
	light = 0
	heavy = 1
)

// newGate returns a gate with that many slots; 0 means one for each processor.
func newGate(slots int) *gate {
	if slots <= 0 {
		slots = runtime.GOMAXPROCS(0)
	}
	return &gate{free: slots}
}

// enter waits for a slot. If ctx ends first, it returns the error of ctx and takes no slot.
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

	// ctx has ended. Leave the lane. If ready is not in the lane any more, another goroutine has
	// handed over a slot: pass it on.
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

// leave hands the slot of the caller to the goroutine that has waited longest in the lane whose
// turn it is, or frees it.
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

// yield hands the slot of the caller to a waiting goroutine, and then waits for another slot. It
// returns at once if no goroutine waits, or if the caller is heavy and only heavy ones wait. After
// an error the caller has no slot.
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
