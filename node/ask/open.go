package ask

import (
	"context"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

const (
	attachTime = 15 * time.Minute // the same question within this time joins the first one
	titleRunes = 60
)

// opener makes a question a turn on this node.
type opener struct {
	archive *archive
	planner *planner
	keeper  *keeper
	starter *starter
	now     func() time.Time
}

// begin starts to answer a question on this node.
func (o *opener) begin(ctx context.Context, v catalog.Viewer, q Question) (*Started, error) {
	if err := o.fillFromThread(ctx, v, &q); err != nil {
		return nil, err
	}

	// Check everything before proposing: a question that cannot be answered leaves no thread.
	p, err := o.planner.plan(o.starter.runs.end, v, q)
	if err != nil {
		return nil, err
	}

	first, err := o.keeper.firstCommand(ctx, v, &q)
	if err != nil {
		return nil, err
	}

	return o.starter.startTurn(ctx, p, first)
}

// fillFromThread adds what a question inherits from its thread.
func (o *opener) fillFromThread(ctx context.Context, v catalog.Viewer, q *Question) error {
	if q.Thread == "" {
		return nil
	}
	h, err := o.archive.visibleOrNewThread(ctx, v, q.Thread)
	if err != nil {
		return err
	}
	// Everybody may read a shared thread, but only its owner may continue it, since that costs
	// money.
	if !owns(v, h) {
		return call.Fail(call.ErrForbidden, "This is somebody else's thread. Make a copy of it to go on with it: POST /api/chat/%s/fork.", h.ID)
	}

	if q.Earlier, err = o.archive.earlierTurns(ctx, v, h); err != nil {
		return err
	}
	if len(q.Earlier) == 0 {
		return nil
	}

	// By default, keep the repositories and the model of the previous question.
	last := q.Earlier[len(q.Earlier)-1]
	if q.Repos == nil {
		q.Repos = last.Repos
	}
	if q.Model == (ModelName{}) {
		if same := (ModelName{last.Provider(), last.ModelName()}); o.planner.models.isConfigured(same) {
			q.Model = same
		}
	}
	return nil
}

// findRepeated returns the thread in which the same asker asked the same first question a short time ago.
// A repeated request then waits for that answer and costs nothing. "" if there is none.
func (o *opener) findRepeated(ctx context.Context, v catalog.Viewer, q *Question) string {
	tag, err := o.keeper.questionTag(ctx, v, q)
	if err != nil {
		return "" // without the secret there are no threads either
	}

	var found *catalog.Thread

	// Skip a thread whose turn failed, or that has more questions.
	for _, h := range o.archive.catalog.View().ThreadsOf(ownerOf(v)) {
		isFirstTurn := len(h.Turns) == 0 && h.Run.Fence != 0 || len(h.Turns) == 1 && h.Run.Fence == 0 && !h.Turns[0].Failed
		if h.Asked == tag && isFirstTurn && o.now().Sub(h.Created) < attachTime && (found == nil || h.Created.After(found.Created)) {
			found = h
		}
	}

	if found == nil {
		return ""
	}
	return found.ID
}

// titleOf returns the beginning of a question as one line.
func titleOf(query string) string {
	words := []rune(strings.Join(strings.Fields(removeInvisible(query)), " "))
	if len(words) > titleRunes {
		return string(words[:titleRunes-1]) + "…"
	}
	return string(words)
}

// beginError explains why the catalog refused a turn.
func beginError(err error) error {
	if r, ok := catalog.Refused(err); ok {
		switch r.Code {
		case catalog.Held:
			return busyError("%s Wait for one of them, or stop it.", sentenceOf(r.Reason))
		case catalog.Conflict:
			return call.Fail(call.ErrUnable, "%s", sentenceOf(r.Reason))
		case catalog.NotFound:
			return noChat()
		}
	}
	return call.WriteError(err)
}

func sentenceOf(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

func busyError(format string, args ...any) *call.Error {
	e := call.Fail(call.ErrOverloaded, format, args...)
	e.RetryAfter = 15 * time.Second
	return e
}
