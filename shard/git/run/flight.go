package run

import (
	"context"
	"sync"

	"github.com/shoalsearch/shoal/node/lru"
)

// Flights computes an answer once for all concurrent callers with the same key, and caches the
// latest answers, which must never change. The work stops when no caller waits anymore.
type Flights[T any] struct {
	maxBytes int64 // greatest number of bytes of all cached answers
	cached   *lru.Cache[string, T]

	mu      sync.Mutex // guards the field below
	running map[string]*flight[T]
}

// NewFlights returns Flights that cache at most maxBytes.
func NewFlights[T any](maxBytes int64) *Flights[T] {
	return &Flights[T]{maxBytes: maxBytes, cached: lru.New[string, T](maxBytes), running: map[string]*flight[T]{}}
}

// minCachedAnswers is how many answers of the greatest cached size fit into the cache.
const minCachedAnswers = 4

// flight is an answer that is being computed.
type flight[T any] struct {
	done    chan struct{} // closed at the end, after value and err are set
	value   T
	err     error
	waiting int // number of callers that wait
	stop    context.CancelFunc
}

// Do returns the answer for a key: from the cache, or from work that already runs for the key;
// otherwise it runs work. The work runs in owner, so that it continues for other callers if ctx
// ends. size returns how many bytes the answer takes in the cache; negative means that it must not
// be cached.
func (f *Flights[T]) Do(ctx context.Context, owner *Tasks, key string, size func(T) int64, work func(context.Context) (T, error)) (T, error) {
	f.mu.Lock()
	if v, ok := f.cached.Get(key); ok {
		f.mu.Unlock()
		return v, nil
	}

	r := f.running[key]
	if r == nil {
		r = f.startWork(ctx, owner, key, size, work)
	}

	if r == nil { // the owner is closed
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
		f.stopWaiting(key, r)
		var none T
		return none, context.Cause(ctx)
	}
}

// startWork starts the work for a key, whose answer it caches. It returns nil if the owner is closed.
// The caller must hold f.mu.
func (f *Flights[T]) startWork(ctx context.Context, owner *Tasks, key string, size func(T) int64, work func(context.Context) (T, error)) *flight[T] {
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &flight[T]{done: make(chan struct{}), stop: stop}

	started := owner.Run(func() {
		defer stop()
		defer context.AfterFunc(owner.Context, stop)()

		r.value, r.err = work(inner)

		f.mu.Lock()
		if f.running[key] == r {
			delete(f.running, key)
		}

		// Do not cache an answer that takes a large part of the cache, because it would replace most
		// other answers.
		if r.err == nil {
			if n := size(r.value); n >= 0 && n <= f.maxBytes/minCachedAnswers {
				f.cached.Put(key, r.value, n)
			}
		}
		f.mu.Unlock()

		close(r.done)
	})

	if !started { // the owner is closed
		stop()
		return nil
	}

	f.running[key] = r
	return r
}

// stopWaiting counts a caller that waits no longer. If no other caller waits, it stops the work.
func (f *Flights[T]) stopWaiting(key string, r *flight[T]) {
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
