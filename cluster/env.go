package cluster

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// env is what every part of a node has. Its methods are safe for concurrent
// use.
type env struct {
	timing float64 // multiplies the timeouts
	log    *slog.Logger
	fail   func(error)     // notes an error with which the node cannot go on
	life   context.Context // ends when the node is closed
	tasks  sync.WaitGroup  // goroutines that last until then
}

// scaled is a timeout at the chosen Timing.
func (e *env) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) * e.timing)
}

// unscaled is how long something took as it would at Timing 1.
func (e *env) unscaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) / e.timing)
}

// pause waits, and reports false when the context or the cluster ended.
func (e *env) pause(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()
	return clock.Wait(ctx, d)
}
