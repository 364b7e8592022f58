package hold

import (
	"context"
	"io"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// reader ends with its context, keeps to a pace and counts.
type reader struct {
	ctx   context.Context
	r     io.Reader
	rate  *rate.Limiter // bytes a second, for many streams together; nil for any pace
	count *atomic.Int64 // of what came at a pace
}

// Read reads from the stream.
func (r *reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if r.rate == nil {
		return r.r.Read(b)
	}

	n, err := r.r.Read(b[:min(len(b), r.rate.Burst())])
	r.count.Add(int64(n))

	// Paid for afterwards, since only then it is known how much came.
	if late := r.rate.WaitN(r.ctx, n); late != nil {
		return n, late
	}
	return n, err
}
