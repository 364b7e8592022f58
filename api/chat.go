package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/api/reply"
	nodeask "github.com/shoalsearch/shoal/node/ask"
	nodecall "github.com/shoalsearch/shoal/node/call"
)

// chatRoutes handles language models, questions and threads.
type chatRoutes struct {
	chats nodeask.Chats
	base  func() string
}

func (a *chatRoutes) routes() []route {
	return []route{
		newRoute("GET", "/api/models", accessRead, quickTimeout, viewerAnswer(a.chats.Models)),
		newRoute("POST", "/api/models/check", accessOwner, toolTimeout, ownerAnswer(a.chats.CheckModels)),
		newRoute("POST", "/api/chat", accessRead, quickTimeout, a.begin),
		newRoute("GET", "/api/chat", accessRead, quickTimeout, a.list),
		newRoute("POST", "/api/chat/blocking", accessRead, toolTimeout, a.blocking),
		newRoute("GET", "/api/chat/{id}", accessRead, quickTimeout, a.get),
		newRoute("PATCH", "/api/chat/{id}", accessRead, quickTimeout, a.change),
		newRoute("DELETE", "/api/chat/{id}", accessRead, quickTimeout, a.remove),
		newRoute("POST", "/api/chat/{id}/messages", accessRead, quickTimeout, a.message),
		newRoute("POST", "/api/chat/{id}/fork", accessRead, quickTimeout, a.fork),
		newRoute("POST", "/api/chat/{id}/stop", accessRead, quickTimeout, a.stop),
		newRoute("GET", "/api/chat/{id}/events", accessRead, chatTimeout, a.events),
	}
}

// readQuestion parses the question in a request body. thread is the thread that it continues; "" for
// a new one.
func readQuestion(c *call, thread string) (nodeask.Question, error) {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return nodeask.Question{}, err
	}

	q := nodeask.Question{Query: f.required("query"), Thread: thread}

	// Without repos the question is about the thread's repositories, or all that the asker may see.
	if _, ok := f.member("repos"); ok {
		q.Repos = f.texts("repos")
	}

	if raw, ok := f.member("languageModel"); ok {
		if json.Unmarshal(raw, &q.Model) != nil || q.Model.Model == "" {
			f.wrong("languageModel", `expected {"provider": "...", "model": "..."}`)
		}
	}

	// Only a new thread takes the visibility from the request: a later question must not publish the
	// earlier ones.
	if thread == "" {
		if public := readVisibility(f); public != nil {
			q.Public, q.Private = *public, !*public
		}
	}
	return q, f.err()
}

// Visibilities of threads.
const (
	visiblePublic  = "PUBLIC"  // everybody with the link may read
	visiblePrivate = "PRIVATE" // only the asker may read
)

// readVisibility returns whether a request makes a thread public; nil if it does not say.
func readVisibility(f *fields) *bool {
	if _, ok := f.member("visibility"); !ok {
		return nil
	}
	text := f.text("visibility")
	if text != visiblePublic && text != visiblePrivate {
		f.wrong("visibility", "expected %s or %s", visiblePublic, visiblePrivate)
	}
	public := text == visiblePublic
	return &public
}

func visibilityOf(public bool) string {
	if public {
		return visiblePublic
	}
	return visiblePrivate
}

// begin handles POST /api/chat: it starts a new thread and does not wait for the answer.
func (a *chatRoutes) begin(ctx context.Context, c *call) error { return a.answer(ctx, c, "") }

// message handles POST /api/chat/{id}/messages: it adds a question to a thread.
func (a *chatRoutes) message(ctx context.Context, c *call) error {
	return a.answer(ctx, c, c.pathValues[0])
}

// beginTurn starts to answer the question of a request; thread "" starts a new thread.
func (a *chatRoutes) beginTurn(ctx context.Context, c *call, thread string) (*nodeask.Started, error) {
	q, err := readQuestion(c, thread)
	if err != nil {
		return nil, err
	}

	return a.chats.Ask(ctx, c.viewer, q)
}

// answer starts to answer a question, and answers the request with the addresses of the thread and
// of its events.
func (a *chatRoutes) answer(ctx context.Context, c *call, thread string) error {
	t, err := a.beginTurn(ctx, c, thread)
	if err != nil {
		return err
	}

	c.status = 202
	return c.json(struct {
		ID     string `json:"id"`
		URL    string `json:"url"`
		Events string `json:"events"`
		After  int    `json:"after"`
	}{t.ID, a.chatURL(t.ID), fmt.Sprintf("%s/api/chat/%s/events?after=%d", a.base(), t.ID, t.After), t.After})
}

// chatURL returns the address of a thread's page.
func (a *chatRoutes) chatURL(id string) string { return a.base() + "/chat/" + id }

