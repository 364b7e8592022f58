package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/call"
)

// chatEvent is an event of a thread for the page's script, which inserts the HTML as it is: the model's
// text is escaped already.
type chatEvent struct {
	Kind string        `json:"kind"`
	Step int           `json:"step,omitempty"`
	HTML template.HTML `json:"html,omitempty"`
}

// chatEvents sends the events of a thread after the number in the request, until its last question is
// answered. A browser that lost its connection continues at any node after its last event.
func (p *conversations) chatEvents(ctx context.Context, v *layout.Visit) error {
	id, err := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(v.Path, chatPagePath), "/events"))
	if err != nil {
		return call.Fail(call.ErrNotFound, "There is no such chat.")
	}

	// Check the permission before the stream begins, so that a refusal has its own status.
	if err := p.asker.Sees(ctx, v.Viewer, id); err != nil {
		return err
	}

	// A reconnecting browser sends the number of its last event in this header. The address has the
	// number that the page began with.
	text := v.Sent("Last-Event-ID")
	if text == "" {
		text = v.Query.Get("after")
	}

	// After an invalid number send all events, because repeated ones do no harm.
	after, err := strconv.Atoi(text)
	if err != nil || after < 0 {
		after = 0
	}

	viewer := v.Viewer
	v.Mime = "text/event-stream"

	v.Stream = func(w *bufio.Writer) error {
		write := func(e ask.Event) error { return writeChatEvent(w, &e) }
		if err := ask.Follow(ctx, p.asker, viewer, id, after, layout.QuietEvents, write, layout.KeepAlive(w)); err != nil {
			return err
		}
		return w.Flush()
	}
	return nil
}

func writeChatEvent(w *bufio.Writer, e *ask.Event) error {
	out := chatEvent{Kind: e.Kind, Step: e.Step, HTML: layout.Text(e.Text)}
	// Draw a citation by the page's template, so that it looks the same in both.
	if e.Cite != nil {
		var b bytes.Buffer
		if err := chatTemplate.ExecuteTemplate(&b, "piece", citePiece(e.Cite)); err != nil {
			return err
		}
		out.HTML = template.HTML(b.String())
	}

	b, err := json.Marshal(out)
	if err != nil {
		return err
	}

	// The JSON has no line breaks, so it fits on the event's data line.
	if _, err := fmt.Fprintf(w, "id: %d\ndata: %s\n\n", e.N, b); err != nil {
		return err
	}
	return w.Flush() // after each event, because a reader is waiting for it
}
