package git

import "sync"

// leastRoom is how many bytes a fetch may receive even on a full disk: most fetches need less.
const leastRoom = 1 << 20

// diskRoom is the disk space that the fetches of a node share. It is safe for concurrent use.
type diskRoom struct {
	mu      sync.Mutex
	granted map[string]int64 // bytes that each fetch may receive, by the directory of its mirror
}

// take grants a fetch a quarter of the bytes that are free and not granted to other fetches.
// written returns what a fetch has received so far. So all fetches together leave some of the disk
// free, whatever the remotes send. If free is 0, which means unknown, there is no limit, and most
// is 0. done ends the grant.
func (r *diskRoom) take(dir string, free int64, written func(dir string) int64) (most int64, done func()) {
	if free <= 0 {
		return 0, func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()

	for other, bytes := range r.granted {
		free -= max(bytes-written(other), 0)
	}
	most = max(free/4, leastRoom)

	if r.granted == nil {
		r.granted = map[string]int64{}
	}
	r.granted[dir] = most
	return most, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.granted, dir)
	}
}
