// Package clock is the one place that looks at the clock of the machine and
// that waits.
//
// There are two kinds of time. Dates, which are kept and shown, come from the
// func() time.Time that a part was given, which is [Now] unless a test has
// another; a person or a time server may set that clock. How long something
// took, and how long to wait, is measured between two calls of Now with
// [Since]: these have a monotonic reading, so that setting the clock neither
// ends an election nor keeps a connection open. Under testing/synctest both
// are the time of the bubble.
package clock

import (
	"context"
	"time"
)

// Now returns the current time, with a monotonic reading.
func Now() time.Time { return time.Now() }

// Since returns the time since t, which Now must have returned.
func Since(t time.Time) time.Duration { return time.Since(t) }

// In returns the time d from now, for deadlines of connections.
func In(d time.Duration) time.Time { return time.Now().Add(d) }

// Left returns how long a context still lasts, negative after its deadline. ok is false if it has
// no deadline.
func Left(ctx context.Context) (time.Duration, bool) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0, false
	}
	return time.Until(deadline), true
}

// Wait waits for d, and reports false when the context ended before.
func Wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()

	select {
	case <-timer.C:
		// Both may have happened; then the context wins.
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
