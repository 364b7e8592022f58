package web

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/call"
)

var (
	chatsTemplate = layout.Parse(templates, "templates/chats.html", "templates/asking.html")
	chatTemplate  = layout.Parse(templates, "templates/chat.html", "templates/asking.html")
)

const (
	chatsShown   = 100
	chatAgain    = 3 // seconds until the page of a running question reloads
	chatPagePath = "/chat/"
)

// chats shows the viewer's threads, and begins a thread.
func (p *conversations) chats(ctx context.Context, v *layout.Visit) error {
	if v.Method == "POST" {
		return p.askOn(ctx, v, ask.Question{Query: v.Form.Get("query"), Repos: namesIn(v.Form.Get("repos")), Model: modelIn(v.Form.Get("model"))})
	}

	threads, total, err := p.threads(ctx, v, "")
	if err != nil {
		return err
	}
	form := asking{
		Action: "/chat", Label: "Question", Hint: "How is a search answered?", Rows: 3, Pick: true,
		Query: v.Query.Get("q"), Repos: v.Query.Get("repos"), Models: p.models(ctx, v),
	}
	return v.Show(layout.Head{Title: "Ask", Page: "chats"}, chatsTemplate, struct {
		HasModel, Guest bool
		NoModel         string
		Asking          asking
		Examples        []string
		Total           string
		Rows            []threadRow
	}{p.asker.HasModel(), v.Viewer.Role == catalog.RoleGuest, ask.NoModel, form, exampleQuestions, layout.Counted(total, "thread", "threads"), threads})
}

// exampleQuestions are shown to a reader without threads.
var exampleQuestions = []string{"Where does a request enter, and what handles it?", "How are errors reported to users?", "What has to change to add a setting?"}

// asking is the form of a question.
type asking struct {
	Action, Label, Hint string
	Rows                int
	Pick                bool // repositories can be chosen
	Query, Repos        string
	Models              []modelRow
	Model               string // the chosen one
}

// modelRow is a model to choose.
type modelRow struct{ Value, Name string }

// modelsTime limits the look-up of models. Their names come at once, and whether a credential can
// be read does not matter here.
const modelsTime = 100 * time.Millisecond

// models returns the models to choose from; none if they cannot be listed.
func (p *conversations) models(ctx context.Context, v *layout.Visit) (rows []modelRow) {
	ctx, cancel := context.WithTimeout(ctx, modelsTime)
	defer cancel()
	list, err := p.asker.Models(ctx, v.Viewer)
	if err != nil {
		return nil // the first one answers
	}
	for _, m := range list {
		rows = append(rows, modelRow{m.Provider + "/" + m.Model, cmp.Or(m.DisplayName, m.Model)})
	}
	return rows
}

// modelIn returns the model of a form; zero if it names none.
func modelIn(field string) ask.ModelName {
	provider, name, _ := strings.Cut(field, "/")
	return ask.ModelName{Provider: provider, Model: name}
}

// threadRow is a thread in a list.
type threadRow struct {
	Title, URL, Changed   string
	Count                 string
	Running, Public, Here bool
}

// threads returns the newest threads of the viewer, and their number. here is the shown thread.
// Guests have no list.
func (p *conversations) threads(ctx context.Context, v *layout.Visit, here string) ([]threadRow, int, error) {
	if v.Viewer.Role == catalog.RoleGuest {
		return nil, 0, nil
	}
	list, total, err := p.asker.Chats(ctx, v.Viewer, 0, chatsShown)
	if err != nil {
		return nil, 0, err
	}
	rows := make([]threadRow, len(list))
	for i, c := range list {
		rows[i] = threadRow{c.Title, chatPagePath + c.ID, p.ago(c.Changed), layout.Counted(c.Count, "question", "questions"), c.Running, c.Public, c.ID == here}
	}
	return rows, total, nil
}

