package tool

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// HasBackground reports whether any tool of the set can run as a task.
func (s *Set) HasBackground() bool {
	for i := range s.tools {
		if s.tools[i].Background != nil {
			return true
		}
	}
	return false
}

// Begin starts a task for a call, without waiting for it. Both results are nil if the tool has no
// tasks. The answer, if not nil, says why no task was started.
func (s *Set) Begin(ctx context.Context, v catalog.Viewer, name string, arguments json.RawMessage) (*Work, *Answer) {
	t := s.named(name)
	if t == nil || t.Background == nil {
		return nil, nil
	}

	// Check the arguments first, so that the caller gets an error at once.
	a, err := t.decode(arguments)
	if err != nil {
		return nil, &Answer{Text: err.Error(), Failed: true}
	}

	// Look the task up at once, so that the client gets the same description as later.
	id, err := t.Background.Begin(ctx, v, a)
	if err == nil {
		var w *Work
		if w, err = t.Background.Look(ctx, v, id); err == nil {
			return w, nil
		}
	}

	// Begin or Look failed. The text is the same as for a caller that waits.
	refused := s.failed(ctx, v, t, a, err)
	return nil, &refused
}

// Look returns the state of a task of the viewer.
func (s *Set) Look(ctx context.Context, v catalog.Viewer, id string) (w *Work, err error) {
	err = s.owner(func(b *Background) (err error) {
		w, err = b.Look(ctx, v, id)
		return err
	})
	return w, err
}

// Stop asks a task of the viewer to end.
func (s *Set) Stop(ctx context.Context, v catalog.Viewer, id string) error {
	return s.owner(func(b *Background) error { return b.Stop(ctx, v, id) })
}

// owner calls fn for each tool with tasks, until one of them knows the task.
func (s *Set) owner(fn func(*Background) error) error {
	for i := range s.tools {
		b := s.tools[i].Background
		// The id does not say which tool the task belongs to.
		if b == nil {
			continue
		}

		// Any other error comes from the tool that knows the id; do not hide it.
		if err := fn(b); !errors.Is(err, call.ErrNotFound) {
			return err
		}
	}
	return call.Fail(call.ErrNotFound, "There is no such task, or it is not kept any more.")
}
