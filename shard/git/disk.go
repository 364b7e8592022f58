package git

import "sync"

// minGrant is how many bytes a fetch may receive even on a full disk: most fetches need less.
const minGrant = 1 << 20

// shareOfFree: a fetch may receive 1/shareOfFree of the free bytes, so that all fetches together
// leave some of the disk free.
const shareOfFree = 4

// diskRoom is the disk space that the fetches of a node share. It is safe for concurrent use.
type diskRoom struct {
	mu      sync.Mutex
	granted map[string]int64 // bytes that each fetch may receive, by the directory of its mirror
}

// grant returns how many bytes the fetch of the mirror in dir may receive: its share of the free
// bytes that are not granted to other fetches. free is the number of free bytes; if it is 0, which
// means unknown, limit is 0: no limit. written returns how many bytes a fetch has received so far,
// by the directory of its mirror. The caller must call done at the end of the fetch.
func (r *diskRoom) grant(dir string, free int64, written func(dir string) int64) (limit int64, done func()) {
	if free <= 0 {
		return 0, func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()

	for other, bytes := range r.granted {
		free -= max(bytes-written(other), 0)
	}
	limit = max(free/shareOfFree, minGrant)

	if r.granted == nil {
		r.granted = map[string]int64{}
	}
	r.granted[dir] = limit
	return limit, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.granted, dir)
	}
}
