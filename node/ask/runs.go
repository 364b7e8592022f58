package ask

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/node/call"
)

// The bounds of turns. How many of one asker run at a time is for the catalog to
// say, which counts those of all nodes.
const (
	turnTime    = 10 * time.Minute
	runningHere = 8
	keepTime    = time.Minute     // to keep a turn that has ended
	lastTime    = 5 * time.Second // to keep the turns that this node's stop has ended
)

// errNodeStops ends the turns that are still running when the node stops.
var errNodeStops = errors.New("the node stops")

// runs is the turns that this node answers. It is safe for concurrent use.
type runs struct {
	end  context.Context // of every turn
	stop context.CancelCauseFunc
	keep context.Context // of the keeping of every turn
	drop context.CancelFunc

	mu       sync.Mutex       // guards the fields below
	refuses  bool             // no turn begins here any more
	turns    map[string]*Turn // by thread
	starting map[string]bool  // threads whose turn is about to be in turns
	changed  chan struct{}    // closed, and made anew, when a turn has ended
	running  sync.WaitGroup
}

func newRuns() *runs {
	r := &runs{turns: map[string]*Turn{}, starting: map[string]bool{}, changed: make(chan struct{})}
	r.end, r.stop = context.WithCancelCause(context.Background())
	r.keep, r.drop = context.WithCancel(context.Background())
	return r
}

// finish lets no turn begin any more and waits until those that run have ended, or
// until ctx does. progress learns how many run: at first, and after each change.
func (r *runs) finish(ctx context.Context, progress func(running int)) {
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

// close ends the turns and waits until what they have said is kept.
func (r *runs) close() {
	// Under the lock: a place that is reserved after this is refused.
	r.mu.Lock()
	r.refuses = true
	r.mu.Unlock()

	r.stop(errNodeStops)
	late := time.AfterFunc(lastTime, r.drop)
	defer late.Stop()
	r.running.Wait()
	r.drop()
}

// of returns the turn of a thread that is answered here; nil where none is.
func (r *runs) of(thread string) *Turn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.turns[thread]
}

// has reports whether a turn of a thread runs here, or is about to.
func (r *runs) has(thread string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.turns[thread] != nil || r.starting[thread]
}

// reserve takes one of the places for turns of this node.
func (r *runs) reserve(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	// What is starting counts too, or many that come at once would all find room.
	switch {
	case r.refuses:
		return call.Fail(call.ErrUnavailable, "this node is stopping")
	case len(r.turns)+len(r.starting) >= runningHere:
		return busy("This node answers %d questions already. Ask again in a while.", runningHere)
	// The catalog refuses a second turn as well; this one is told sooner, and by its reason.
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
	r.stirLocked()
}

// stirLocked wakes whoever waits for turns to end.
func (r *runs) stirLocked() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// start has a turn answered, shown and kept. Its place has been reserved.
func (r *runs) start(t *Turn) {
	r.mu.Lock()
	// Found from here on, before its goroutine begins: who was told of the question may watch at
	// once.
	r.turns[t.ID] = t
	r.mu.Unlock()

	r.running.Go(func() {
		defer r.forget(t)
		work, halt := context.WithCancelCause(r.end)
		defer halt(nil)
		bounded, cancel := context.WithTimeout(work, turnTime)
		defer cancel()

		t.mu.Lock()
		t.halt = halt
		t.mu.Unlock()

		var published sync.WaitGroup
		// The keeping outlives the work: it is not bound by the time of the answer.
		keep, give := context.WithCancel(r.keep)
		defer give()
		published.Go(func() { t.publish(keep) })
		t.answer(bounded)

		late := time.AfterFunc(keepTime, give)
		defer late.Stop()
		published.Wait()
	})
}

func (r *runs) forget(t *Turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Another turn of the same thread may have begun already.
	if r.turns[t.ID] == t {
		delete(r.turns, t.ID)
	}
	r.stirLocked()
}
