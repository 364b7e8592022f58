package search

import (
	"sync"
	"time"

	"github.com/shoalsearch/shoal/shard"
)

// mostHeat is the most files that are counted. Then the count starts again, because some files may
// be gone.
const mostHeat = 1 << 18

// heat counts how much time this node spends searching each index file. It is safe for concurrent
// use.
type heat struct {
	mu   sync.Mutex // guards the field below
	used map[shard.FileID]time.Duration
}

// timeOf returns how much time was spent on a file.
func (h *heat) timeOf(file shard.FileID) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.used[file]
}

// add counts the time of a search, in equal shares, for the files that it searched.
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
