package call

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// Lane is a queue of work with a number of places: what cannot start soon is
// refused instead of piling up. It is safe for concurrent use.
type Lane struct {
	what    string // that waits here, for the message of a refusal
	places  chan struct{}
	waiting atomic.Int64
	limit   int64 // of waiting
}

// NewLane makes a lane where places run at once and limit wait.
func NewLane(what string, places, limit int) *Lane {
	return &Lane{what: what, places: make(chan struct{}, places), limit: int64(limit)}
}

// Enter waits for a place. It fails with ErrOverloaded where too many wait, and
// with the error of ctx. leave must be called when err is nil.
func (l *Lane) Enter(ctx context.Context) (leave func(), waited time.Duration, err error) {
	leave = func() { <-l.places }

	// A place that is free has nobody waiting for it.
	select {
	case l.places <- struct{}{}:
		return leave, 0, nil
	default:
	}

	// Counted before it is looked at: two never take the last place of the queue.
	if l.waiting.Add(1) > l.limit {
		l.waiting.Add(-1)
		return nil, 0, Fail(ErrOverloaded, "too many %s are waiting", l.what)
	}
	defer l.waiting.Add(-1)

	began := clock.Now()
	select {
	case l.places <- struct{}{}:
		return leave, clock.Since(began), nil
	case <-ctx.Done():
		return nil, clock.Since(began), ctx.Err()
	}
}

// EnterLong is Enter for work of which some is long: what is not done after a while
// goes on in the next lane, where that has a free place, and gives its own to who waits.
func (l *Lane) EnterLong(ctx context.Context, after time.Duration, next *Lane) (leave func(), waited time.Duration, err error) {
	_, waited, err = l.Enter(ctx)
	if err != nil {
		return nil, waited, err
	}

	var mu sync.Mutex // guards the fields below
	lane, left := l, false
	timer := time.AfterFunc(after, func() {
		mu.Lock()
		defer mu.Unlock()
		if left {
			return
		}

		select {
		case next.places <- struct{}{}:
			<-lane.places
			lane = next
		default: // both are full: it stays where it is
		}
	})

	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		left = true
		<-lane.places
	}, waited, nil
}

// Busy is how much runs, and how much waits.
func (l *Lane) Busy() (running, waiting int) { return len(l.places), int(l.waiting.Load()) }

// Full reports whether whoever comes now is refused.
func (l *Lane) Full() bool { return len(l.places) == cap(l.places) && l.waiting.Load() >= l.limit }
