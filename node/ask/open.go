package ask

import (
	"context"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

const (
	attachTime = 15 * time.Minute // after which the same question is asked anew
	titleRunes = 60
)

// opener makes a turn of a question, on this node.
type opener struct {
	archive *archive
	planner *planner
	keeper  *keeper
	starter *starter
	now     func() time.Time
}

// begin begins to answer a question on this node.
func (o *opener) begin(ctx context.Context, v catalog.Viewer, q Question) (*Started, error) {
	if err := o.continued(ctx, v, &q); err != nil {
		return nil, err
	}

	// What it needs is found out before anything is proposed: a question that cannot be answered
	// leaves no thread.
	p, err := o.planner.plan(o.starter.runs.end, v, q)
	if err != nil {
		return nil, err
	}

	first, err := o.keeper.firstCommand(ctx, v, &q)
	if err != nil {
		return nil, err
	}

	return o.starter.begin(ctx, p, first)
}

// continued fills in what a question has from its thread.
func (o *opener) continued(ctx context.Context, v catalog.Viewer, q *Question) error {
	if q.Thread == "" {
		return nil
	}
	h, err := o.archive.fresh(ctx, v, q.Thread)
	if err != nil {
		return err
	}
	// Reading a shared thread is free; going on with it costs its owner.
	if !owns(v, h) {
		return call.Fail(call.ErrForbidden, "This is somebody else's thread. Make a copy of it to go on with it: POST /api/chat/%s/fork.", h.ID)
	}

	if q.Earlier, err = o.archive.earlier(ctx, v, h); err != nil {
		return err
	}
	if len(q.Earlier) == 0 {
		return nil
	}

	// What is not said is as in the question before.
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

// find finds the thread of the same asker with the same first question, which
// is being answered or was a while ago, so that asking again waits for it and
// pays nothing; "" where there is none.
func (o *opener) find(ctx context.Context, v catalog.Viewer, q *Question) string {
	tag, err := o.keeper.tag(ctx, v, q)
	if err != nil {
		return "" // without the secret there are no threads either
	}

	var found *catalog.Thread

	// What failed is asked anew, and a thread that went on is another conversation.
	for _, h := range o.archive.catalog.View().ThreadsOf(ownerOf(v)) {
		good := len(h.Turns) == 0 && h.Run.Fence != 0 || len(h.Turns) == 1 && h.Run.Fence == 0 && !h.Turns[0].Failed
		if h.Asked == tag && good && o.now().Sub(h.Created) < attachTime && (found == nil || h.Created.After(found.Created)) {
			found = h
		}
	}

	if found == nil {
		return ""
	}
	return found.ID
}

// title is the beginning of a question, in one line.
func title(query string) string {
	words := []rune(strings.Join(strings.Fields(clean(query)), " "))
	if len(words) > titleRunes {
		return string(words[:titleRunes-1]) + "…"
	}
	return string(words)
}

// beginError says why the catalog let nobody answer.
func beginError(err error) error {
	if r, ok := catalog.Refused(err); ok {
		switch r.Code {
		case catalog.Held:
			return busy("%s Wait for one of them, or stop it.", sentenceOf(r.Reason))
		case catalog.Conflict:
			return call.Fail(call.ErrUnable, "%s", sentenceOf(r.Reason))
		case catalog.NotFound:
			return noChat()
		}
	}
	return call.WriteError(err)
}

func sentenceOf(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

func busy(format string, args ...any) *call.Error {
	e := call.Fail(call.ErrOverloaded, format, args...)
	e.RetryAfter = 15 * time.Second
	return e
}