// blocking handles POST /api/chat/blocking: it asks a question in a new thread and waits for the
// answer.
func (a *chatRoutes) blocking(ctx context.Context, c *call) error {
	started, err := a.beginTurn(ctx, c, "")
	if err != nil {
		return err
	}

	// Wait for the last event. Then the thread has the answer.
	ignore := func(nodeask.Event) error { return nil }
	if err := a.chats.WatchChat(ctx, c.viewer, started.ID, 0, ignore); err != nil {
		return err
	}
	chat, err := a.chats.Chat(ctx, c.viewer, started.ID)
	if err != nil {
		return err
	}

	// The thread is new, so its first turn is the question.
	r := &chat.Turns[0]
	if r.Status != nodeask.Done {
		return nodecall.Fail(nodecall.ErrUnavailable, "%s", r.Error)
	}
	return c.json(struct {
		Answer        string            `json:"answer"`
		ChatID        string            `json:"chatId"`
		ChatURL       string            `json:"chatUrl"`
		LanguageModel nodeask.ModelName `json:"languageModel"`
		Limits        []string          `json:"limits"`
	}{nodeask.Markdown(r.Answer, a.base()), chat.ID, a.chatURL(chat.ID), nodeask.ModelName{Provider: r.Provider(), Model: r.ModelName()}, notNil(r.Limits)})
}

// notNil returns an empty list instead of nil, so that JSON shows [].
func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

type chatJSON struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	URL        string     `json:"url"`
	Visibility string     `json:"visibility"`
	Mine       bool       `json:"mine"`
	Running    bool       `json:"running"`
	Created    time.Time  `json:"created"`
	Changed    time.Time  `json:"changed"`
	Count      int        `json:"turnCount"`
	Turns      []turnJSON `json:"turns,omitempty"`
}

type turnJSON struct {
	Query  string     `json:"query"`
	Repos  []string   `json:"repos"`
	Model  string     `json:"model"`
	Status string     `json:"status"`
	Error  string     `json:"error,omitempty"`
	Answer string     `json:"answer"`
	Limits []string   `json:"limits"`
	Cites  []citeJSON `json:"citations"`
	Began  time.Time  `json:"began"`
	TookMs int64      `json:"tookMs"`
	Steps  int        `json:"steps"`
	First  int        `json:"firstEvent"`
	Usage  usageJSON  `json:"usage"`
}

type usageJSON struct {
	InputTokens  int `json:"inputTokens"`
	CachedTokens int `json:"cachedTokens"`
	OutputTokens int `json:"outputTokens"`
}

type citeJSON struct {
	Repo   string `json:"repo"`
	Path   string `json:"path"`
	Commit string `json:"commit"`
	First  int    `json:"firstLine"`
	Last   int    `json:"lastLine"`
	State  string `json:"state"`
	URL    string `json:"url"`
}

func (a *chatRoutes) citeOf(k *nodeask.Citation) citeJSON {
	return citeJSON{k.Repo, k.Path, k.Commit, k.First, k.Last, string(k.State), k.URL(a.base())}
}

func (a *chatRoutes) chatOf(t *nodeask.Chat) chatJSON {
	out := chatJSON{
		ID: t.ID, Name: t.Title, URL: a.chatURL(t.ID), Visibility: visibilityOf(t.Public), Mine: t.Mine, Running: t.Running,
		Created: t.Created.UTC(), Changed: t.Changed.UTC(), Count: t.Count,
	}
	for i := range t.Turns {
		out.Turns = append(out.Turns, a.turnOf(&t.Turns[i]))
	}
	return out
}

func (a *chatRoutes) turnOf(r *nodeask.Report) turnJSON {
	out := turnJSON{
		Query: r.Query, Repos: notNil(r.Repos), Model: r.Model, Status: string(r.Status), Error: r.Error,
		Answer: nodeask.Markdown(r.Answer, a.base()), Limits: notNil(r.Limits), Cites: []citeJSON{},
		Began: r.Began.UTC(), TookMs: r.Took.Milliseconds(), Steps: r.Steps, First: r.First, Usage: usageJSON{r.Usage.Input, r.Usage.Cached, r.Usage.Output},
	}
	for _, p := range r.Answer {
		if p.Cite != nil {
			out.Cites = append(out.Cites, a.citeOf(p.Cite))
		}
	}
	return out
}

// get handles GET /api/chat/{id}: a thread with its turns.
func (a *chatRoutes) get(ctx context.Context, c *call) error {
	t, err := a.chats.Chat(ctx, c.viewer, c.pathValues[0])
	if err != nil {
		return err
	}

	return c.json(a.chatOf(t), reply.Precise)
}

