package ask

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/node/call"
)

// Limits of turns on one node. The catalog limits the turns of one asker on all nodes.
const (
	turnTime    = 10 * time.Minute
	runningHere = 8
	keepTime    = time.Minute     // to store a finished turn
	lastTime    = 5 * time.Second // to store the turns that the node's stop has ended
)

// errNodeStops ends the running turns when the node stops.
var errNodeStops = errors.New("the node stops")

// runs are the turns that run on this node. It is safe for concurrent use.
type runs struct {
	end  context.Context // every turn's work ends with it
	stop context.CancelCauseFunc
	keep context.Context // every turn's storing ends with it
	drop context.CancelFunc

	mu       sync.Mutex       // guards the fields below
	refuses  bool             // no new turn may begin
	turns    map[string]*Turn // by thread
	starting map[string]bool  // threads whose turn is about to begin
	changed  chan struct{}    // closed and replaced when a turn ends
	running  sync.WaitGroup
}

func newRuns() *runs {
	r := &runs{turns: map[string]*Turn{}, starting: map[string]bool{}, changed: make(chan struct{})}
	r.end, r.stop = context.WithCancelCause(context.Background())
	r.keep, r.drop = context.WithCancel(context.Background())
	return r
}

// drain refuses new turns and waits until the running ones end, or ctx does. It calls progress
// with the number of running turns at first and after each change.
func (r *runs) drain(ctx context.Context, progress func(running int)) {
	for {
		r.mu.Lock()
		r.refuses = true
		n, changed := len(r.turns)+len(r.starting), r.changed
		r.mu.Unlock()

		progress(n)
		if n == 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// close ends the turns and waits until they are stored.
func (r *runs) close() {
	// Set it under the lock, so that no later reserve succeeds.
	r.mu.Lock()
	r.refuses = true
	r.mu.Unlock()

	r.stop(errNodeStops)
	late := time.AfterFunc(lastTime, r.drop)
	defer late.Stop()
	r.running.Wait()
	r.drop()
}

// turnOf returns the turn of a thread on this node; nil if there is none.
func (r *runs) turnOf(thread string) *Turn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.turns[thread]
}

// has reports whether a turn of the thread runs on this node or is about to.
func (r *runs) has(thread string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.turns[thread] != nil || r.starting[thread]
}

// reserve takes one of this node's places for turns.
func (r *runs) reserve(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Count starting turns too, or many questions at once would exceed the limit.
	switch {
	case r.refuses:
		return call.Fail(call.ErrUnavailable, "this node is stopping")
	case len(r.turns)+len(r.starting) >= runningHere:
		return busyError("This node answers %d questions already. Ask again in a while.", runningHere)
	// The catalog would refuse a second turn too, but later and with a less clear reason.
	case r.starting[id]:
		return call.Fail(call.ErrUnable, "A question of this thread is being asked already.")
	}
	r.starting[id] = true
	return nil
}

func (r *runs) release(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.starting, id)
	r.wakeLocked()
}

// wakeLocked wakes drain.
func (r *runs) wakeLocked() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// startTurn runs a turn whose place is reserved: answering, publishing and storing.
func (r *runs) startTurn(t *Turn) {
	r.mu.Lock()
	// Register the turn before its goroutine begins: the asker may watch at once.
	r.turns[t.ID] = t
	r.mu.Unlock()

	r.running.Go(func() {
		defer r.removeTurn(t)
		work, halt := context.WithCancelCause(r.end)
		defer halt(nil)
		bounded, cancel := context.WithTimeout(work, turnTime)
		defer cancel()

		t.mu.Lock()
		t.halt = halt
		t.mu.Unlock()

		var published sync.WaitGroup
		// Storing has its own time, beyond turnTime.
		keep, give := context.WithCancel(r.keep)
		defer give()
		published.Go(func() { t.publish(keep) })
		t.runToEnd(bounded)

		late := time.AfterFunc(keepTime, give)
		defer late.Stop()
		published.Wait()
	})
}

func (r *runs) removeTurn(t *Turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Another turn of the thread may have begun already.
	if r.turns[t.ID] == t {
		delete(r.turns, t.ID)
	}
	r.wakeLocked()
}
