package job

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/hold"
)

// Leader plans while this node leads. It forgets what it knew of silent
// nodes whenever the leadership is new: a new leader gives every node time.
type Leader struct {
	cluster Cluster
	kinds   kinds
	placer  *hold.Placer
	opt     LeaderOptions

	seen               map[string]time.Time // when each member was last alive
	nextSync, nextRepo time.Time
	nextPack           time.Time
	packed             uint64 // index of the view at the last look for packs
	config             uint64 // index of the configuration at the last look for syncs
	repos              int    // number of repositories at the last look for them
	nodes              string // the members and their states at that look
}

// LeaderOptions is what a Leader takes beside its parts.
type LeaderOptions struct {
	Timing float64 // multiplies how long a silent node keeps its jobs and its data; 0 means 1
	Log    *slog.Logger
	// Ticks measures how long something took, and when to look again: a clock
	// that nobody sets. nil means that of the machine.
	Ticks func() time.Time
}

func newLeader(cluster Cluster, ks kinds, placer *hold.Placer, opt LeaderOptions) *Leader {
	if opt.Timing == 0 {
		opt.Timing = 1
	}
	if opt.Ticks == nil {
		opt.Ticks = clock.Now
	}
	return &Leader{cluster: cluster, kinds: ks, placer: placer, opt: opt, seen: map[string]time.Time{}}
}

// settle is the shortest time between two plans: changes come in crowds.
const settle = 20 * time.Millisecond

// packEvery is the shortest time between two looks for packs.
const packEvery = time.Second

// Run plans when the catalog changes and when a polling interval is over.
func (l *Leader) Run(ctx context.Context) error {
	for {
		changed := l.cluster.Changed()
		if l.cluster.Leading() {
			l.plan(ctx)
		} else {
			// What a leader has seen is of its time: another one has led since.
			clear(l.seen)
			l.placer.Forget()
		}

		// Changes come in bursts: one plan is enough for all of a moment.
		if !clock.Wait(ctx, settle) {
			return nil
		}

		next := time.NewTimer(l.wait())
		select {
		case <-ctx.Done():
			next.Stop()
			return nil
		case <-changed:
		case <-next.C:
		}
		next.Stop()
	}
}

// plan looks at what is due, places data where that may have changed, and
// proposes what is to be done.
func (l *Leader) plan(ctx context.Context) {
	now := l.opt.Ticks()
	view := l.cluster.View()
	config, repos := view.Config().Index, view.RepoCount()
	in := Input{View: view, Now: l.cluster.Time(), Nodes: l.members(now)}
	in.Look = l.looks(view, in.Nodes, now)

	// Packs are for those who hold their repositories in the end: placement comes first.
	if in.Look&(LookRepos|LookPacks) != 0 {
		l.placer.Place(ctx, view, in.Nodes)
		view = l.cluster.View()
		in.View = view
	}

	cmds := plan(l.kinds, in)
	rest := hold.Rest(view.RepoCount())

	// What was not agreed on is looked at again by the next plan.
	if !l.propose(ctx, cmds) {
		return
	}

	// What was looked at is not due again for its time; what only began is.
	settings := view.File().Settings
	if in.Look&LookConnections != 0 {
		l.config = config
		l.nextSync = now.Add(settings.ResyncConnectionPollingInterval)
	}

	if in.Look&LookPacks != 0 {
		l.packed = view.Index()
		l.nextPack = now.Add(max(packEvery, rest))
	}

	// With as many commands as fit, repositories may be left over: they are looked at again at once.
	if in.Look&LookRepos != 0 && len(cmds) < maxCommands {
		l.repos, l.nodes = repos, hold.Fingerprint(in.Nodes)
		l.nextRepo = now.Add(max(settings.ReindexRepoPollingInterval, rest))
	}
}

// looks is the schedules whose time has come. What is new does not wait for the
// next look: a configuration names other connections, a listing has other
// repositories.
func (l *Leader) looks(view *catalog.View, nodes []hold.Node, now time.Time) (look Look) {
	if !now.Before(l.nextSync) || view.Config().Index != l.config {
		look |= LookConnections
	}
	if !now.Before(l.nextRepo) || view.RepoCount() != l.repos || hold.Fingerprint(nodes) != l.nodes {
		look |= LookRepos
	}
	if !now.Before(l.nextPack) && view.Index() != l.packed {
		look |= LookPacks
	}
	return look
}

// propose reports whether the plan is agreed on, or no plan any more.
func (l *Leader) propose(ctx context.Context, cmds []catalog.Command) bool {
	if len(cmds) == 0 {
		return true
	}
	_, err := l.cluster.Propose(ctx, cmds...)
	if err == nil || refused(err) {
		return true
	}
	if ctx.Err() == nil && !errors.Is(err, cluster.ErrNoLeader) {
		l.opt.Log.Error("plan was not accepted", "err", err)
	}
	return false
}

// members returns the members as the planner sees them.
func (l *Leader) members(now time.Time) []hold.Node {
	members := l.cluster.Members()
	nodes := make([]hold.Node, 0, len(members))
	for _, m := range members {
		// A node that this leader has not seen yet counts as seen now: it gets all of its time.
		if m.Alive || l.seen[m.ID].IsZero() {
			l.seen[m.ID] = now
		}

		nodes = append(nodes, hold.Node{
			ID:       m.ID,
			Epoch:    m.Epoch,
			Zone:     m.Zone,
			Weight:   float64(m.Weight) / 100,
			Alive:    m.Alive,
			Silent:   time.Duration(float64(now.Sub(l.seen[m.ID])) / l.opt.Timing),
			Closed:   m.State != catalog.MemberAlive,
			Disk:     int(m.Load.DiskUsed),
			Replaced: replaced(members, m),
		})
	}
	return nodes
}

// replaced reports whether a member that joined later is reached at the address of
// one that is silent: two cannot listen there, so the first is not coming back.
func replaced(members []cluster.Member, m cluster.Member) bool {
	return !m.Alive && slices.ContainsFunc(members, func(other cluster.Member) bool {
		return other.Alive && other.Number > m.Number && other.Addr == m.Addr
	})
}

// wait is the time to the next look.
func (l *Leader) wait() time.Duration {
	// A second at most: that a node falls silent changes no catalog.
	now := l.opt.Ticks()
	next := l.nextSync
	if l.nextRepo.Before(next) {
		next = l.nextRepo
	}
	return min(max(next.Sub(now), time.Millisecond), time.Second)
}
