package browse

import (
	"container/list"
	"sync"
)

// recent remembers what was used lately, in a bounded memory: what was used longest
// ago goes first. It is safe for concurrent use.
type recent[K comparable, V any] struct {
	most int64 // bytes

	mu    sync.Mutex // guards the fields below
	byKey map[K]*list.Element
	order list.List // of used[K, V], the latest first
	bytes int64     // sum of the sizes in order, at most most
}

// used is a value of recent.
type used[K comparable, V any] struct {
	key   K
	value V
	size  int64
}

func newRecent[K comparable, V any](most int64) *recent[K, V] {
	return &recent[K, V]{most: most, byKey: map[K]*list.Element{}}
}

// get is the value of a key, which is used by that.
func (r *recent[K, V]) get(key K) (value V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.byKey[key]
	if e == nil {
		return value, false
	}
	r.order.MoveToFront(e)
	return e.Value.(used[K, V]).value, true
}

// put remembers a value that takes so many bytes, unless that is more than there is
// room for. The value of a key never changes.
func (r *recent[K, V]) put(key K, value V, size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey[key] != nil || size > r.most {
		return
	}

	for r.bytes+size > r.most {
		old := r.order.Remove(r.order.Back()).(used[K, V])
		delete(r.byKey, old.key)
		r.bytes -= old.size
	}

	r.byKey[key] = r.order.PushFront(used[K, V]{key, value, size})
	r.bytes += size
}

// size is the bytes that are taken.
func (r *recent[K, V]) size() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}
