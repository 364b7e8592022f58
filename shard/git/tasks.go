package git

import (
	"context"
	"sync"
)

// tasks is the work of a mirror that goes on when who asked for it has left.
// Its owner is the mirror, which ends it and waits for it when it is closed.
type tasks struct {
	ctx  context.Context // of all of it
	stop context.CancelFunc

	mu     sync.Mutex // guards closed, and Go against Wait
	closed bool
	wg     sync.WaitGroup
}

func newTasks() *tasks {
	t := &tasks{}
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

// run starts work in a goroutine of its own. It reports false, and starts
// nothing, when the owner is closed.
func (t *tasks) run(work func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.wg.Go(work)
	return true
}

// close ends the work and waits for it.
func (t *tasks) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.stop()
	t.wg.Wait()
}
