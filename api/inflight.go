package api

import "sync"

// inflight counts running requests, so that the server can wait for them before it stops. Unlike
// a WaitGroup, it allows additions while somebody waits.
type inflight struct {
	mu   sync.Mutex // guards the fields below
	n    int
	zero []chan struct{}
}

func (f *inflight) add() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
}

// done ends one request, and wakes those who wait for all to end if it was the last.
func (f *inflight) done() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n--
	if f.n > 0 {
		return
	}

	// Each waiter has its own channel.
	for _, ch := range f.zero {
		close(ch)
	}
	f.zero = nil
}

// idle returns a channel that closes when no request runs.
func (f *inflight) idle() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	ch := make(chan struct{})
	if f.n == 0 {
		close(ch)
		return ch
	}
	f.zero = append(f.zero, ch)
	return ch
}
