package account

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/node/call"
)

// Limits of the questions about unknown keys.
const (
	askGap       = 200 * time.Millisecond // between two questions
	askTime      = 5 * time.Second        // per question; as long as a write waits for a leader
	askWaiting   = 1024                   // requests that wait for an answer
	rejectedFor  = 10 * time.Second       // how long a key that the leader did not know is rejected without asking
	rejectedMost = 4096
)

// unknownKeys asks the leader about keys that this node does not have. A key that another node just
// created arrives here a moment later, but must work at once.
//
// Anybody can send random keys. So that they cost the cluster little, only one question runs at a
// time, with a gap between questions. One question is for all keys that wait when it is sent:
//
//	key a ──┐
//	key b ──┼─ question 1 ── the leader's index, applied here ──▶ look again
//	key c ──────┐ (came after question 1 was sent)
//	key d ──────┴─ gap ── question 2 ...
//
// A key that is still unknown is then rejected without a question for a while. That is always
// right: keys are random, so nobody tries one before it is created.
type unknownKeys struct {
	sync func(ctx context.Context) (uint64, error) // cluster.Sync
	now  func() time.Time

	sending chan struct{} // holds one token while a question runs

	mu        sync.Mutex // guards the fields below
	next      *question  // not sent yet; nil: none
	waiting   int
	lastAsked time.Time // when the last question was sent
	rejected  map[[sha256.Size]byte]time.Time
}

// question is a question to the leader, shared by all requests that wait for it.
type question struct {
	done chan struct{} // closed when it is answered
	err  error         // why it failed
}

func newUnknownKeys(sync func(ctx context.Context) (uint64, error), now func() time.Time) *unknownKeys {
	return &unknownKeys{
		sync:     sync,
		now:      now,
		sending:  make(chan struct{}, 1),
		rejected: map[[sha256.Size]byte]time.Time{},
	}
}

// askLeader returns when this node has applied everything acknowledged before the call, or if it did so
// for this key a moment ago. It fails if the leader cannot be asked, or too many requests wait.
func (u *unknownKeys) askLeader(ctx context.Context, key [sha256.Size]byte) error {
	q, mine, err := u.joinQuestion(key)
	if q == nil {
		return err
	}
	defer u.leave()

	// The first caller sends the question even if its client has gone: others wait.
	if mine {
		u.sendQuestion(q)
	}
	select {
	case <-q.done:
	case <-ctx.Done():
		return ctx.Err()
	}

	if q.err != nil {
		return call.Fail(call.ErrNoLeader, "This key or session is not known to this node, and the leader, who may know it, cannot be asked now: try again")
	}
	u.rememberRejected(key)
	return nil
}

// joinQuestion returns the question that a key waits for; mine means that the caller must send it. It
// returns nil for a key that was rejected a moment ago.
func (u *unknownKeys) joinQuestion(key [sha256.Size]byte) (q *question, mine bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	// Check this first: repeating one key must not use up the waiting slots.
	if until, ok := u.rejected[key]; ok && u.now().Before(until) {
		return nil, false, nil
	}

	// Each waiting request uses memory. With so many, somebody is trying keys.
	if u.waiting >= askWaiting {
		return nil, false, call.Fail(call.ErrOverloaded, "Too many requests with unknown keys")
	}

	u.waiting++
	// The first caller sends the question.
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

// sendQuestion sends a question to the leader, in turn.
func (u *unknownKeys) sendQuestion(q *question) {
	u.sending <- struct{}{}
	defer func() { <-u.sending }()

	// Pause since the last question: this limits what random keys cost the leader.
	u.mu.Lock()
	pause := askGap - u.now().Sub(u.lastAsked)
	u.mu.Unlock()
	if pause > 0 {
		// Do not use the request's context: its client may leave while other requests wait.
		clock.Wait(context.Background(), min(pause, askGap))
	}

	// No other request may join this question any more: the answer may miss later writes.
	u.mu.Lock()
	u.next, u.lastAsked = nil, u.now()
	u.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	_, q.err = u.sync(ctx)
	close(q.done)
}

// rememberRejected remembers a key about which the leader was asked. A key that exists is found before this
// check.
func (u *unknownKeys) rememberRejected(key [sha256.Size]byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.rejected) >= rejectedMost {
		clear(u.rejected)
	}
	u.rejected[key] = u.now().Add(rejectedFor)
}
