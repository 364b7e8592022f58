package search

import (
	"sync"
	"time"

	"github.com/shoalsearch/shoal/shard"
)

// mostHeat is how many files are counted at most. Then all are counted anew, since some of
// them may be gone.
const mostHeat = 1 << 18

// heat counts how long this node searches each index file. It is safe for concurrent use.
type heat struct {
	mu   sync.Mutex // guards the field below
	used map[shard.FileID]time.Duration
}

// of returns how long a file was searched.
func (h *heat) of(file shard.FileID) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.used[file]
}

// add divides the time of a search among the files that it searched.
func (h *heat) add(groups []leafGroup, took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.used == nil || len(h.used) > mostHeat {
		h.used = map[shard.FileID]time.Duration{}
	}
	for i := range groups {
		h.used[groups[i].group.Parts[0].Shard] += took / time.Duration(len(groups))
	}
}
