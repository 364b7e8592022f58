package git

import (
	"context"
	"sync"
)

// flights answers the same question once for all who ask at the same time,
// and remembers some answers that never change. The work ends when nobody
// waits for it any more. The zero value remembers nothing.
type flights[T any] struct {
	most int64 // bytes of what is remembered, by size

	mu      sync.Mutex // guards the fields below
	running map[string]*flight[T]
	known   map[string]T
	order   []string // oldest first
	sizes   map[string]int64
	bytes   int64
}

// flight is a question that is being answered.
type flight[T any] struct {
	done    chan struct{} // closed at the end; then the two below are set
	value   T
	err     error
	waiting int
	stop    context.CancelFunc
}

// do gives the answer to the question with a key. size is what remembering it
// costs; an answer of a negative size is not remembered.
func (f *flights[T]) do(ctx context.Context, key string, size func(T) int64, work func(context.Context) (T, error)) (T, error) {
	f.mu.Lock()
	if v, ok := f.known[key]; ok {
		f.mu.Unlock()
		return v, nil
	}
	r := f.running[key]
	if r == nil {
		inner, stop := context.WithCancel(context.WithoutCancel(ctx))
		r = &flight[T]{done: make(chan struct{}), stop: stop}
		if f.running == nil {
			f.running = map[string]*flight[T]{}
		}
		f.running[key] = r
		go func() {
			defer stop()
			r.value, r.err = work(inner)
			f.mu.Lock()
			if f.running[key] == r {
				delete(f.running, key)
			}
			if r.err == nil {
				f.remember(key, r.value, size(r.value))
			}
			f.mu.Unlock()
			close(r.done)
		}()
	}
	r.waiting++
	f.mu.Unlock()
	select {
	case <-r.done:
		return r.value, r.err
	case <-ctx.Done():
		f.mu.Lock()
		defer f.mu.Unlock()
		if r.waiting--; r.waiting == 0 {
			r.stop()
			if f.running[key] == r { // who asks from now on must not get the error
				delete(f.running, key)
			}
		}
		var none T
		return none, context.Cause(ctx)
	}
}

// remember keeps an answer, and drops old ones for it. Called with mu held.
func (f *flights[T]) remember(key string, v T, size int64) {
	if size < 0 || size > f.most/4 || f.sizes[key] != 0 {
		return
	}
	for f.bytes+size > f.most {
		old := f.order[0]
		f.order = f.order[1:]
		f.bytes -= f.sizes[old]
		delete(f.known, old)
		delete(f.sizes, old)
	}
	if f.known == nil {
		f.known, f.sizes = map[string]T{}, map[string]int64{}
	}
	f.known[key], f.sizes[key] = v, size
	f.order = append(f.order, key)
	f.bytes += size
}
