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

// chatEvent is an event of a thread as the script of its page takes it. HTML is
// drawn here, so that what a model writes is escaped as everywhere.
type chatEvent struct {
	Kind string        `json:"kind"`
	Step int           `json:"step,omitempty"`
	HTML template.HTML `json:"html,omitempty"`
}

// chatEvents is the events of a thread behind the number after, as they come,
// until its last question is answered. A browser that was cut off names the last
// one that it has, and goes on behind it at any node.
func (p *conversations) chatEvents(ctx context.Context, v *layout.Visit) error {
	id, err := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(v.Path, chatPagePath), "/events"))
	if err != nil {
		return call.Fail(call.ErrNotFound, "There is no such chat.")
	}

	// Before the stream begins: then a refusal is still a status, which a script understands.
	if err := p.asker.Sees(ctx, v.Viewer, id); err != nil {
		return err
	}

	// A browser that connects again sends this by itself; its address still
	// names the event of the page.
	text := v.Sent("Last-Event-ID")
	if text == "" {
		text = v.Query.Get("after")
	}

	// A number that cannot be read is the beginning: what comes twice is better than what is missing.
	after, err := strconv.Atoi(text)
	if err != nil || after < 0 {
		after = 0
	}

	viewer := v.Viewer
	v.Mime = "text/event-stream"

	// Ended by the context, when the browser leaves, or by the end of the last answer.
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
	// Drawn by the template of the page, so that both are the same.
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

	// JSON has no line break in it: a break would end the data of an event.
	if _, err := fmt.Fprintf(w, "id: %d\ndata: %s\n\n", e.N, b); err != nil {
		return err
	}
	return w.Flush() // each event by itself: somebody is waiting
}
