package browse

import (
	"context"
	"sync"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// readers limits the concurrent reads of mirrors for each viewer, so that one viewer cannot use
// up the node. Further reads wait.
type readers struct {
	mu       sync.Mutex // guards the field below
	byViewer map[string]*reader
}

// reader counts the reads of one viewer.
type reader struct {
	places chan struct{}
	users  int // running and waiting
}

const (
	readsAtOnce  = 16  // for each viewer; all anonymous viewers count as one
	readsWaiting = 256 // for each viewer, including running ones
)

func newReaders() *readers { return &readers{byViewer: map[string]*reader{}} }

// enter waits for a free place. If err is nil, the caller must call leave.
func (r *readers) enter(ctx context.Context, v catalog.Viewer) (leave func(), err error) {
	// Identify the viewer by the key, or else by role and name. All anonymous viewers share one
	// entry.
	key := v.KeyID
	if key == "" {
		key = v.Role.String() + "\x00" + v.Name
	}

	r.mu.Lock()
	me := r.byViewer[key]
	if me == nil {
		me = &reader{places: make(chan struct{}, readsAtOnce)}
		r.byViewer[key] = me
	}

	if me.users >= readsWaiting {
		r.mu.Unlock()
		return nil, call.Fail(call.ErrOverloaded, "too many of your requests are waiting; try again in a moment")
	}

	me.users++
	r.mu.Unlock()

	// The last read of a viewer deletes the entry.
	forget := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if me.users--; me.users == 0 {
			delete(r.byViewer, key)
		}
	}

	select {
	case me.places <- struct{}{}:
		return func() { <-me.places; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, context.Cause(ctx)
	}
}
