// Package lru remembers what was used lately, in a bounded memory.
package lru

import (
	"container/list"
	"sync"
)

// Cache remembers values, of which the one that was used longest ago goes first. It is
// safe for concurrent use.
type Cache[K comparable, V any] struct {
	most int64 // bytes

	mu    sync.Mutex // guards the fields below
	byKey map[K]*list.Element
	order list.List // of used[K, V], the latest first
	bytes int64     // sum of the sizes in order, at most most
}

// Cost is the bytes that remembering anything takes besides it, about.
const Cost = 200

// used is a value of a cache.
type used[K comparable, V any] struct {
	key   K
	value V
	size  int64
}

// New makes a cache for so many bytes.
func New[K comparable, V any](most int64) *Cache[K, V] {
	return &Cache[K, V]{most: most, byKey: map[K]*list.Element{}}
}

// Get is the value of a key, which is used by that.
func (r *Cache[K, V]) Get(key K) (value V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.byKey[key]
	if e == nil {
		return value, false
	}
	r.order.MoveToFront(e)
	return e.Value.(used[K, V]).value, true
}

// Put remembers a value that takes so many bytes, unless that is more than there is
// room for. The value of a key never changes.
func (r *Cache[K, V]) Put(key K, value V, size int64) {
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

// Size is the bytes that are taken.
func (r *Cache[K, V]) Size() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}
