package search

import (
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard"
)

// The files of a search share its time equally, and times of searches add up.
func TestSearchTime_isSharedByFilesAndAddsUp(t *testing.T) {
	t.Parallel()
	s := &Searcher{leaves: &leaves{}}
	group := func(file byte) leafGroup {
		return leafGroup{group: &shard.Group{Parts: []shard.Part{{Shard: shard.FileID{file}}}}}
	}
	s.leaves.heat.add([]leafGroup{group(1), group(2)}, 2*time.Second)
	s.leaves.heat.add([]leafGroup{group(2)}, time.Second)
	for file, want := range map[byte]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 0} {
		if got := s.Searched(shard.FileID{file}); got != want {
			t.Errorf("file %d: %v, want %v", file, got, want)
		}
	}
}
