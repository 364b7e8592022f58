package api

import "sync"

// inflight counts the requests under way, so that the server's end can wait
// for them. Unlike a WaitGroup it may be added to while somebody waits.
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

func (f *inflight) done() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n--
	if f.n > 0 {
		return
	}

	// More than one may wait; each has a channel of its own.
	for _, ch := range f.zero {
		close(ch)
	}
	f.zero = nil
}

// none is closed as soon as no request is under way.
func (f *inflight) none() <-chan struct{} {
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
