// Package lru caches recently used values within a limit of memory.
package lru

import (
	"container/list"
	"sync"
)

// Cache drops the least recently used values when it is full. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	most int64 // bytes

	mu    sync.Mutex // guards the fields below
	byKey map[K]*list.Element
	order list.List // used[K, V], the most recent first
	bytes int64     // sum of the sizes, at most most
}

// Cost is about the memory of an entry besides its value, in bytes.
const Cost = 200

// used is an entry of a cache.
type used[K comparable, V any] struct {
	key   K
	value V
	size  int64
}

// New makes a cache of most bytes.
func New[K comparable, V any](most int64) *Cache[K, V] {
	return &Cache[K, V]{most: most, byKey: map[K]*list.Element{}}
}

// Get returns the value of a key, which becomes the most recently used.
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

// Put adds a value of the given size in bytes, unless that exceeds the cache. It never replaces a
// value.
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

// Size returns the bytes in use.
func (r *Cache[K, V]) Size() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}
