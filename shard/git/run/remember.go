package run

import (
	"cmp"
	"sync"
)

// Remembered keeps the answers to some recent questions whose answers never
// change, because they are about commits: the oldest leaves when it is full.
// The zero value keeps 64.
type Remembered[T any] struct {
	Most int // answers kept; 0 is 64

	mu    sync.Mutex // guards the fields below
	byKey map[string]T
	order []string // oldest first
}

// Get returns the answer to a question that was asked before.
func (r *Remembered[T]) Get(key string) (T, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.byKey[key]
	return v, ok
}

// Put keeps an answer.
func (r *Remembered[T]) Put(key string, v T) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.byKey == nil {
		r.byKey = map[string]T{}
	}

	if _, ok := r.byKey[key]; !ok {
		r.order = append(r.order, key)
	}
	r.byKey[key] = v

	// The oldest key goes when there are too many.
	if len(r.order) > cmp.Or(r.Most, 64) {
		delete(r.byKey, r.order[0])
		r.order = r.order[1:]
	}
}
