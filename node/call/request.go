package call

import (
	"context"
	"log/slog"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// requestKey is the key of the id of a request in a context.
type requestKey struct{}

// WithRequest returns a context with the id of a request. Calls to other nodes send the id, so
// that the logs of all nodes show the same id.
func WithRequest(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

// RequestOf returns the id that WithRequest set, "" if there is none.
func RequestOf(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// Slow logs slow work of this node. The zero value logs nothing.
type Slow struct {
	After time.Duration // 0 logs nothing
	Log   *slog.Logger
}

// Done logs finished work with the id of its request if the work took at least After.
func (s Slow) Done(ctx context.Context, work string, began time.Time, more ...any) {
	if took := clock.Since(began); s.After > 0 && took >= s.After {
		s.Log.Warn("slow "+work, append([]any{"request", RequestOf(ctx), "took", took}, more...)...)
	}
}
