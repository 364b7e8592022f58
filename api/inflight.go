package api

import "sync"

// inflight counts running requests, so that the server can wait for their end before it stops.
// Unlike a WaitGroup, it allows add while somebody waits.
type inflight struct {
	mu      sync.Mutex // guards the fields below
	running int
	waiters []chan struct{} // closed when running is 0
}

func (f *inflight) add() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running++
}

// done ends one request. If it was the last running one, done wakes all waiters.
func (f *inflight) done() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running--
	if f.running > 0 {
		return
	}

	for _, ch := range f.waiters {
		close(ch)
	}
	f.waiters = nil
}

// idle returns a channel that is closed once no request runs.
func (f *inflight) idle() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	ch := make(chan struct{})
	if f.running == 0 {
		close(ch)
		return ch
	}
	f.waiters = append(f.waiters, ch)
	return ch
}
