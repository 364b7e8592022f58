package cluster

import (
	"context"
	"math"
	"sync"
	"time"
)

// UnknownAge is the age of a catalog that was not compared with a leader's yet.
const UnknownAge = time.Duration(math.MaxInt64)

// contact is a question to a leader, and its answer.
type contact struct {
	At    time.Time `json:"at"`    // by the clock of this node, before the question was sent
	Index uint64    `json:"index"` // the leader had committed no more than this at that moment
}

// freshness knows when this node last had all that was committed. Hearing of a
// leader proves nothing: its entries may come much later. So the node asks
// how far the leader is, and a question counts once that index is applied here:
//
//	age = now - max(sent | index(sent) <= applied)
//
// All moments are of one clock. The time that the answer or the entries need
// makes the age higher, never lower.
type freshness struct {
	mu      sync.Mutex // guards the fields below
	current contact    // the newest question whose index is applied
	waiting []contact  // questions since, whose index is not; oldest first
}

// maxWaiting bounds the questions that wait for their entries.
const maxWaiting = 64

// note takes in the answer to a question.
func (f *freshness) note(c contact) {
	f.mu.Lock()
	defer f.mu.Unlock()

	// Without a new entry the later question replaces the one before. A node that is far
	// behind keeps its oldest questions: these are answered first.
	if n := len(f.waiting); n > 0 && (n == maxWaiting || f.waiting[n-1].Index == c.Index) {
		f.waiting = f.waiting[:n-1]
	}
	f.waiting = append(f.waiting, c)
}

// newest is the newest question of which this node has applied all, and the zero
// contact where there is none.
func (f *freshness) newest(applied uint64) contact {
	f.mu.Lock()
	defer f.mu.Unlock()

	rest := f.waiting[:0]
	for _, c := range f.waiting {
		switch {
		case c.Index > applied:
			rest = append(rest, c)
		case c.At.After(f.current.At):
			f.current = c
		}
	}
	f.waiting = rest
	return f.current
}

// age is for how long this node may have missed changes.
func (f *freshness) age(now time.Time, applied uint64) time.Duration {
	c := f.newest(applied)
	if c.At.IsZero() {
		return UnknownAge
	}

	// The monotonic clock stands still while the machine sleeps. The wall clock is all that
	// there is of a moment before the last start; one in the future says nothing.
	wall := now.Round(0).Sub(c.At.Round(0))
	if wall < -ClockSlack {
		return UnknownAge
	}
	return max(0, wall, now.Sub(c.At))
}

// Pauses between two questions: with many nodes each asks less often.
const (
	askPause     = 400 * time.Millisecond
	askPauseEach = 40 * time.Millisecond // for each member
	askTime      = 5 * time.Second       // for one question, at Timing 1
)

// inquiry asks the leader how far the cluster is, again and again.
type inquiry struct {
	*env
	replica  *replica
	proposer *proposer
	fresh    freshness
	now      func() time.Time
}

// run asks until the context ends.
func (q *inquiry) run(ctx context.Context) {
	for {
		q.ask(ctx)
		if !q.pause(ctx, max(askPause, askPauseEach*time.Duration(len(q.replica.servers())))) {
			return
		}
	}
}

func (q *inquiry) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, q.scaled(askTime))
	defer cancel()

	// The moment before the question, not that of the answer: what is committed in between
	// may be missing in it.
	at := q.now()
	if index, err := q.proposer.syncOnce(ctx); err == nil {
		q.fresh.note(contact{at, index})
	}
}

// age is [Cluster.Age].
func (q *inquiry) age() time.Duration {
	// Nobody else can have committed anything.
	if q.replica.leading.Load() && q.replica.lone() {
		return 0
	}
	return q.fresh.age(q.now(), q.replica.machine.applied.Load())
}
