package ask

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/tool"
)

// patience is how long a call with progress messages waits for an answer. margin is how long
// before a deadline the call returns what there is.
const (
	patience = 8 * time.Minute
	margin   = 5 * time.Second
)

// desk answers questions from calls of the tool ask_codebase.
type desk struct {
	questions *questions
	archive   *archive
	follower  *follower
	retention *retention
	base      func() string // prefix of links
}

// Tool returns the row of ask_codebase in the table of tools.
func (a *Asker) Tool() tool.Tool {
	row := a.desk.toolRow()
	row.Offered = a.HasModel
	return row
}

// toolRow returns the tool ask_codebase.
func (d *desk) toolRow() tool.Tool {
	return tool.Tool{
		Name: "ask_codebase", Title: "Ask a question about code",
		About: "A language model of the instance researches a question for minutes; answers with citations. Only if the user asks for it: your own searches are faster.",
		Params: []tool.Param{
			{Name: "query", Kind: tool.String, Required: true},
			{Name: "repos", Kind: tool.Strings},
			{Name: "languageModel", Kind: tool.Named, Words: []string{"provider", "model"}},
			{Name: "visibility", Kind: tool.String, Words: []string{"PRIVATE", "PUBLIC"}},
		},
		Patience: patience, // without progress messages the usual limit of calls applies
		Run:      d.answerCall,
		Background: &tool.Background{
			Begin: d.beginQuestion,
			Look:  d.firstProgress,
			Stop:  d.stopQuestion,
		},
	}
}

// beginQuestion starts the question of a call and returns the id of its thread. The same call again
// returns the same thread.
func (d *desk) beginQuestion(ctx context.Context, v catalog.Viewer, args *tool.Args) (id string, err error) {
	m := args.Named("languageModel")

	// If visibility is not set, the kind of asker decides.
	q := Question{
		Query:   args.Text("query"),
		Repos:   args.List("repos"),
		Model:   ModelName{m["provider"], m["model"]},
		Public:  args.Text("visibility") == "PUBLIC",
		Private: args.Text("visibility") == "PRIVATE",
	}

	// Clients repeat a call that took too long: do not ask, and pay, twice.
	if id = d.questions.opener.findRepeated(ctx, v, &q); id != "" {
		return id, nil
	}
	started, err := d.questions.Ask(ctx, v, q)
	if err != nil {
		return "", err
	}
	return started.ID, nil
}

// answerCall runs a call of ask_codebase. If the answer is not ready in time, it returns the
// progress; the same call again waits for the rest.
func (d *desk) answerCall(ctx context.Context, v catalog.Viewer, args *tool.Args) (string, error) {
	id, err := d.beginQuestion(ctx, v, args)
	if err != nil {
		return "", err
	}

	// Return before the client gives up.
	wait, cancel := ctx, context.CancelFunc(func() {})
	if left, ok := clock.Left(ctx); ok {
		wait, cancel = context.WithTimeout(ctx, max(left-margin, 0))
	}
	defer cancel()

	steps, doing := 0, "thinking"
	err = d.follower.WatchChat(wait, v, id, 0, func(e Event) error {
		switch e.Kind {
		case KindStep:
			steps = e.Step
		case KindCall:
			doing = e.Text
		case KindText:
			doing = "writing the answer"
		}
		tool.Progress(ctx, fmt.Sprintf("step %d: %s", steps, doing))
		return nil
	})

	// Return the answer, or else the progress.
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case wait.Err() != nil:
		return d.progressText(id, steps, doing), nil
	case err != nil:
		return "", err
	}

	c, err := d.follower.Chat(ctx, v, id)
	if err != nil {
		return "", err
	}
	r := &c.Turns[0]
	// The error text says whether asking again may help.
	if r.Status != Done {
		return "", call.Fail(call.ErrUnable, "%s", r.Error)
	}
	return d.formatReport(r), nil
}

// firstProgress returns the progress of the first question in the viewer's thread. Later questions in the
// thread do not belong to the call.
func (d *desk) firstProgress(ctx context.Context, v catalog.Viewer, id string) (*tool.Work, error) {
	h, err := d.archive.ownThread(ctx, v, id)
	if err != nil {
		return nil, err
	}
	w := &tool.Work{ID: id, Status: tool.Working, Doing: "waiting for its node", Began: h.Created, Changed: h.Changed, Kept: d.retention.lifetime(h)}

	// If the node that runs the turn does not answer, nothing more is known.
	if len(h.Turns) == 0 {
		r, err := d.follower.remote.readRunning(ctx, h, math.MaxInt32, 0)
		if err == nil && !r.Elsewhere {
			w.Doing = fmt.Sprintf("step %d", r.Report.Steps+1)
		}
		return w, ctx.Err()
	}

	k, err := d.archive.readTurn(ctx, id, 0, h.Turns[0])
	if err != nil {
		return nil, err
	}
	r := d.archive.sightOf(v, k.Report.Sight).filterReport(k.Report)

	switch w.Doing = ""; r.Status {
	case Done:
		w.Status, w.Answer = tool.Done, tool.Answer{Text: d.formatReport(&r)}
	case Stopped:
		w.Status = tool.Stopped
	default:
		w.Status, w.Answer = tool.Done, tool.Answer{Text: r.Error, Failed: true}
	}
	return w, nil
}

// stopQuestion ends the first question of the viewer's thread, but no later one.
func (d *desk) stopQuestion(ctx context.Context, v catalog.Viewer, id string) error {
	h, err := d.archive.ownThread(ctx, v, id)
	if err != nil || len(h.Turns) > 0 {
		return err
	}
	return d.follower.StopChat(ctx, v, id)
}

// progressText says how far a question is.
func (d *desk) progressText(id string, steps int, doing string) string {
	return fmt.Sprintf("Still researching (%s so far; now: %s). The full answer will be at %s. Call ask_codebase again with the same arguments to wait for it; that starts nothing anew.", catalog.Counted(steps, "step", "steps"), doing, d.link(id))
}

// link returns the page of a thread.
func (d *desk) link(id string) string { return d.base() + "/chat/" + id }

// formatReport formats an answer for a model.
func (d *desk) formatReport(r *Report) string {
	var b strings.Builder
	b.WriteString(Markdown(r.Answer, d.base()))
	fmt.Fprintf(&b, "\n\n---\nSources: %s, %s.", catalog.Counted(len(r.Reads), "file read", "files read"), catalog.Counted(r.Searches, "search", "searches"))
	fmt.Fprintf(&b, " Session: %s Model: %s.", d.link(r.ID), r.Model)
	if len(r.Limits) > 0 {
		b.WriteString("\n" + strings.Join(r.Limits, " "))
	}
	return b.String()
}