// namesIn returns the names of a field with one name a line, because names may contain spaces, as
// projects of Azure DevOps do.
func namesIn(field string) []string {
	var names []string
	for line := range strings.Lines(field) {
		if name := strings.TrimSpace(line); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// askOn asks a question, and redirects to the page of the thread.
func (p *conversations) askOn(ctx context.Context, v *layout.Visit, q ask.Question) error {
	if err := v.SameSite(); err != nil {
		return err
	}

	// Forms send line ends as \r\n.
	q.Query = strings.ReplaceAll(q.Query, "\r\n", "\n")

	// No names mean the repositories of the thread; an empty list would mean all.
	if len(q.Repos) == 0 {
		q.Repos = nil
	}
	started, err := p.asker.Ask(ctx, v.Viewer, q)
	if err != nil {
		return err
	}
	return v.Redirect(303, chatPagePath+started.ID)
}

// chat shows the page of a thread. While a question is being answered, a script shows the events
// (see chatEvents); without scripts the browser reloads the page.
func (p *conversations) chat(ctx context.Context, v *layout.Visit) error {
	id, err := url.PathUnescape(strings.TrimPrefix(v.Path, chatPagePath))
	if err != nil {
		return call.Fail(call.ErrNotFound, "There is no such chat.")
	}

	if v.Method == "POST" {
		return p.changeChat(ctx, v, id)
	}

	c, err := p.asker.Chat(ctx, v.Viewer, id)
	if err != nil {
		return err
	}

	data := struct {
		*ask.Chat
		Action, Status string
		Turns          []chatTurn
		Guest          bool
		Threads        []threadRow
		Asking         asking
	}{Chat: c, Action: chatPagePath + url.PathEscape(id), Guest: v.Viewer.Role == catalog.RoleGuest}
	data.Asking = asking{Action: data.Action, Label: "A further question", Hint: "Ask further", Rows: 2, Models: p.models(ctx, v)}
	if data.Threads, _, err = p.threads(ctx, v, id); err != nil {
		return err
	}

	for i := range c.Turns {
		t := p.chatTurn(ctx, i, &c.Turns[i])
		// From the first event, because the script draws the answer again.
		if t.Waiting {
			t.Events = fmt.Sprintf("%s/events?after=%d", data.Action, t.First-1)
		}
		// A button repeats the last question, perhaps with another model.
		if c.Mine && i == len(c.Turns)-1 && !t.Waiting && (t.Failed() || len(data.Asking.Models) > 1) {
			t.Again = data.Action
		}
		data.Asking.Model = t.Model
		data.Turns = append(data.Turns, t)
	}

	head := layout.Head{Title: c.Title, Page: "chat", Scripts: []string{"js/peek.js"}}
	// Only during an answer, or the page would reload forever.
	if c.Running {
		head.Again, head.Scripts = chatAgain, append(head.Scripts, "js/chat.js")
	}
	return v.Show(head, chatTemplate, data)
}

// chatTurn is a question with its answer, for the page.
type chatTurn struct {
	*ask.Report
	Pieces  []chatPiece
	Drawn   *document // the answer, once complete
	Refused string    // why it is not drawn
	Waiting bool
	Events  string     // address of the events, while it is being answered
	Sources []foundRow // files that were read
	Looked  string     // number of files and searches
	Again   string     // address that repeats the question; "" for none
	Took    string
}

// Failed reports whether a question has no answer.
func (t *chatTurn) Failed() bool { return t.Status == ask.Failed || t.Status == ask.Stopped }

// chatPiece is a piece of an answer: text, or a citation. A citation without a URL is not
// verified.
type chatPiece struct{ Text, Label, URL, Note string }

// chatTurn returns the nth turn of a thread. A running answer is shown as text, because half a
// document may render differently.
func (p *conversations) chatTurn(ctx context.Context, n int, r *ask.Report) chatTurn {
	t := chatTurn{Report: r, Waiting: r.Status == ask.Running}

	for _, piece := range r.Answer {
		if piece.Cite == nil {
			t.Pieces = append(t.Pieces, chatPiece{Text: piece.Text})
			continue
		}
		t.Pieces = append(t.Pieces, citePiece(piece.Cite))
	}

	// Files that the answer does not cite are listed too, because it may depend on them.
	for _, read := range r.Reads {
		t.Sources = append(t.Sources, foundRow{URL: address(read.Repo, read.Commit, "blob", read.Path), Name: read.Path, Where: read.Repo})
	}

	t.Looked = layout.Counted(len(t.Sources), "file read", "files read") + ", " + layout.Counted(r.Searches, "search", "searches")
	if !t.Waiting {
		t.Drawn, t.Refused = p.answer(ctx, n, r.Answer)
		t.Took = layout.Counted(int(r.Took.Seconds()+0.5), "second", "seconds")
		if name := r.ModelName(); name != "" {
			t.Took += ", " + name
		}
	}
	return t
}

func citePiece(k *ask.Citation) chatPiece {
	c := chatPiece{Label: k.Label(), URL: k.URL("")}
	// Link to the source, because a document has no lines.
	if c.URL != "" && k.First > 0 {
		c.URL = lines(c.URL, k.Path)
	}
	switch {
	case k.State == ask.Moved:
		c.Note = "moved to where this stands"
	case k.State == ask.Unverified:
		c.Note = "unverified"
	case k.State == ask.Unchecked && c.URL != "":
		c.Note = "unchecked: no tool has shown these lines"
	case k.State == ask.Unchecked:
		c.Note = "could not be checked"
	}
	return c
}

// changeChat makes the change of a form of a thread's page.
func (p *conversations) changeChat(ctx context.Context, v *layout.Visit, id string) error {
	if err := v.SameSite(); err != nil {
		return err
	}

	to, err := chatPagePath+url.PathEscape(id), error(nil)
	share := func(public bool) error { return p.asker.ChangeChat(ctx, v.Viewer, id, "", &public) }

	switch v.Form.Get("do") {
	case "ask":
		return p.askOn(ctx, v, ask.Question{Query: v.Form.Get("query"), Thread: id, Model: modelIn(v.Form.Get("model"))})
	case "stop":
		err = p.asker.StopChat(ctx, v.Viewer, id)
	case "share":
		err = share(true)
	case "unshare":
		err = share(false)

	case "delete":
		err, to = p.asker.DeleteChat(ctx, v.Viewer, id), "/chat"
	case "fork":
		var fork string
		fork, err = p.asker.ForkChat(ctx, v.Viewer, id)
		to = chatPagePath + fork

	default:
		err = call.Fail(call.ErrInvalid, "do: expected ask, stop, share, unshare, delete or fork")
	}

	if err != nil {
		return err
	}
	return v.Redirect(303, to)
}
