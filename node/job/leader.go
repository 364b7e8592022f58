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

// Leader plans while this node leads. With each new leadership it forgets for how long nodes were
// silent, so that every node gets the full time again.
type Leader struct {
	cluster Cluster
	kinds   kinds
	placer  *hold.Placer
	opt     LeaderOptions

	lastAlive     map[string]time.Time // when each member was last alive
	nextSync      time.Time            // when to look for due syncs of connections
	nextRepo      time.Time            // when to look at all repositories
	nextPack      time.Time            // when to look for packs
	packLookIndex uint64               // index of the view at the last look for packs
	configIndex   uint64               // index of the configuration at the last look for syncs
	repoCount     int                  // number of repositories at the last look for repositories
	fingerprint   string               // the members and their states at that look
	idle          idleView
}

// idleView is the view of a look for repositories that found nothing to do. Until the catalog's data
// changes, or the time until, another look would find nothing either.
type idleView struct {
	view  *catalog.View // nil after a look that found something
	until time.Time
}

// LeaderOptions configures a Leader.
type LeaderOptions struct {
	Timing float64 // multiplies how long a silent node keeps its jobs and data; 0 means 1
	Log    *slog.Logger
	// Ticks is a monotonic clock for durations and pauses; nil: the machine's.
	Ticks func() time.Time
}

func newLeader(cluster Cluster, ks kinds, placer *hold.Placer, opt LeaderOptions) *Leader {
	if opt.Timing == 0 {
		opt.Timing = 1
	}
	if opt.Ticks == nil {
		opt.Ticks = clock.Now
	}
	return &Leader{cluster: cluster, kinds: ks, placer: placer, opt: opt, lastAlive: map[string]time.Time{}}
}

// planPause is the shortest pause between two plans: changes come in bursts.
const planPause = 20 * time.Millisecond

// packEvery is the shortest time between two looks for packs.
const packEvery = time.Second

// Run plans which jobs run where, when the catalog changes and at the polling intervals, while this
// node leads.
func (l *Leader) Run(ctx context.Context) error {
	for {
		changed := l.cluster.Changed()
		if l.cluster.Leading() {
			l.plan(ctx)
		} else {
			// The next time that this node leads, what it knows now will be out of date.
			clear(l.lastAlive)
			l.placer.Forget()
		}

		// Changes come in bursts: wait, so that one plan covers them.
		if !clock.Wait(ctx, planPause) {
			return nil
		}

		next := time.NewTimer(l.untilNextPlan())
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

// plan plans due jobs, places data if needed, and proposes the result.
func (l *Leader) plan(ctx context.Context) {
	now := l.opt.Ticks()
	view := l.cluster.View()
	config, repos := view.Config().Index, view.RepoCount()
	in := Input{View: view, Now: l.cluster.Time(), Nodes: l.planNodes(now)}
	in.Look = l.dueLooks(view, in.Nodes, now)

	// Place first, because a pack is built for the nodes that should hold it.
	if in.Look&(LookRepos|LookPacks) != 0 {
		l.placer.Place(ctx, view, in.Nodes)
		view = l.cluster.View()
		in.View = view
	}

	cmds := plan(l.kinds, in)
	rest := hold.Rest(view.RepoCount())

	// If the proposal failed, the next plan looks again.
	if !l.propose(ctx, cmds) {
		return
	}

	settings := view.File().Settings
	if in.Look&LookConnections != 0 {
		l.configIndex = config
		l.nextSync = now.Add(settings.ResyncConnectionPollingInterval)
	}

	if in.Look&LookPacks != 0 {
		l.packLookIndex = view.Index()
		l.nextPack = now.Add(max(packEvery, rest))
	}

	// A full plan may have left out repositories: look again at once.
	if in.Look&LookRepos != 0 && len(cmds) < maxCommands {
		l.repoCount, l.fingerprint, l.idle = repos, hold.Fingerprint(in.Nodes), idleView{}
		if len(cmds) == 0 {
			l.idle = idleView{view, now.Add(hold.Rest(5 * repos))}
		}
		l.nextRepo = now.Add(max(settings.ReindexRepoPollingInterval, rest))
	}
}

// dueLooks returns the schedules that are due. A new configuration, and new repositories, make a look
// due at once.
func (l *Leader) dueLooks(view *catalog.View, nodes []hold.Node, now time.Time) (look Look) {
	if !now.Before(l.nextSync) || view.Config().Index != l.configIndex {
		look |= LookConnections
	}
	stillIdle := l.idle.view != nil && now.Before(l.idle.until) && l.idle.view.SameData(view)
	if !now.Before(l.nextRepo) && !stillIdle || view.RepoCount() != l.repoCount || hold.Fingerprint(nodes) != l.fingerprint {
		look |= LookRepos
	}
	if !now.Before(l.nextPack) && view.Index() != l.packLookIndex {
		look |= LookPacks
	}
	return look
}

// propose proposes commands. It returns false if the caller must plan them again.
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

// planNodes returns the members as the planner sees them, and records which ones are alive now.
func (l *Leader) planNodes(now time.Time) []hold.Node {
	members := l.cluster.Members()
	nodes := make([]hold.Node, 0, len(members))
	for _, m := range members {
		// A member that this leader has never found alive gets the full time from now on.
		if m.Alive || l.lastAlive[m.ID].IsZero() {
			l.lastAlive[m.ID] = now
		}

		nodes = append(nodes, hold.Node{
			ID:       m.ID,
			Epoch:    m.Epoch,
			Zone:     m.Zone,
			Weight:   float64(m.Weight) / 100,
			Alive:    m.Alive,
			Silent:   time.Duration(float64(now.Sub(l.lastAlive[m.ID])) / l.opt.Timing),
			Closed:   m.State != catalog.MemberAlive,
			Disk:     int(m.Load.DiskUsed),
			Replaced: replaced(members, m),
		})
	}
	return nodes
}

// replaced reports whether a later member is alive at the address of a silent one. Two nodes cannot
// listen there, so the silent one will not return.
func replaced(members []cluster.Member, m cluster.Member) bool {
	return !m.Alive && slices.ContainsFunc(members, func(other cluster.Member) bool {
		return other.Alive && other.Number > m.Number && other.Addr == m.Addr
	})
}

// untilNextPlan returns the time until the next plan, at most a second: a node may become silent,
// which does not change the catalog.
func (l *Leader) untilNextPlan() time.Duration {
	now := l.opt.Ticks()
	repos := l.nextRepo
	if l.idle.until.After(repos) {
		repos = l.idle.until
	}
	next := min(l.nextSync.Sub(now), repos.Sub(now))
	return min(max(next, time.Millisecond), time.Second)
}
