package run

import (
	"context"
	"sync"
)

// Tasks is the work of a mirror that goes on when who asked for it has left.
// Its owner is the mirror, which ends it and waits for it when it is closed.
type Tasks struct {
	Context context.Context // of all of it
	stop    context.CancelFunc

	mu     sync.Mutex // guards closed, and Go against Wait
	closed bool
	wg     sync.WaitGroup
}

// NewTasks makes an owner of work, which its Close ends.
func NewTasks() *Tasks {
	t := &Tasks{}
	t.Context, t.stop = context.WithCancel(context.Background())
	return t
}

// Run starts work in a goroutine of its own. It reports false, and starts
// nothing, when the owner is closed.
func (t *Tasks) Run(work func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.wg.Go(work)
	return true
}

// Close ends the work and waits for it.
func (t *Tasks) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.stop()
	t.wg.Wait()
}
