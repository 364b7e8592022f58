package call

import (
	"context"
	"log/slog"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// requestKey is the key of the id of a request in a context.
type requestKey struct{}

// WithRequest returns a context of the request that has an id. Calls to other nodes bring the
// id along, so that the logs of all nodes name the request alike.
func WithRequest(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

// RequestOf is the id of the request that ctx is of, "" for work that no client asked for.
func RequestOf(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// Slow logs what takes long on this node. The zero value logs nothing.
type Slow struct {
	After time.Duration // 0 logs nothing
	Log   *slog.Logger
}

// Done logs work that began at a time and is over, with the id of its request.
func (s Slow) Done(ctx context.Context, work string, began time.Time, more ...any) {
	if took := clock.Since(began); s.After > 0 && took >= s.After {
		s.Log.Warn("slow "+work, append([]any{"request", RequestOf(ctx), "took", took}, more...)...)
	}
}