// list handles GET /api/chat: the viewer's threads, without their turns.
func (a *chatRoutes) list(ctx context.Context, c *call) error {
	p := c.params()
	page, per := p.integer("page", 1, 1, 1000), p.integer("perPage", 30, 1, 100)
	if err := p.err(); err != nil {
		return err
	}

	list, total, err := a.chats.Chats(ctx, c.viewer, (page-1)*per, per)
	if err != nil {
		return err
	}

	// Make the list even if it is empty: clients expect [], not null.
	chats := make([]chatJSON, len(list))
	for i := range list {
		chats[i] = a.chatOf(&list[i])
	}
	return c.json(struct {
		Chats []chatJSON `json:"chats"`
		Total int        `json:"total"`
	}{chats, total}, reply.Precise)
}

// change handles PATCH /api/chat/{id}: a new name, a new visibility, or both. What the body lacks
// stays unchanged.
func (a *chatRoutes) change(ctx context.Context, c *call) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}

	name, public := f.text("name"), readVisibility(f)
	if err := f.err(); err != nil {
		return err
	}

	if err := a.chats.ChangeChat(ctx, c.viewer, c.pathValues[0], name, public); err != nil {
		return err
	}
	return c.json(map[string]string{"id": c.pathValues[0]})
}

// remove handles DELETE /api/chat/{id}.
func (a *chatRoutes) remove(ctx context.Context, c *call) error {
	if err := a.chats.DeleteChat(ctx, c.viewer, c.pathValues[0]); err != nil {
		return err
	}
	return c.json(map[string]string{"id": c.pathValues[0]})
}

// fork handles POST /api/chat/{id}/fork: it copies a thread for the caller.
func (a *chatRoutes) fork(ctx context.Context, c *call) error {
	id, err := a.chats.ForkChat(ctx, c.viewer, c.pathValues[0])
	if err != nil {
		return err
	}

	c.status = 201
	return c.json(map[string]string{"id": id, "url": a.chatURL(id)})
}

// stop handles POST /api/chat/{id}/stop: it stops the running answer of a thread.
func (a *chatRoutes) stop(ctx context.Context, c *call) error {
	if err := a.chats.StopChat(ctx, c.viewer, c.pathValues[0]); err != nil {
		return err
	}
	return c.json(map[string]string{"id": c.pathValues[0]})
}

type chatEventJSON struct {
	N      int       `json:"n"`
	Kind   string    `json:"kind"`
	Step   int       `json:"step,omitzero"`
	Text   string    `json:"text,omitempty"`
	Failed bool      `json:"failed,omitzero"`
	Cite   *citeJSON `json:"cite,omitzero"`
}

// events handles GET /api/chat/{id}/events: server-sent events of a thread, first the past ones and
// then new ones, until its last turn has ended. A client that was cut off continues at any node: it
// sends the number of its last event as after or Last-Event-ID.
func (a *chatRoutes) events(ctx context.Context, c *call) error {
	// Check the permission before the stream begins, so that a refusal has its own status.
	id, viewer := c.pathValues[0], c.viewer
	if err := a.chats.Sees(ctx, viewer, id); err != nil {
		return err
	}

	after, err := lastEventOf(c)
	if err != nil {
		return err
	}

	// Proxies must not buffer events.
	c.mime = mimeSSE
	c.setHeader("Cache-Control", "no-store")
	c.setHeader("X-Accel-Buffering", "no")
	c.stream = func(w *bufio.Writer) error {
		write := func(e nodeask.Event) error { return a.writeEvent(w, &e) }
		if err := nodeask.Follow(ctx, a.chats, viewer, id, after, layout.QuietEvents, write, layout.KeepAlive(w)); err != nil {
			return err
		}
		return w.Flush()
	}
	return nil
}

func (a *chatRoutes) writeEvent(w *bufio.Writer, e *nodeask.Event) error {
	out := chatEventJSON{N: e.N, Kind: e.Kind, Step: e.Step, Text: e.Text, Failed: e.Failed}
	if e.Cite != nil {
		k := a.citeOf(e.Cite)
		out.Cite = &k
	}

	// The JSON has no line breaks, so it fits on the data line of one event.
	b, err := json.Marshal(out)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "id: %d\ndata: %s\n\n", e.N, b); err != nil {
		return err
	}
	return w.Flush()
}

// lastEventOf returns the number of the last event that the client has; 0 if it has none.
func lastEventOf(c *call) (int, error) {
	text, ok := c.arg("after")
	if !ok {
		if text = c.requestHeader("Last-Event-ID"); text == "" {
			return 0, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, invalidParams("after: expected a number of at least 0, received %q", text)
	}
	return n, nil
}
