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

// chatEvent is an event of a thread for the page's script. The HTML is rendered here, so that the
// model's text is escaped as elsewhere.
type chatEvent struct {
	Kind string        `json:"kind"`
	Step int           `json:"step,omitempty"`
	HTML template.HTML `json:"html,omitempty"`
}

// chatEvents sends the events of a thread after a number, until its last question is answered. A
// browser that lost its connection sends its last number, and continues at any node.
func (p *conversations) chatEvents(ctx context.Context, v *layout.Visit) error {
	id, err := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(v.Path, chatPagePath), "/events"))
	if err != nil {
		return call.Fail(call.ErrNotFound, "There is no such chat.")
	}

	// Before the stream begins a refusal can still be a status.
	if err := p.asker.Sees(ctx, v.Viewer, id); err != nil {
		return err
	}

	// A reconnecting browser sends this header, while the address has the page's event.
	text := v.Sent("Last-Event-ID")
	if text == "" {
		text = v.Query.Get("after")
	}

	// An invalid number means the beginning, because repeated events do no harm.
	after, err := strconv.Atoi(text)
	if err != nil || after < 0 {
		after = 0
	}

	viewer := v.Viewer
	v.Mime = "text/event-stream"

	// It ends when the browser disconnects, or at the end of the last answer.
	v.Stream = func(w *bufio.Writer) error {
		give := func(e ask.Event) error { return writeChatEvent(w, &e) }
		if err := ask.Follow(ctx, p.asker, viewer, id, after, layout.QuietEvents, give, layout.KeepAlive(w)); err != nil {
			return err
		}
		return w.Flush()
	}
	return nil
}

func writeChatEvent(w *bufio.Writer, e *ask.Event) error {
	out := chatEvent{Kind: e.Kind, Step: e.Step, HTML: layout.Text(e.Text)}
	// Rendered by the page's template, so that both look the same.
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

	// JSON has no line breaks; one would end the event's data.
	if _, err := fmt.Fprintf(w, "id: %d\ndata: %s\n\n", e.N, b); err != nil {
		return err
	}
	return w.Flush() // flush each event, because somebody is waiting
}
