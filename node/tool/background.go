package tool

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// Background is how a tool works for clients that do not wait: a call begins the
// work and is answered with an id, by which any node is asked later how far it is.
// The functions take calls from many goroutines, and fail with [call.ErrNotFound]
// for an id that is not that of work of the viewer's own.
type Background struct {
	Begin func(ctx context.Context, v catalog.Viewer, a *Args) (id string, err error)
	Look  func(ctx context.Context, v catalog.Viewer, id string) (*Work, error)

	// Stop asks for the end of the work; what has ended stays as it is.
	Stop func(ctx context.Context, v catalog.Viewer, id string) error
}

// Work is what a call has begun, as far as it is.
type Work struct {
	ID     string
	Status WorkStatus
	Doing  string // for people, while it goes on

	Began   time.Time
	Changed time.Time
	Kept    time.Duration // for how long after Began it can be asked for, at least

	Answer Answer // of work that is done: what the call would have been answered
}

// WorkStatus is how far work is.
type WorkStatus string

// The states of work.
const (
	Working WorkStatus = "working"
	Done    WorkStatus = "done" // also with an answer that says what went wrong
	Stopped WorkStatus = "stopped"
)

// HasBackground reports whether a tool of the set can work in the background.
func (s *Set) HasBackground() bool {
	for i := range s.tools {
		if s.tools[i].Background != nil {
			return true
		}
	}
	return false
}

// Begin begins the work of a call and does not wait for it. Both results are nil
// for a tool that only answers calls; the answer says why nothing was begun.
func (s *Set) Begin(ctx context.Context, v catalog.Viewer, name string, arguments json.RawMessage) (*Work, *Answer) {
	t := s.named(name)
	if t == nil || t.Background == nil {
		return nil, nil
	}

	// Checked before anything begins: work that cannot be done is refused while somebody waits.
	a, err := t.decode(arguments)
	if err != nil {
		return nil, &Answer{Text: err.Error(), Failed: true}
	}

	// What has begun is looked up at once: the client learns from the same place as later what it
	// is about.
	id, err := t.Background.Begin(ctx, v, a)
	if err == nil {
		var w *Work
		if w, err = t.Background.Look(ctx, v, id); err == nil {
			return w, nil
		}
	}

	// Either of the two has failed, and is told in the same words as to a caller that waits.
	refused := s.failed(ctx, v, t, a, err)
	return nil, &refused
}

// Look tells how far work of the viewer is.
func (s *Set) Look(ctx context.Context, v catalog.Viewer, id string) (w *Work, err error) {
	err = s.owner(func(b *Background) (err error) {
		w, err = b.Look(ctx, v, id)
		return err
	})
	return w, err
}

// Stop asks for the end of work of the viewer.
func (s *Set) Stop(ctx context.Context, v catalog.Viewer, id string) error {
	return s.owner(func(b *Background) error { return b.Stop(ctx, v, id) })
}

// owner gives fn the tools that work in the background, until one of them knows
// what it is asked for.
func (s *Set) owner(fn func(*Background) error) error {
	for i := range s.tools {
		b := s.tools[i].Background
		// An id does not say which tool it is of.
		if b == nil {
			continue
		}

		// Any other failure is of the one that knows the id: asking on would hide it.
		if err := fn(b); !errors.Is(err, call.ErrNotFound) {
			return err
		}
	}
	return call.Fail(call.ErrNotFound, "There is no such task, or it is not kept any more.")
}
