package ask

import (
	"context"
	"log/slog"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/model"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/node/thread"
	"github.com/shoalsearch/shoal/node/tool"
)

// Deps is what the parts of an Asker are made with; each of them takes a few.
type Deps struct {
	Catalog Catalog
	Nodes   Nodes
	Net     call.Network
	Threads *thread.Store
	Gate    *account.Gate
	Models  *model.Models
	Sources Sources

	Lookup  func(variable string) (string, bool)
	Timing  float64 // multiplies times that depend on the network
	Now     func() time.Time
	BaseURL func() string // prefix of every link, without a trailing slash
	Log     *slog.Logger
}

// Catalog is what nodes have agreed on; *cluster.Cluster has it. Its methods are
// safe for concurrent use.
type Catalog interface {
	// View is the catalog as this node has applied it.
	View() *catalog.View
	// Changed is closed when there is a view newer than that of now.
	Changed() <-chan struct{}
	// Sync brings this node's view up to the leader's.
	Sync(ctx context.Context) (index uint64, err error)
	// Propose has nodes agree on commands, all of them or none.
	Propose(ctx context.Context, cmds ...catalog.Command) (index uint64, err error)
}

// Nodes is who is in the cluster; *cluster.Cluster has it. Its methods are safe
// for concurrent use.
type Nodes interface {
	// Self is the id of this node.
	Self() string
	// Alive tells whether a node can be reached, as gossip has it.
	Alive(node string) bool
	// Leading tells whether this node leads the cluster.
	Leading() bool
}

// Sources is where the tools of a turn look.
type Sources struct {
	Search symbols.Searcher
	Browse browse.Reader
}

// Chats is questions, the threads that they stand in, and the models that answer; *Asker
// implements it. Its methods are safe for concurrent use.
type Chats interface {
	Models(context.Context, catalog.Viewer) ([]tool.Model, error)
	CheckModels(context.Context, account.Owner) ([]ModelCheck, error)
	HasModel() bool

	Ask(context.Context, catalog.Viewer, Question) (*Started, error)
	Sees(ctx context.Context, v catalog.Viewer, id string) error
	WatchChat(ctx context.Context, v catalog.Viewer, id string, after int, fn func(Event) error) error
	StopChat(ctx context.Context, v catalog.Viewer, id string) error

	Chat(ctx context.Context, v catalog.Viewer, id string) (*Chat, error)
	Chats(ctx context.Context, v catalog.Viewer, skip, most int) ([]Chat, int, error)
	ChangeChat(ctx context.Context, v catalog.Viewer, id, name string, public *bool) error
	DeleteChat(ctx context.Context, v catalog.Viewer, id string) error
	ForkChat(ctx context.Context, v catalog.Viewer, id string) (string, error)
}

// Asker answers questions. It only puts its parts together: which question
// becomes a turn (question.go, open.go), where turns run (runs.go), how they are
// kept (keep.go) and end with their node (lost.go), and who sees and changes threads
// (archive.go, follow.go, edit.go). It is safe for concurrent use.
type Asker struct {
	*models
	*archive
	*editor
	*follower
	*questions
	desk   *desk
	losses *losses
	runs   *runs
}

// New makes an Asker and answers the calls of other nodes. Turns run until Run
// ends.
func New(d Deps) *Asker {
	pace := pace(d.Timing)
	models := &models{gate: d.Gate, view: d.Catalog.View, clients: d.Models, now: d.Now}
	archive := &archive{gate: d.Gate, catalog: d.Catalog, store: d.Threads, misses: make(chan struct{}, missesAtOnce)}
	retention := &retention{catalog: d.Catalog, lookup: d.Lookup, log: d.Log}

	// What a turn works with while it runs, and how it is kept.
	kit := &kit{sources: d.Sources, models: models, gate: d.Gate, lookup: d.Lookup, now: d.Now, pace: pace, log: d.Log}
	keeper := &keeper{catalog: d.Catalog, nodes: d.Nodes, store: d.Threads, log: d.Log}
	runs := newRuns()

	// A question is planned, opened as a turn on a node, and started there.
	planner := &planner{models: models, gate: d.Gate}
	starter := &starter{archive: archive, kit: kit, keeper: keeper, runs: runs}
	opener := &opener{archive: archive, planner: planner, keeper: keeper, starter: starter, now: d.Now}
	questions := &questions{opener: opener, view: d.Catalog.View, nodes: d.Nodes, net: d.Net}

	remote := &remote{runs: runs, nodes: d.Nodes, net: d.Net, pace: pace}
	follower := &follower{archive: archive, remote: remote, changed: d.Catalog.Changed, pace: pace}

	remote.handle()
	questions.handle()
	return &Asker{
		models:    models,
		archive:   archive,
		editor:    &editor{archive: archive, catalog: d.Catalog, store: d.Threads},
		follower:  follower,
		questions: questions,
		desk:      &desk{questions: questions, archive: archive, follower: follower, retention: retention, base: d.BaseURL},
		losses:    &losses{catalog: d.Catalog, nodes: d.Nodes, runs: runs, keeper: keeper, retention: retention, pace: pace, now: d.Now, silent: map[string]time.Time{}},
		runs:      runs,
	}
}

// Run ends the turns of lost nodes until ctx ends. Then it ends those that run here.
func (a *Asker) Run(ctx context.Context) error {
	a.losses.watch(ctx)
	a.runs.close()
	return nil
}

// FinishChats begins no turn any more and waits until those that run here have ended, for
// at most ten minutes or until ctx ends. progress learns how many run: at first, and
// after each change.
func (a *Asker) FinishChats(ctx context.Context, progress func(running int)) {
	ctx, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	a.runs.finish(ctx, progress)
}

// pace multiplies times that depend on the network.
type pace float64

func (p pace) of(d time.Duration) time.Duration { return time.Duration(float64(d) * float64(p)) }
