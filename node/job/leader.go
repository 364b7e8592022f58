package job

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Leader plans while this node leads. It forgets what it knew of silent
// nodes whenever the leadership is new: a new leader gives every node time.
type Leader struct {
	cluster *cluster.Cluster
	log     *slog.Logger
	now     func() time.Time
	timing  float64

	seen               map[string]time.Time // when each member was last alive
	nextSync, nextRepo time.Time
	nextPack           time.Time
	packed             uint64 // index of the view at the last look for packs
	config             uint64 // index of the configuration at the last look for syncs
	repos              int    // number of repositories at the last look for them
	placer             placer
	heat               *heat
}

// NewLeader returns a Leader; Run makes it plan.
func NewLeader(opt Options) *Leader {
	return &Leader{cluster: opt.Cluster, log: opt.Log, now: opt.Now, timing: cmp.Or(opt.Timing, 1), seen: map[string]time.Time{}, placer: placer{copies: max(opt.Replicas, 1)}, heat: newHeat(opt)}
}

// settle is the shortest time between two plans: changes come in crowds.
const settle = 20 * time.Millisecond

// The pace of looks that go through all repositories. With thousands of them
// each takes milliseconds, so the interval grows with what a look took.
const (
	packEvery = time.Second
	lookShare = 50 // a plan with such a look takes at most one in so many parts of the time
)

// Run plans when the catalog changes and when a polling interval is over.
func (l *Leader) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { l.heat.run(ctx) })
	for {
		changed := l.cluster.Changed()
		if l.cluster.Leading() {
			l.plan(ctx)
		} else {
			clear(l.seen)
			l.placer = placer{copies: l.placer.copies}
		}
		if !sleep(ctx, settle) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-time.After(l.wait()):
		}
	}
}

func (l *Leader) plan(ctx context.Context) {
	view, now := l.cluster.View(), l.now()
	// What is new does not wait for the next look: a configuration names other
	// connections, a listing has other repositories.
	config, repos := view.Config().Index, view.RepoCount()
	in := Input{
		View: view, Now: now, Nodes: l.nodes(now),
		LookSync:  !now.Before(l.nextSync) || config != l.config,
		LookRepos: !now.Before(l.nextRepo) || repos != l.repos,
		LookPacks: !now.Before(l.nextPack) && view.Index() != l.packed,
	}
	if in.LookRepos || in.LookPacks { // a pack is for those who hold its repositories in the end
		l.place(ctx, view, in.Nodes, now)
		view = l.cluster.View()
		in.View = view
	}
	cmds := Plan(in)
	rest := lookShare * l.now().Sub(now)
	if len(cmds) > 0 {
		_, err := l.cluster.Propose(ctx, cmds...)
		if err != nil && !refused(err) && ctx.Err() == nil && !errors.Is(err, cluster.ErrNoLeader) {
			l.log.Error("plan was not accepted", "err", err)
		}
		if err != nil && !refused(err) {
			return
		}
	}
	settings := view.File().Settings
	if in.LookSync {
		l.config = config
		l.nextSync = now.Add(settings.ResyncConnectionPollingInterval)
	}
	if in.LookPacks {
		l.packed = view.Index()
		l.nextPack = now.Add(max(packEvery, rest))
	}
	if in.LookRepos && len(cmds) < maxCommands {
		l.repos = repos
		l.nextRepo = now.Add(max(settings.ReindexRepoPollingInterval, rest))
	}
}

// nodes is the members as the planner sees them.
func (l *Leader) nodes(now time.Time) []Node {
	var nodes []Node
	for _, m := range l.cluster.Members() {
		if m.Alive || l.seen[m.ID].IsZero() {
			l.seen[m.ID] = now
		}
		nodes = append(nodes, Node{
			ID: m.ID, Epoch: m.Epoch, Zone: m.Zone, Weight: float64(m.Weight) / 100,
			Alive: m.Alive, Silent: time.Duration(float64(now.Sub(l.seen[m.ID])) / l.timing), Closed: m.State != catalog.MemberAlive, Disk: int(m.Load.DiskUsed),
		})
	}
	return nodes
}

// wait is the time to the next look.
func (l *Leader) wait() time.Duration {
	now := l.now()
	next := l.nextSync
	if l.nextRepo.Before(next) {
		next = l.nextRepo
	}
	return min(max(next.Sub(now), time.Millisecond), time.Second)
}

// sleep waits, and reports false when the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
