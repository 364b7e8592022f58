package git

import (
	"cmp"
	"sync"
)

// remembered keeps the answers to some recent questions whose answers never
// change, because they are about commits: the oldest leaves when it is full.
// The zero value keeps 64.
type remembered[T any] struct {
	most int // answers kept; 0 is 64

	mu    sync.Mutex // guards the fields below
	byKey map[string]T
	order []string // oldest first
}

func (r *remembered[T]) get(key string) (T, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.byKey[key]
	return v, ok
}

func (r *remembered[T]) put(key string, v T) {
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
	if len(r.order) > cmp.Or(r.most, 64) {
		delete(r.byKey, r.order[0])
		r.order = r.order[1:]
	}
}
