package ask

import (
	"context"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/node/call"
)

// The bounds of turns. How many of one asker run at a time is for the catalog to
// say, which counts those of all nodes.
const (
	turnTime    = 10 * time.Minute
	runningHere = 8
)

// runs is the turns that this node answers. It is safe for concurrent use.
type runs struct {
	now  func() time.Time
	end  context.Context // of every turn
	stop context.CancelCauseFunc

	mu       sync.Mutex
	turns    map[string]*Turn // by thread
	starting map[string]bool  // threads whose turn is about to be in turns
	running  sync.WaitGroup
}

func newRuns(now func() time.Time) *runs {
	r := &runs{now: now, turns: map[string]*Turn{}, starting: map[string]bool{}}
	r.end, r.stop = context.WithCancelCause(context.Background())
	return r
}

// close ends the turns, each of which hands itself over, and waits for them.
func (r *runs) close() {
	// Under the lock: a place that is reserved after this is refused.
	r.mu.Lock()
	r.stop(errMoved)
	r.mu.Unlock()
	r.running.Wait()
}

// of is the turn of a thread that is answered here; nil where none is.
func (r *runs) of(thread string) *Turn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.turns[thread]
}

// reserve takes one of the places for turns of this node.
func (r *runs) reserve(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	// What is starting counts too, or many that come at once would all find room.
	switch {
	case r.end.Err() != nil:
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
}

// claim tells whether a turn is to be begun here now: it is not when it is being
// answered, or begun by another.
func (r *runs) claim(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turns[id] != nil || r.starting[id] {
		return false
	}
	r.starting[id] = true
	return true
}

// start has a turn answered, and its log written. Its place has been reserved or
// claimed.
func (r *runs) start(t *Turn, from *state) {
	r.mu.Lock()
	// Found from here on, before its goroutine begins: who was told of the question may watch at
	// once.
	r.turns[t.ID] = t
	r.mu.Unlock()

	r.running.Go(func() {
		defer r.forget(t)
		work, halt := context.WithCancelCause(r.end)
		defer halt(nil)

		// From its beginning, also on a node that goes on with it.
		bounded, cancel := context.WithTimeout(work, turnTime-r.now().Sub(t.began))
		defer cancel()

		t.mu.Lock()
		t.halt = halt
		t.mu.Unlock()

		var written sync.WaitGroup
		// The log outlives the work: it ends with the node, not with the bound of the answer.
		written.Go(func() { t.write(r.end) })
		// Taken over with all said: only its end has to be kept.
		if !t.said() {
			t.answer(bounded, from)
		}

		written.Wait()

		// This node stops: the other copy need not wait until gossip misses it.
		if r.end.Err() != nil && !t.finished() {
			t.keeper.handOver(t.ID, t.log)
		}
	})
}

func (r *runs) forget(t *Turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Another turn of the same thread may have begun already.
	if r.turns[t.ID] == t {
		delete(r.turns, t.ID)
	}
}
