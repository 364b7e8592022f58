package ask

import (
	"context"
	"fmt"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// follower shows viewers what is said in a thread, wherever it is being said.
type follower struct {
	archive *archive
	remote  *remote
	changed func() <-chan struct{} // of the next view
	pace    pace
}

// Chat is a thread that the viewer may see, with what he may see of it, as far
// as it is.
func (f *follower) Chat(ctx context.Context, v catalog.Viewer, id string) (*Chat, error) {
	h, err := f.archive.fresh(ctx, v, id)
	if err != nil {
		return nil, err
	}

	c := f.archive.brief(ctx, v, h)
	at := 0
	for _, turn := range h.Turns {
		k, err := f.archive.said(ctx, h.ID, at, turn)
		if err != nil {
			return nil, err
		}
		at += int(turn.Events)
		c.Turns = append(c.Turns, f.archive.sightOf(v, k.Report.Sight).report(k.Report))
	}

	if !c.Running {
		return &c, nil // what has ended is in files, wherever it ran
	}

	// What is being answered is where it runs. It may end meanwhile: then the
	// thread is looked at once more.
	r, err := f.remote.running(ctx, h, 0, 0)
	now := f.archive.catalog.View().Thread(id)
	switch {
	case err == nil && !r.Elsewhere:
		c.Turns = append(c.Turns, f.archive.sightOf(v, r.Report.Sight).report(r.Report))
		return &c, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case now == nil || now.Run.Fence != h.Run.Fence:
		return f.Chat(ctx, v, id)
	}

	// Its node cannot be asked now: the question is all there is to show.
	k, err := f.archive.file(ctx, h.ID, h.Run.Lost)
	if err != nil {
		return nil, err
	}
	question := k.Report
	question.ID, question.First = id, h.Events()+1
	c.Turns = append(c.Turns, f.archive.sightOf(v, question.Sight).report(question))
	return &c, nil
}

// WatchChat gives the events of a thread after a number to fn, as the viewer
// may see them, until the last one of its last turn, or until ctx ends or fn
// fails. It does not matter where the turn runs. If its node is lost, the last events
// say so.
func (f *follower) WatchChat(ctx context.Context, v catalog.Viewer, id string, after int, fn func(Event) error) error {
	for {
		// Asked for before the thread is: a change between the two would else be waited for in
		// vain.
		changed := f.changed()

		h, err := f.archive.fresh(ctx, v, id)
		if err != nil {
			return err
		}

		ended, err := f.replay(ctx, v, h, &after, fn)
		if err != nil || ended && h.Run.Fence == 0 {
			return err
		}

		ended, err = f.follow(ctx, v, h, &after, fn)
		if err != nil || ended {
			return err
		}

		// The turn is about to begin or to end, or its node cannot be asked.
		timer := time.NewTimer(f.pace.of(lookPause))
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		timer.Stop()
	}
}

// replay gives out the events of the turns that have ended.
func (f *follower) replay(ctx context.Context, v catalog.Viewer, h *catalog.Thread, after *int, fn func(Event) error) (bool, error) {
	next := 0
	for _, turn := range h.Turns {
		at := next
		next += int(turn.Events)
		// Who comes back has seen these: their files are not even opened.
		if next <= *after {
			continue
		}
		k, err := f.archive.said(ctx, h.ID, at, turn)
		if err != nil {
			return false, err
		}

		// Decided anew for each turn: what the viewer may see can change while he watches.
		may := f.archive.sightOf(v, k.Report.Sight)
		for _, e := range k.Events {
			// He left in the middle of this turn.
			if e.N <= *after {
				continue
			}
			if err := fn(may.event(e)); err != nil {
				return false, err
			}
			*after = e.N
		}
	}
	return true, nil
}

// follow gives out the events of the turn that is being answered; ended says
// that its last one was among them.
func (f *follower) follow(ctx context.Context, v catalog.Viewer, h *catalog.Thread, after *int, fn func(Event) error) (ended bool, err error) {
	for h.Run.Fence != 0 {
		r, err := f.remote.running(ctx, h, *after, watchWait)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil || r.Elsewhere && len(r.Events) == 0 {
			return false, nil // its end is in the thread, or about to be
		}

		may := f.archive.sightOf(v, r.Report.Sight)
		for _, e := range r.Events {
			// A gap would be shown as an answer that lacks words: better an error, and a new
			// beginning.
			if e.N != *after+1 {
				return false, fmt.Errorf("event %d after %d", e.N, *after)
			}
			if err := fn(may.event(e)); err != nil {
				return false, err
			}
			*after = e.N
		}

		if r.Ended {
			return true, nil
		}
		if _, err := f.archive.visible(v, h.ID); err != nil {
			return false, err // it was deleted, or is not shared any more
		}
	}
	return false, nil
}

// StopChat ends the turn of the viewer's thread that is being answered. What
// was said is kept.
func (f *follower) StopChat(ctx context.Context, v catalog.Viewer, id string) error {
	h, err := f.archive.fresh(ctx, v, id)
	if err != nil {
		return err
	}
	if !owns(v, h) {
		return call.Fail(call.ErrForbidden, "This is somebody else's thread.")
	}
	if h.Run.Fence == 0 {
		return nil
	}

	err = f.remote.stop(ctx, h)
	if err == nil {
		return nil
	}

	// It may have ended a moment ago, of which this node has yet to hear. Without a
	// leader its view is what there is.
	_ = f.archive.sync(ctx)
	if now := f.archive.catalog.View().Thread(id); now == nil || now.Run.Fence != h.Run.Fence {
		return nil
	}
	return err
}

// Follow is WatchChat for connections that must not be silent for long: every so
// often it calls alive, between two events.
func Follow(ctx context.Context, c Chats, v catalog.Viewer, id string, after int, every time.Duration, fn func(Event) error, alive func() error) error {
	for {
		some, cancel := context.WithTimeout(ctx, every)
		err := c.WatchChat(some, v, id, after, func(e Event) error {
			after = e.N
			return fn(e)
		})
		paused := some.Err() != nil
		cancel()

		// A pause is no end.
		if err == nil || ctx.Err() != nil || !paused {
			return err
		}
		if err := alive(); err != nil {
			return err
		}
	}
}
