package web

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
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
	chatsShown   = 100 // threads in a list
	chatReload   = 3   // seconds until the page of a running question reloads
	chatPagePath = "/chat/"
)

// chats shows the viewer's threads and the form for a question. A POST begins a thread.
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
	Model               string // the selected model
}

// modelRow is a model that a reader can choose.
type modelRow struct{ Value, Name string }

// modelsTime limits the time to list models: their names are known at once, and the page does not show
// whether their credentials can be read.
const modelsTime = 100 * time.Millisecond

// models returns the models to choose from; none if they cannot be listed.
func (p *conversations) models(ctx context.Context, v *layout.Visit) (rows []modelRow) {
	ctx, cancel := context.WithTimeout(ctx, modelsTime)
	defer cancel()
	list, err := p.asker.Models(ctx, v.Viewer)
	if err != nil {
		return nil // without a choice the first model answers
	}
	for _, m := range list {
		rows = append(rows, modelRow{m.Provider + "/" + m.Model, cmp.Or(m.DisplayName, m.Model)})
	}
	return rows
}

// modelIn returns the model that a form names as provider/model; zero if it names none.
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

// threads returns the viewer's newest threads, and how many threads there are. It marks the thread
// with the id here. Guests have no threads.
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

// namesIn returns the names in a field of a form, which has one name a line: names may contain spaces,
// as those of Azure DevOps do.
func namesIn(field string) []string {
	var names []string
	for line := range strings.Lines(field) {
		if name := strings.TrimSpace(line); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// askOn asks a question, and redirects to the page of its thread.
func (p *conversations) askOn(ctx context.Context, v *layout.Visit, q ask.Question) error {
	if err := v.SameSite(); err != nil {
		return err
	}

	// Browsers send line ends in forms as \r\n.
	q.Query = strings.ReplaceAll(q.Query, "\r\n", "\n")

	// If the form names no repositories, ask about those of the thread: nil means that, [] means all.
	if len(q.Repos) == 0 {
		q.Repos = nil
	}
	started, err := p.asker.Ask(ctx, v.Viewer, q)
	if err != nil {
		return err
	}
	return v.Redirect(303, chatPagePath+started.ID)
}

// chat shows the page of a thread. While a question is being answered, a script shows the events of
// chatEvents. Without scripts the browser reloads the page. A POST changes the thread.
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
		// The script draws the whole answer, so it needs all events of the turn.
		if t.Waiting {
			t.Events = fmt.Sprintf("%s/events?after=%d", data.Action, t.First-1)
		}
		// The last question has a button that repeats it, if it failed or another model can answer it.
		if c.Mine && i == len(c.Turns)-1 && !t.Waiting && (t.Failed() || len(data.Asking.Models) > 1) {
			t.Again = data.Action
		}
		data.Asking.Model = t.nextModel(data.Asking.Models)
		data.Turns = append(data.Turns, t)
	}

	head := layout.Head{Title: c.Title, Page: "chat", Scripts: []string{"js/peek.js"}}
	// Reload only during an answer.
	if c.Running {
		head.Again, head.Scripts = chatReload, append(head.Scripts, "js/chat.js")
	}
	return v.Show(head, chatTemplate, data)
}

// chatTurn is a question with its answer, for the page.
type chatTurn struct {
	*ask.Report
	Pieces  []chatPiece
	Drawn   *document  // the complete answer; nil before, and if Refused
	Refused string     // why the answer is not drawn as a document
	Waiting bool       // the question is being answered
	Events  string     // address of the events while Waiting
	Sources []foundRow // files that the model has read
	Looked  string     // number of these files, and of searches
	Again   string     // address that repeats the question; "" for no button
	Took    string     // duration and model
}

// nextModel returns the model that a form offers first: the one of this turn, or the one after it in
// the list if that one failed.
func (t *chatTurn) nextModel(list []modelRow) string {
	i := slices.IndexFunc(list, func(m modelRow) bool { return m.Value == t.Model })
	if t.Status != ask.Failed || i < 0 {
		return t.Model
	}
	return list[(i+1)%len(list)].Value
}

// Failed reports whether a question has no answer.
func (t *chatTurn) Failed() bool { return t.Status == ask.Failed || t.Status == ask.Stopped }

// chatPiece is a piece of an answer: text, or a citation with a label. A citation that is not verified
// has no URL.
type chatPiece struct{ Text, Label, URL, Note string }

// chatTurn returns the nth turn of a thread. An unfinished answer is not drawn as a document, because
// its next piece may change how it looks.
func (p *conversations) chatTurn(ctx context.Context, n int, r *ask.Report) chatTurn {
	t := chatTurn{Report: r, Waiting: r.Status == ask.Running}

	for _, piece := range r.Answer {
		if piece.Cite == nil {
			t.Pieces = append(t.Pieces, chatPiece{Text: piece.Text})
			continue
		}
		t.Pieces = append(t.Pieces, citePiece(piece.Cite))
	}

	// List files that the answer does not cite too, because it may depend on them.
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
	// Link to the source of a document, because only that has lines.
	if c.URL != "" && k.First > 0 {
		c.URL = sourcePage(c.URL, k.Path)
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

// changeChat makes the change of a submitted form to a thread, and redirects: to the thread, to its
// copy, or after its deletion to the list.
func (p *conversations) changeChat(ctx context.Context, v *layout.Visit, id string) error {
	if err := v.SameSite(); err != nil {
		return err
	}

	to, err := chatPagePath+url.PathEscape(id), error(nil)
	setPublic := func(public bool) error { return p.asker.ChangeChat(ctx, v.Viewer, id, "", &public) }

	switch v.Form.Get("do") {
	case "ask":
		return p.askOn(ctx, v, ask.Question{Query: v.Form.Get("query"), Thread: id, Model: modelIn(v.Form.Get("model"))})
	case "stop":
		err = p.asker.StopChat(ctx, v.Viewer, id)
	case "share":
		err = setPublic(true)
	case "unshare":
		err = setPublic(false)

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
