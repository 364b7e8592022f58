package hold

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// reader ends with its context, keeps to a pace and counts.
type reader struct {
	ctx   context.Context
	r     io.Reader
	rate  *pace
	count *atomic.Int64
}

// Read reads from the stream.
func (r *reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}

	n, err := r.r.Read(b)
	if r.count != nil {
		r.count.Add(int64(n))
	}

	// Paid for afterwards, since only then it is known how much came.
	if r.rate != nil && n > 0 && !clock.Wait(r.ctx, r.rate.take(n)) {
		return n, r.ctx.Err()
	}
	return n, err
}

// pace is a bound of bytes a second, for many streams together.
type pace struct {
	perSecond float64
	now       func() time.Time

	mu   sync.Mutex // guards the field below
	next time.Time  // when the bytes taken so far are paid for
}

// take says how long to wait after n bytes.
func (p *pace) take(n int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(time.Duration(float64(n) / p.perSecond * float64(time.Second)))
	return max(p.next.Sub(now)-100*time.Millisecond, 0) // bursts of a tenth of a second are free
}
