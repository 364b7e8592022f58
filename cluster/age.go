package cluster

import (
	"context"
	"math"
	"sync"
	"time"
)

// UnknownAge is the age of a catalog that was never compared with a leader's.
const UnknownAge = time.Duration(math.MaxInt64)

// contact is a question to a leader about its newest entry, with the answer.
type contact struct {
	At    time.Time `json:"at"`    // when the question was sent, by this node's clock
	Index uint64    `json:"index"` // the leader's commit index at that moment, or a later one
}

// freshness tells when this node last had everything that was committed. It is not enough to reach
// the leader, because its entries may arrive much later. So the node asks for the leader's index,
// and a question counts once that index is applied here:
//
//	age = now - max(sent | index(sent) <= applied)
//
// All times are from this node's clock. Delays of answers and entries make the age higher, never
// lower.
type freshness struct {
	mu      sync.Mutex // guards the fields below
	current contact    // the newest question whose index is applied
	waiting []contact  // later questions, oldest first
}

// maxWaiting bounds the questions that wait for their entries.
const maxWaiting = 64

// recordAnswer records an answered question.
func (f *freshness) recordAnswer(c contact) {
	f.mu.Lock()
	defer f.mu.Unlock()

	// Replace the previous question if the index is the same, or if the list is full: the oldest
	// questions stay, because their entries arrive first.
	if n := len(f.waiting); n > 0 && (n == maxWaiting || f.waiting[n-1].Index == c.Index) {
		f.waiting = f.waiting[:n-1]
	}
	f.waiting = append(f.waiting, c)
}

// newestAppliedContact returns the newest question whose index this node has applied, or the zero
// contact. It forgets the other applied questions.
func (f *freshness) newestAppliedContact(applied uint64) contact {
	f.mu.Lock()
	defer f.mu.Unlock()

	remaining := f.waiting[:0]
	for _, c := range f.waiting {
		switch {
		case c.Index > applied:
			remaining = append(remaining, c)
		case c.At.After(f.current.At):
			f.current = c
		}
	}
	f.waiting = remaining
	return f.current
}

// age returns for how long this node may have missed changes.
func (f *freshness) age(now time.Time, applied uint64) time.Duration {
	c := f.newestAppliedContact(applied)
	if c.At.IsZero() {
		return UnknownAge
	}

	// The monotonic clock stops while the machine sleeps, and is unknown for times before the last
	// start. So use the wall clock, too. If the time is in the future, that clock was set back.
	wall := now.Round(0).Sub(c.At.Round(0))
	if wall < -ClockSlack {
		return UnknownAge
	}
	return max(0, wall, now.Sub(c.At))
}

// Pauses between two questions. With more nodes each asks less often.
const (
	askPause     = 400 * time.Millisecond
	askPauseEach = 40 * time.Millisecond // per member
	askTime      = 5 * time.Second       // for one question, at Timing 1
)

// inquiry asks the leader for its index again and again, to measure the age of the catalog.
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
		q.askLeader(ctx)
		if !q.pause(ctx, max(askPause, askPauseEach*time.Duration(len(q.replica.servers())))) {
			return
		}
	}
}

// askLeader asks the leader which entry is the newest, and notes when that was.
func (q *inquiry) askLeader(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, q.scaled(askTime))
	defer cancel()

	// Take the time before the question: the answer may lack anything committed later.
	at := q.now()
	if index, err := q.proposer.syncOnce(ctx); err == nil {
		q.fresh.recordAnswer(contact{at, index})
	}
}

// age implements [Cluster.Age].
func (q *inquiry) age() time.Duration {
	// A lone leader cannot miss anything.
	if q.replica.leading.Load() && q.replica.isLoneVoter() {
		return 0
	}
	return q.fresh.age(q.now(), q.replica.machine.applied.Load())
}
