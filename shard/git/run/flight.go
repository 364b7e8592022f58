package run

import (
	"context"
	"sync"

	"github.com/shoalsearch/shoal/node/lru"
)

// Flights computes an answer once for all concurrent callers with the same question, and caches the
// latest answers, which must never change. The work stops when no caller waits anymore.
type Flights[T any] struct {
	most  int64 // bytes of all cached answers
	known *lru.Cache[string, T]

	mu      sync.Mutex // guards the field below
	running map[string]*flight[T]
}

// NewFlights returns Flights that cache that many bytes.
func NewFlights[T any](most int64) *Flights[T] {
	return &Flights[T]{most: most, known: lru.New[string, T](most), running: map[string]*flight[T]{}}
}

// flight is a question that is being answered.
type flight[T any] struct {
	done    chan struct{} // closed at the end, after value and err are set
	value   T
	err     error
	waiting int
	stop    context.CancelFunc
}

// Do returns the answer to the question with a key. It takes a cached answer, or that of running
// work, or runs work. The work belongs to owner: if ctx ends, it continues for the other callers
// that wait. size returns the bytes that caching the answer costs; negative means that it must not
// be cached.
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

	// The owner is closed and takes no more work.
	if r == nil {
		f.mu.Unlock()
		var none T
		return none, ErrClosed
	}

	// Count under the lock: the work stops when no caller waits anymore.
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

// start starts the work for a question. It returns nil if the owner is closed. The caller must hold
// mu.
func (f *Flights[T]) start(ctx context.Context, owner *Tasks, key string, size func(T) int64, work func(context.Context) (T, error)) *flight[T] {
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &flight[T]{done: make(chan struct{}), stop: stop}

	started := owner.Run(func() {
		defer stop()
		defer context.AfterFunc(owner.Context, stop)()

		r.value, r.err = work(inner)

		// Later callers find the answer in the cache, if it is worth caching.
		f.mu.Lock()
		if f.running[key] == r {
			delete(f.running, key)
		}

		// One answer may take at most a quarter of the cache: otherwise it would push out all
		// others.
		if r.err == nil {
			if n := size(r.value); n >= 0 && n <= f.most/4 {
				f.known.Put(key, r.value, n)
			}
		}
		f.mu.Unlock()

		close(r.done)
	})

	// The owner is closed, so nobody will answer.
	if !started {
		stop()
		return nil
	}

	f.running[key] = r
	return r
}

// leave ends the waiting of one caller. The last caller that leaves stops the work.
func (f *Flights[T]) leave(key string, r *flight[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.waiting--; r.waiting > 0 {
		return
	}

	// Later callers must not get the error of the stopped work.
	r.stop()
	if f.running[key] == r {
		delete(f.running, key)
	}
}
