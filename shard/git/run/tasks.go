package run

import (
	"context"
	"sync"
)

// Tasks runs the work of a mirror that continues after its caller has returned. Closing the mirror
// stops the work and waits for it.
type Tasks struct {
	Context context.Context // context of all work
	stop    context.CancelFunc

	mu     sync.Mutex // guards closed; wg.Go must not run after wg.Wait
	closed bool
	wg     sync.WaitGroup
}

// NewTasks returns Tasks without work.
func NewTasks() *Tasks {
	t := &Tasks{}
	t.Context, t.stop = context.WithCancel(context.Background())
	return t
}

// Run starts work in its own goroutine. After Close it starts nothing and returns false.
func (t *Tasks) Run(work func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.wg.Go(work)
	return true
}

// Close stops the work and waits for it.
func (t *Tasks) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.stop()
	t.wg.Wait()
}
