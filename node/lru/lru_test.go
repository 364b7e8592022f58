package lru_test

import (
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/node/lru"
)

// The cache is limited, and the least recently used entry goes first.
func TestCache_dropsTheLeastRecentlyUsedEntry(t *testing.T) {
	t.Parallel()
	r := lru.New[int, string](100)
	for i := range 10 {
		r.Put(i, "", 10)
	}
	r.Get(0)
	r.Put(10, "", 15)
	r.Put(11, "", 101)
	var left []int
	for i := range 12 {
		if _, ok := r.Get(i); ok {
			left = append(left, i)
		}
	}
	if want := []int{0, 3, 4, 5, 6, 7, 8, 9, 10}; !slices.Equal(left, want) || r.Size() != 95 {
		t.Errorf("%v in %d bytes, want %v in 95", left, r.Size(), want)
	}
}
