package account

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/node/call"
)

// Bounds of the questions about unknown keys.
const (
	askGap       = 200 * time.Millisecond // between two questions
	askTime      = 5 * time.Second        // for one of them, as long as a write waits for a leader
	askWaiting   = 1024                   // requests that wait for an answer
	rejectedFor  = 10 * time.Second       // a key that the leader did not know
	rejectedMost = 4096
)

// unknownKeys asks the leader about keys that this node does not have. A key
// that was just made at another node arrives here a moment later, and has to
// work at once.
//
// Anybody may send keys that nobody has made. So that they cost the cluster
// next to nothing, one question is under way at a time, questions keep a gap,
// and one question is for all keys that wait when it is sent:
//
//	key a ──┐
//	key b ──┼─ question 1 ── the leader's index, applied here ──▶ look again
//	key c ──────┐ (came after question 1 was sent)
//	key d ──────┴─ gap ── question 2 ...
//
// A key that is still unknown then is rejected without a question for a while.
// That is never wrong: keys are random, so none is tried before it is made.
type unknownKeys struct {
	sync func(ctx context.Context) (uint64, error) // cluster.Sync
	now  func() time.Time

	turn chan struct{} // holds one token while a question is under way

	mu       sync.Mutex // guards the fields below
	next     *question  // not sent yet; nil for none
	waiting  int
	asked    time.Time // when the last question was sent
	rejected map[[sha256.Size]byte]time.Time
}

// question is one to the leader, shared by all who wait for it.
type question struct {
	done chan struct{} // closed when it is answered
	err  error         // why it was not
}

func newUnknownKeys(sync func(ctx context.Context) (uint64, error), now func() time.Time) *unknownKeys {
	return &unknownKeys{
		sync:     sync,
		now:      now,
		turn:     make(chan struct{}, 1),
		rejected: map[[sha256.Size]byte]time.Time{},
	}
}

// ask returns when this node has applied all that was acknowledged before the
// call, or has done so for this key a moment ago. It fails when the leader
// cannot be asked, or too many wait.
func (u *unknownKeys) ask(ctx context.Context, key [sha256.Size]byte) error {
	q, mine, err := u.join(key)
	if q == nil {
		return err
	}
	defer u.leave()

	// Who opened a question asks it, also when his client is gone: others wait.
	if mine {
		u.send(q)
	}
	select {
	case <-q.done:
	case <-ctx.Done():
		return ctx.Err()
	}

	if q.err != nil {
		return call.Fail(call.ErrNoLeader, "This key or session is not known to this node, and the leader, who may know it, cannot be asked now: try again")
	}
	u.reject(key)
	return nil
}

// join finds the question that a key waits for, and whether the caller has to
// send it. There is none for a key that was rejected a moment ago.
func (u *unknownKeys) join(key [sha256.Size]byte) (q *question, mine bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	// Before the bound: who tries the same key again and again takes nobody's place.
	if until, ok := u.rejected[key]; ok && u.now().Before(until) {
		return nil, false, nil
	}

	// Each waits with its connection and memory; beyond this somebody is trying keys.
	if u.waiting >= askWaiting {
		return nil, false, call.Fail(call.ErrOverloaded, "Too many requests with unknown keys")
	}

	u.waiting++
	// The first of a question sends it.
	if u.next == nil {
		mine = true
		u.next = &question{done: make(chan struct{})}
	}
	return u.next, mine, nil
}

func (u *unknownKeys) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.waiting--
}

// send asks the leader in its turn.
func (u *unknownKeys) send(q *question) {
	u.turn <- struct{}{}
	defer func() { <-u.turn }()

	// Anybody may send unknown keys: the gap bounds what they cost the leader.
	u.mu.Lock()
	rest := askGap - u.now().Sub(u.asked)
	u.mu.Unlock()
	if rest > 0 {
		// Not by the request: its client may leave while others wait for the question.
		clock.Wait(context.Background(), min(rest, askGap))
	}

	// From here on the answer may lack what is acknowledged: nobody may join.
	u.mu.Lock()
	u.next, u.asked = nil, u.now()
	u.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	_, q.err = u.sync(ctx)
	close(q.done)
}

// reject notes a key that the leader was asked about. One that turned out to
// be good is found before anybody looks here.
func (u *unknownKeys) reject(key [sha256.Size]byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.rejected) >= rejectedMost {
		clear(u.rejected)
	}
	u.rejected[key] = u.now().Add(rejectedFor)
}
