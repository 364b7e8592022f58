package ask

import (
	"context"
	"log/slog"
	"time"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/lru"
	"github.com/shoalsearch/shoal/node/model"
	"github.com/shoalsearch/shoal/node/thread"
)

// Deps are what New builds the parts of an Asker from. Each part takes a few of them.
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

// Asker answers questions. It only joins its parts: a question becomes a turn (question.go,
// open.go); turns run (runs.go), are stored (keep.go), and end if their node is lost (lost.go);
// viewers see and change threads (archive.go, follow.go, edit.go). It is safe for concurrent use.
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

// New makes an Asker and registers its calls between nodes. Turns run until Run ends.
func New(d Deps) *Asker {
	pace := pace(d.Timing)
	models := &models{gate: d.Gate, view: d.Catalog.View, clients: d.Models, now: d.Now}
	archive := &archive{gate: d.Gate, catalog: d.Catalog, store: d.Threads, recent: lru.New[string, *turnFile](recentBytes), misses: make(chan struct{}, missesAtOnce)}
	retention := &retention{catalog: d.Catalog, lookup: d.Lookup, log: d.Log}

	// These run a turn, and store it.
	kit := &kit{sources: d.Sources, models: models, gate: d.Gate, lookup: d.Lookup, now: d.Now, pace: pace, log: d.Log}
	keeper := &keeper{catalog: d.Catalog, nodes: d.Nodes, store: d.Threads, log: d.Log}
	runs := newRuns()

	// The planner checks a question, the opener makes it a turn on this node, and the starter
	// runs it.
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

// Run ends the turns of lost nodes until ctx ends. Then it ends the turns on this node.
func (a *Asker) Run(ctx context.Context) error {
	a.losses.endLostTurns(ctx)
	a.runs.close()
	return nil
}

// FinishChats refuses new turns and waits until the turns on this node end, for at most turnTime
// or until ctx ends. It calls progress with the number of running turns at first and after each
// change.
func (a *Asker) FinishChats(ctx context.Context, progress func(running int)) {
	ctx, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	a.runs.drain(ctx, progress)
}
