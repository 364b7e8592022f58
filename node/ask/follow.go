package ask

import (
	"context"
	"fmt"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// follower shows viewers what is said in a thread, on whichever node its turn runs.
type follower struct {
	archive *archive
	remote  *remote
	changed func() <-chan struct{} // closed at the next change of the catalog
	pace    pace
}

// Chat returns a thread as far as the viewer may see it, including a turn that is still running.
func (f *follower) Chat(ctx context.Context, v catalog.Viewer, id string) (*Chat, error) {
	h, err := f.archive.visibleOrNewThread(ctx, v, id)
	if err != nil {
		return nil, err
	}

	c := f.archive.threadSummary(ctx, v, h)
	at := 0
	for _, turn := range h.Turns {
		k, err := f.archive.readTurn(ctx, h.ID, at, turn)
		if err != nil {
			return nil, err
		}
		at += int(turn.Events)
		c.Turns = append(c.Turns, f.archive.sightOf(v, k.Report.Sight).filterReport(k.Report))
	}

	if !c.Running {
		return &c, nil // all turns have ended, so their files have everything
	}

	// A running turn is only on its node. If it ends meanwhile, start over.
	r, err := f.remote.readRunning(ctx, h, 0, 0)
	now := f.archive.catalog.View().Thread(id)
	switch {
	case err == nil && !r.Elsewhere:
		c.Turns = append(c.Turns, f.archive.sightOf(v, r.Report.Sight).filterReport(r.Report))
		return &c, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case now == nil || now.Run.Fence != h.Run.Fence:
		return f.Chat(ctx, v, id)
	}

	// Its node does not answer, so show the question only.
	k, err := f.archive.readTurnFile(ctx, h.ID, h.Run.Lost)
	if err != nil {
		return nil, err
	}
	question := k.Report
	question.ID, question.First = id, h.Events()+1
	c.Turns = append(c.Turns, f.archive.sightOf(v, question.Sight).filterReport(question))
	return &c, nil
}

// WatchChat calls fn with the events of a thread after the given number, as the viewer may see
// them. It returns after the last event of the last turn, when ctx ends, or when fn fails. The
// turn may run on any node. If that node is lost, the last events say so.
func (f *follower) WatchChat(ctx context.Context, v catalog.Viewer, id string, after int, fn func(Event) error) error {
	for {
		// Get the channel before reading the thread, so that no change in between is missed.
		changed := f.changed()

		h, err := f.archive.visibleOrNewThread(ctx, v, id)
		if err != nil {
			return err
		}

		ended, err := f.replayEnded(ctx, v, h, &after, fn)
		if err != nil || ended && h.Run.Fence == 0 {
			return err
		}

		ended, err = f.followRunning(ctx, v, h, &after, fn)
		if err != nil || ended {
			return err
		}

		// The turn is about to begin or end, or its node does not answer: wait and look again.
		timer := time.NewTimer(f.pace.scale(lookPause))
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

// replayEnded calls fn with the events after *after of turns that have ended, and advances *after.
// complete reports that none failed.
func (f *follower) replayEnded(ctx context.Context, v catalog.Viewer, h *catalog.Thread, after *int, fn func(Event) error) (complete bool, err error) {
	next := 0
	for _, turn := range h.Turns {
		at := next
		next += int(turn.Events)
		// The watcher has these events already, so do not read the file.
		if next <= *after {
			continue
		}
		k, err := f.archive.readTurn(ctx, h.ID, at, turn)
		if err != nil {
			return false, err
		}

		// Check permissions for each turn, since they can change while watching.
		viewerSight := f.archive.sightOf(v, k.Report.Sight)
		for _, e := range k.Events {
			// The watcher has this event already.
			if e.N <= *after {
				continue
			}
			if err := fn(viewerSight.filterEvent(e)); err != nil {
				return false, err
			}
			*after = e.N
		}
	}
	return true, nil
}

// followRunning calls fn with the events after *after of the running turn, and advances *after. ended
// reports whether the last event was among them. It returns false if the turn's node does not answer.
func (f *follower) followRunning(ctx context.Context, v catalog.Viewer, h *catalog.Thread, after *int, fn func(Event) error) (ended bool, err error) {
	for h.Run.Fence != 0 {
		r, err := f.remote.readRunning(ctx, h, *after, watchWait)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil || r.Elsewhere && len(r.Events) == 0 {
			return false, nil // the thread has its end, or will have it soon
		}

		viewerSight := f.archive.sightOf(v, r.Report.Sight)
		for _, e := range r.Events {
			// A gap would look like an answer with missing words, so fail; the watcher starts
			// over.
			if e.N != *after+1 {
				return false, fmt.Errorf("event %d after %d", e.N, *after)
			}
			if err := fn(viewerSight.filterEvent(e)); err != nil {
				return false, err
			}
			*after = e.N
		}

		if r.Ended {
			return true, nil
		}
		if _, err := f.archive.visibleThread(v, h.ID); err != nil {
			return false, err // deleted, or not shared any more
		}
	}
	return false, nil
}

// StopChat ends the running turn of the viewer's thread. What was said so far is kept.
func (f *follower) StopChat(ctx context.Context, v catalog.Viewer, id string) error {
	h, err := f.archive.visibleOrNewThread(ctx, v, id)
	if err != nil {
		return err
	}
	if !owns(v, h) {
		return call.Fail(call.ErrForbidden, "This is somebody else's thread.")
	}
	if h.Run.Fence == 0 {
		return nil
	}

	err = f.remote.stopRunning(ctx, h)
	if err == nil {
		return nil
	}

	// The turn may have just ended without this node knowing. Without a leader, use the view as
	// it is.
	_ = f.archive.sync(ctx)
	if now := f.archive.catalog.View().Thread(id); now == nil || now.Run.Fence != h.Run.Fence {
		return nil
	}
	return err
}

// Follow calls fn with the events of a thread, as [Chats.WatchChat] does. While there are none, it
// calls alive once in each period, so that the connection is never silent for long.
func Follow(ctx context.Context, c Chats, v catalog.Viewer, id string, after int, every time.Duration, fn func(Event) error, alive func() error) error {
	for {
		some, cancel := context.WithTimeout(ctx, every)
		err := c.WatchChat(some, v, id, after, func(e Event) error {
			after = e.N
			return fn(e)
		})
		paused := some.Err() != nil
		cancel()

		// The period ended, not the turn.
		if err == nil || ctx.Err() != nil || !paused {
			return err
		}
		if err := alive(); err != nil {
			return err
		}
	}
}
