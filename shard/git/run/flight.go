package run

import (
	"context"
	"sync"

	"github.com/shoalsearch/shoal/node/lru"
)

// Flights answers a question once for all who ask it at the same time, and
// remembers the latest answers, which must never change. The work ends when
// nobody waits for it any more.
type Flights[T any] struct {
	most  int64 // bytes of what is remembered
	known *lru.Cache[string, T]

	mu      sync.Mutex // guards the field below
	running map[string]*flight[T]
}

// NewFlights remembers so many bytes.
func NewFlights[T any](most int64) *Flights[T] {
	return &Flights[T]{most: most, known: lru.New[string, T](most), running: map[string]*flight[T]{}}
}

// flight is a question that is being answered.
type flight[T any] struct {
	done    chan struct{} // closed at the end; then the two below are set
	value   T
	err     error
	waiting int
	stop    context.CancelFunc
}

// Do returns the answer to the question with a key: a remembered one, that of
// work which is under way, or that of work. The work belongs to owner: when ctx
// ends it goes on for the others who wait. size is what remembering the answer
// costs, in bytes; negative for one that must not be remembered.
func (f *Flights[T]) Do(ctx context.Context, owner *Tasks, key string, size func(T) int64, work func(context.Context) (T, error)) (T, error) {
	f.mu.Lock()
	if v, ok := f.known.Get(key); ok {
		f.mu.Unlock()
		return v, nil
	}

	r := f.running[key]
	if r == nil {
		r = f.start(ctx, owner, key, size, work)
	}

	// The owner is closed, and takes no more work.
	if r == nil {
		f.mu.Unlock()
		var none T
		return none, ErrClosed
	}

	// Counted under the lock: with nobody left who waits the work is ended.
	r.waiting++
	f.mu.Unlock()

	select {
	case <-r.done:
		return r.value, r.err
	case <-ctx.Done():
		f.leave(key, r)
		var none T
		return none, context.Cause(ctx)
	}
}

// start begins to answer a question; nil when the owner is closed. Called with
// mu held.
func (f *Flights[T]) start(ctx context.Context, owner *Tasks, key string, size func(T) int64, work func(context.Context) (T, error)) *flight[T] {
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &flight[T]{done: make(chan struct{}), stop: stop}

	started := owner.Run(func() {
		defer stop()
		defer context.AfterFunc(owner.Context, stop)()

		r.value, r.err = work(inner)

		// Whoever asks from now on finds the answer, if it is worth keeping.
		f.mu.Lock()
		if f.running[key] == r {
			delete(f.running, key)
		}

		// One answer may take a quarter at most, or it would push all others out.
		if r.err == nil {
			if n := size(r.value); n >= 0 && n <= f.most/4 {
				f.known.Put(key, r.value, n)
			}
		}
		f.mu.Unlock()

		close(r.done)
	})

	// Nobody will answer: the owner is closed.
	if !started {
		stop()
		return nil
	}

	f.running[key] = r
	return r
}

// leave is called by a caller that does not wait any longer. The last one ends
// the work.
func (f *Flights[T]) leave(key string, r *flight[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.waiting--; r.waiting > 0 {
		return
	}

	// Whoever asks from now on must not get the error of the stopped work.
	r.stop()
	if f.running[key] == r {
		delete(f.running, key)
	}
}
