package browse

import (
	"context"
	"sync"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// readers bounds how many reads of mirrors run on behalf of one viewer, so
// that one who asks for much leaves room for the others. Reads beyond the
// bound wait.
type readers struct {
	mu sync.Mutex // guards the field below
	by map[string]*reader
}

// reader is one viewer.
type reader struct {
	places chan struct{}
	users  int // running and waiting
}

const (
	readsAtOnce  = 16  // of one viewer; all anonymous ones count as one
	readsWaiting = 256 // of one viewer, running ones included
)

func newReaders() *readers { return &readers{by: map[string]*reader{}} }

// enter waits for a place. leave must be called when err is nil.
func (r *readers) enter(ctx context.Context, v catalog.Viewer) (leave func(), err error) {
	// A key, else a name within its role: all who are anonymous share one.
	key := v.KeyID
	if key == "" {
		key = v.Role.String() + "\x00" + v.Name
	}

	r.mu.Lock()
	me := r.by[key]
	if me == nil {
		me = &reader{places: make(chan struct{}, readsAtOnce)}
		r.by[key] = me
	}

	if me.users >= readsWaiting {
		r.mu.Unlock()
		return nil, call.Fail(call.ErrOverloaded, "too many of your requests are waiting; try again in a moment")
	}

	me.users++
	r.mu.Unlock()

	// Who runs or waits keeps its entry; the last one to go takes it along.
	gone := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if me.users--; me.users == 0 {
			delete(r.by, key)
		}
	}

	select {
	case me.places <- struct{}{}:
		return func() { <-me.places; gone() }, nil
	case <-ctx.Done():
		gone()
		return nil, context.Cause(ctx)
	}
}
