package cluster

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// env is shared by all parts of a node. Its methods are safe for concurrent use.
type env struct {
	timing float64 // multiplies the timeouts
	log    *slog.Logger
	fail   func(error)     // stops the node with an error
	life   context.Context // ends when the node is closed
	tasks  sync.WaitGroup  // goroutines that run until life ends
}

// scaled returns a timeout at the configured Timing.
func (e *env) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) * e.timing)
}

// unscaled converts a measured time to Timing 1.
func (e *env) unscaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) / e.timing)
}

// pause waits. It returns false if the context or the cluster ended.
func (e *env) pause(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()
	return clock.Wait(ctx, d)
}
