package node

import (
	"context"
	"sync/atomic"
	"time"
)

// lanes admits work to the processors: cheap searches never wait behind
// expensive ones, and what cannot start soon is refused instead of piling up.
type lanes struct {
	light, heavy lane // searches
	reads        lane // of mirrors, each with a process of git or two
}

// lane is one queue with a number of places.
type lane struct {
	places  chan struct{}
	waiting atomic.Int64
	limit   int64 // of waiting
}

func newLanes(cores int) *lanes {
	return &lanes{
		light: lane{places: make(chan struct{}, 4*cores), limit: int64(128 * cores)},
		heavy: lane{places: make(chan struct{}, max(1, cores/2)), limit: int64(32 * cores)},
		reads: lane{places: make(chan struct{}, max(readsAtOnce, 8*cores)), limit: 1024},
	}
}

// enter waits for a place for a search. leave must be called when err is nil.
func (l *lanes) enter(ctx context.Context, heavy bool) (leave func(), waited time.Duration, err error) {
	if heavy {
		return l.heavy.enter(ctx, "searches")
	}
	return l.light.enter(ctx, "searches")
}

// enter waits for a place. leave must be called when err is nil.
func (q *lane) enter(ctx context.Context, what string) (leave func(), waited time.Duration, err error) {
	leave = func() { <-q.places }
	select {
	case q.places <- struct{}{}:
		return leave, 0, nil
	default:
	}
	if q.waiting.Add(1) > q.limit {
		q.waiting.Add(-1)
		return nil, 0, &Error{Kind: ErrOverloaded, Message: "too many " + what + " are waiting", RetryAfter: time.Second}
	}
	defer q.waiting.Add(-1)
	began := time.Now()
	select {
	case q.places <- struct{}{}:
		return leave, time.Since(began), nil
	case <-ctx.Done():
		return nil, time.Since(began), ctx.Err()
	}
}

// running is how many searches are on the processors, and how many wait.
func (l *lanes) running() (running, waiting int) {
	return len(l.light.places) + len(l.heavy.places), int(l.light.waiting.Load() + l.heavy.waiting.Load())
}
