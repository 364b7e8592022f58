package ask

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/model"
	"github.com/shoalsearch/shoal/node/thread"
	"github.com/shoalsearch/shoal/node/tool"
)

// Deps is what an Asker works with.
type Deps struct {
	Gate    *account.Gate
	View    func() *catalog.View
	Changed func() <-chan struct{}                              // of the next view
	Sync    func(ctx context.Context) (index uint64, err error) // brings the view up to date
	Models  *model.Models
	Search  tool.Searcher
	Browse  tool.Browser
	History tool.Historian
	Repos   func(context.Context, catalog.Viewer, browse.ReposRequest) (*browse.ReposResponse, error)
	Lookup  func(variable string) (string, bool)
	Threads *thread.Store
	Propose func(ctx context.Context, cmds ...catalog.Command) (index uint64, err error)
	Net     call.Network
	Self    string
	Alive   func(node string) bool
	Leading func() bool
	Timing  float64 // multiplies times that depend on the network
	Now     func() time.Time
	BaseURL string
	Log     *slog.Logger
}

// The bounds of questions and turns. How many of one asker run at a time is
// for the catalog to say, which counts those of all nodes.
const (
	maxQuestion = 64 << 10 // bytes
	maxRepos    = 100      // names in a question
	turnTime    = 10 * time.Minute
	runningHere = 8
	attachTime  = 15 * time.Minute
	titleRunes  = 60
)

// Asker answers questions. It is safe for concurrent use.
type Asker struct {
	d Deps

	mu       sync.Mutex
	turns    map[string]*Turn // those that run here, by thread
	starting map[string]bool  // threads whose turn is about to be in turns
	recent   recent           // what was said, unpacked
	misses   chan struct{}    // threads that are looked for at the leader
	running  sync.WaitGroup
	end      context.Context // of every turn
	stop     context.CancelCauseFunc
}

// New makes an Asker and answers the calls of other nodes. Turns run until Run
// ends.
func New(d Deps) *Asker {
	a := &Asker{d: d, turns: map[string]*Turn{}, starting: map[string]bool{}, misses: make(chan struct{}, missesAtOnce)}
	a.end, a.stop = context.WithCancelCause(context.Background())
	a.handle()
	return a
}

// Run takes over turns of nodes that are gone until ctx ends. Then it hands
// over those that run here.
func (a *Asker) Run(ctx context.Context) error {
	a.watchRuns(ctx)
	a.mu.Lock()
	a.stop(errMoved)
	a.mu.Unlock()
	a.running.Wait()
	return nil
}

func (a *Asker) scaled(d time.Duration) time.Duration { return time.Duration(float64(d) * a.d.Timing) }

// Question is what somebody wants to know.
type Question struct {
	Query   string
	Repos   []string  // that may be looked at, by full names or unambiguous endings; none for all that the asker may see, or for those of the thread
	Model   ModelName // zero for that of the thread, or the first of the configuration
	Thread  string    // that it goes on with; "" for a new one
	Public  bool      // a new thread is for everybody who has its link
	Private bool      // it is not; with neither, a key's thread is private and a guest's public

	Earlier []*Report `json:"-"` // of the same thread, the oldest first; filled in by Ask
}

// ModelName names a configured model. The provider may be left out where the
// name is that of one model only.
type ModelName struct{ Provider, Model string }

// Started is a question that is being answered.
type Started struct {
	ID    string // of its thread
	After int    // its events have numbers above
}

// Ask begins to answer a question, on this node or on one that can. The answer
// comes to those who watch the thread; it goes on whether or not anybody does.
func (a *Asker) Ask(ctx context.Context, v catalog.Viewer, q Question) (*Started, error) {
	if err := a.refused(v, &q); err != nil {
		return nil, err
	}
	started, err := a.begin(ctx, v, q)
	if err == nil || !call.Elsewhere(err) {
		return started, err
	}

	// Another node may have room for it, or what the model's provider wants.
	for m := range a.d.View().Members() {
		if m.ID == a.d.Self || m.State == catalog.MemberRemoved || !a.d.Alive(m.ID) {
			continue
		}
		if there, other := beginCall.Ask(ctx, a.d.Net, m.ID, &beginRequest{v, q}); other == nil {
			return there, nil
		}
	}
	return nil, err
}

// refused says why what is asked is no question.
func (a *Asker) refused(v catalog.Viewer, q *Question) error {
	switch {
	case strings.TrimSpace(q.Query) == "":
		return call.Fail(call.ErrInvalid, "query: must not be empty")
	case len(q.Query) > maxQuestion:
		return call.Fail(call.ErrInvalid, "query: has %d bytes, at most %d are allowed", len(q.Query), maxQuestion)
	case len(q.Repos) > maxRepos:
		return call.Fail(call.ErrInvalid, "repos: has %d names, at most %d are allowed", len(q.Repos), maxRepos)
	case v.Role == catalog.RoleGuest && q.Private:
		return call.Fail(call.ErrInvalid, "visibility: what a guest asks can be seen by everybody who has its link. Ask with a key to keep it to yourself.")
	}
	return nil
}

