package call

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// Lane limits concurrent work. Work beyond its places waits in a queue, and work beyond the queue
// is refused. It is safe for concurrent use.
type Lane struct {
	what    string // name of the work, for the message of a refusal
	places  chan struct{}
	waiting atomic.Int64
	limit   int64 // most that may wait
}

// NewLane makes a lane in which places run at the same time and limit wait.
func NewLane(what string, places, limit int) *Lane {
	return &Lane{what: what, places: make(chan struct{}, places), limit: int64(limit)}
}

// Enter waits for a place. It fails with ErrOverloaded if the queue is full, or with the error of
// ctx. If err is nil, the caller must call leave.
func (l *Lane) Enter(ctx context.Context) (leave func(), waited time.Duration, err error) {
	leave = func() { <-l.places }

	select {
	case l.places <- struct{}{}:
		return leave, 0, nil
	default:
	}

	// Count before checking, so that two never take the last place of the queue.
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

// EnterLong waits for a place for work that may run long. After a time the work moves to the next
// lane if that has a free place, and frees its place here. The caller must call leave.
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
		default: // both lanes are full: it stays here
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

// Busy returns how much work runs and how much waits.
func (l *Lane) Busy() (running, waiting int) { return len(l.places), int(l.waiting.Load()) }

// Full reports whether new work would be refused.
func (l *Lane) Full() bool { return len(l.places) == cap(l.places) && l.waiting.Load() >= l.limit }
