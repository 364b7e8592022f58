package hold

import (
	"context"
	"io"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// reader is an io.Reader that fails when its context ends, limits its rate and counts bytes.
type reader struct {
	ctx   context.Context
	r     io.Reader
	rate  *rate.Limiter // bytes a second, shared by many streams; nil means no limit
	count *atomic.Int64 // bytes read with a rate limit
}

// Read implements io.Reader.
func (r *reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if r.rate == nil {
		return r.r.Read(b)
	}

	n, err := r.r.Read(b[:min(len(b), r.rate.Burst())])
	r.count.Add(int64(n))

	// Wait after the read, because only then its length is known.
	if late := r.rate.WaitN(r.ctx, n); late != nil {
		return n, late
	}
	return n, err
}