// plan is a question with what it needs to be answered.
type plan struct {
	q      Question
	asker  catalog.Viewer
	viewer catalog.Viewer
	names  []string // of the repositories
	model  string   // its name at its provider
	name   string   // provider/model
	client *model.Client
	sight  []byte
}

func planless(v catalog.Viewer, q Question) *plan {
	return &plan{q: q, asker: v, viewer: v, names: q.Repos, name: q.Model.Provider + "/" + q.Model.Model}
}

func (a *Asker) plan(v catalog.Viewer, q Question) (*plan, error) {
	m, err := a.chosen(v, q.Model)
	if err != nil {
		return nil, err
	}

	p := &plan{q: q, asker: v, model: m.Model}
	if p.viewer, p.names, err = a.narrowed(v, q.Repos); err != nil {
		return nil, err
	}

	// What the asker can see now decides later who may see how the answer was found.
	seen, err := a.d.Gate.Repos(p.viewer)
	if err != nil {
		return nil, err
	}
	if p.sight, err = seen.Set.ToBytes(); err != nil {
		return nil, err
	}

	// Where this node lacks what calling the model needs, that is said now.
	if p.client, err = a.d.Models.Open(a.end, m); err != nil {
		return nil, call.Fail(call.ErrUnavailable, "%v", err)
	}

	p.name = p.client.Name()
	p.q.Model = ModelName{string(m.Provider), m.Model}
	return p, nil
}

// begin begins to answer a question on this node.
func (a *Asker) begin(ctx context.Context, v catalog.Viewer, q Question) (*Started, error) {
	h, err := a.continued(ctx, v, &q)
	if err != nil {
		return nil, err
	}

	p, err := a.plan(v, q)
	if err != nil {
		return nil, err
	}

	first, err := a.firstCommand(ctx, v, &q)
	if err != nil {
		return nil, err
	}

	// One place of this node, until the turn has one of its own.
	if err := a.reserve(first.Thread); err != nil {
		return nil, err
	}
	defer a.release(first.Thread)

	// The question is on its copies before anybody is told that it was asked.
	fence, err := a.d.Propose(ctx, first)
	if err != nil {
		return nil, beginError(err)
	}

	after := 0
	if h != nil {
		after = h.Events()
	}

	t := newTurn(a, first.Thread, after, p)
	t.log = a.d.Threads.Begin(first.Thread, catalog.Run{Node: a.d.Self, Copies: first.Copies, Fence: fence})

	// What was said earlier is in the thread: it is read from there, not kept twice.
	asked := p.q
	asked.Earlier = nil
	t.note(entry{Begun: &begun{Asker: v, Question: asked, Began: t.began}})
	t.emit(Event{Kind: KindTurn, Text: q.Query})

	if err := t.append(ctx, t.out); err != nil {
		a.abandon(a.end, t.ID, fence)
		return nil, call.Fail(call.ErrUnavailable, "The question cannot be kept: %v", err)
	}

	t.out = []entry{{}} // so that the writer shows what is written

	a.mu.Lock()
	a.turns[t.ID] = t
	a.mu.Unlock()
	a.start(t, nil)
	return &Started{t.ID, after}, nil
}

// continued fills in what a question has from its thread, which is returned;
// nil for a new one.
func (a *Asker) continued(ctx context.Context, v catalog.Viewer, q *Question) (*catalog.Thread, error) {
	if q.Thread == "" {
		return nil, nil
	}
	h, err := a.fresh(ctx, v, q.Thread)
	if err != nil {
		return nil, err
	}
	if !owns(v, h) {
		return nil, call.Fail(call.ErrForbidden, "This is somebody else's thread. Make a copy of it to go on with it: POST /api/chat/%s/fork.", h.ID)
	}

	if q.Earlier, err = a.earlier(ctx, v, h); err != nil {
		return nil, err
	}
	if len(q.Earlier) == 0 {
		return h, nil
	}

	// What is not said is as in the question before.
	last := q.Earlier[len(q.Earlier)-1]
	if q.Repos == nil {
		q.Repos = last.Repos
	}
	if q.Model == (ModelName{}) {
		if same := (ModelName{last.Provider(), last.ModelName()}); a.isConfigured(same) {
			q.Model = same
		}
	}
	return h, nil
}

// firstCommand is the command that lets this node answer a question.
func (a *Asker) firstCommand(ctx context.Context, v catalog.Viewer, q *Question) (*catalog.BeginTurn, error) {
	c := &catalog.BeginTurn{Thread: q.Thread, Owner: ownerOf(v), Node: a.d.Self, Copies: []string{a.d.Self}}
	if q.Thread == "" {
		var err error
		c.Thread, c.New, c.Public = newID(), true, q.Public || v.Role == catalog.RoleGuest
		if c.Title, err = a.d.Threads.Seal(ctx, []byte(title(q.Query))); err != nil {
			return nil, call.WriteError(err)
		}
		if c.Asked, err = a.tag(ctx, v, q); err != nil {
			return nil, call.WriteError(err)
		}
	}

	// Where there is no other node, this one alone has the question.
	if second := a.d.Threads.Second(c.Thread); second != "" {
		c.Copies = append(c.Copies, second)
	}
	return c, nil
}

// title is the beginning of a question, in one line.
func title(query string) string {
	words := []rune(strings.Join(strings.Fields(clean(query)), " "))
	if len(words) > titleRunes {
		return string(words[:titleRunes-1]) + "…"
	}
	return string(words)
}

// tag is by what a first question is found again.
func (a *Asker) tag(ctx context.Context, v catalog.Viewer, q *Question) (uint64, error) {
	return a.d.Threads.Tag(ctx, strings.Join([]string{ownerOf(v), q.Query, strings.Join(q.Repos, "\n"), q.Model.Provider, q.Model.Model}, "\x00"))
}

// reserve takes one of the places for turns of this node.
func (a *Asker) reserve(id string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.end.Err() != nil:
		return call.Fail(call.ErrUnavailable, "this node is stopping")
	case len(a.turns)+len(a.starting) >= runningHere:
		return busy("This node answers %d questions already. Ask again in a while.", runningHere)
	case a.starting[id]:
		return call.Fail(call.ErrUnable, "A question of this thread is being asked already.")
	}
	a.starting[id] = true
	return nil
}

func (a *Asker) release(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.starting, id)
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

// find finds the thread of the same asker with the same first question, which
// is being answered or was a while ago, so that asking again waits for it and
// pays nothing; "" where there is none.
func (a *Asker) find(ctx context.Context, v catalog.Viewer, q *Question) string {
	tag, err := a.tag(ctx, v, q)
	if err != nil {
		return "" // without the secret there are no threads either
	}

	var found *catalog.Thread

	// What failed is asked anew, and a thread that went on is another conversation.
	for h := range a.d.View().ThreadsOf(ownerOf(v)) {
		good := len(h.Turns) == 0 && h.Run.Fence != 0 || len(h.Turns) == 1 && h.Run.Fence == 0 && !h.Turns[0].Failed
		if h.Asked == tag && good && a.d.Now().Sub(h.Created) < attachTime && (found == nil || h.Created.After(found.Created)) {
			found = h
		}
	}

	if found == nil {
		return ""
	}
	return found.ID
}

// stillThere fails where the asker's key has been revoked meanwhile.
func (a *Asker) stillThere(v catalog.Viewer) error {
	if v.KeyID != "" && a.d.View().Key(v.KeyID) == nil {
		return call.Fail(call.ErrUnauthenticated, "The key of the asker has been revoked.")
	}
	return nil
}

// isConfigured reports whether there is one model of that name.
func (a *Asker) isConfigured(name ModelName) bool {
	n := 0
	for _, m := range a.d.View().File().Models {
		if string(m.Provider) == name.Provider && m.Model == name.Model {
			n++
		}
	}
	return n > 0
}

// chosen is the model of a question.
func (a *Asker) chosen(v catalog.Viewer, want ModelName) (*config.Model, error) {
	models, err := a.configured(v)
	if err != nil {
		return nil, err
	}
	if len(models) == 0 {
		return nil, call.Fail(call.ErrInvalid, "%s", NoModel)
	}
	if want == (ModelName{}) {
		return &models[0], nil
	}

	var fits []*config.Model
	names := make([]string, len(models))
	for i := range models {
		m := &models[i]
		names[i] = string(m.Provider) + "/" + m.Model
		if m.Model == want.Model && (want.Provider == "" || want.Provider == string(m.Provider)) {
			fits = append(fits, m)
		}
	}
	if len(fits) == 1 || len(fits) > 1 && want.Provider != "" {
		return fits[0], nil
	}

	names[0] += " (default)"
	name := strings.TrimPrefix(want.Provider+"/"+want.Model, "/")
	return nil, call.Fail(call.ErrInvalid, "languageModel: %q is not configured, or more than once. Configured: %s.", name, strings.Join(names, ", "))
}

// narrowed is the asker, bound to the repositories of the question: outside of
// them nothing exists, whatever the model writes.
func (a *Asker) narrowed(v catalog.Viewer, repos []string) (catalog.Viewer, []string, error) {
	if len(repos) == 0 {
		return v, nil, nil
	}

	seen, err := a.d.Gate.Repos(v)
	if err != nil {
		return v, nil, err
	}

	only := roaring.New()
	var names []string
	for _, name := range repos {
		repo, err := seen.ByEnding(name)
		if err != nil {
			return v, nil, err
		}
		only.Add(repo.ID)
		names = append(names, repo.Name)
	}

	v.Only = only
	return v, names, nil
}
