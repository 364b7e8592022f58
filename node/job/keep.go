package job

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Keeper holds the files of this disk and the catalog together: what no view
// names leaves after the grace period, what is missing is reported as lost
// and built (or copied) again.
type Keeper struct {
	r       *Runner
	log     *slog.Logger
	damaged chan string // names of files found damaged

	lastIndex uint64 // of the view at the last look for losses
	first     bool
	orphaned  map[catalog.RepoID]time.Time // mirrors that no repository has, since when
}

// NewKeeper returns a Keeper.
func NewKeeper(r *Runner) *Keeper {
	return &Keeper{r: r, log: r.opt.Log, damaged: make(chan string, 64), first: true, orphaned: map[catalog.RepoID]time.Time{}}
}

// Damaged tells the keeper of a file that was moved into quarantine. It never
// blocks.
func (k *Keeper) Damaged(name string, err error) {
	k.log.Error("a shard file is damaged and was put aside", "file", name, "err", err)
	select {
	case k.damaged <- name:
	default: // the next look finds it missing
	}
}

// The bounds of the keeper.
const (
	currentEnough = 30 * time.Second // an older view deletes nothing
	keepEvery     = time.Second
	keepLatest    = 10 * time.Second // between two looks, which take long with many repositories
)

// Run keeps until the context ends.
func (k *Keeper) Run(ctx context.Context) error {
	for {
		began := time.Now()
		k.Keep(ctx)
		grace := k.r.opt.Cluster.View().File().Settings.RepoGarbageCollectionGrace
		rest := min(lookShare*time.Since(began), keepLatest)
		t := time.NewTimer(max(rest, min(keepEvery, max(grace/2, 10*time.Millisecond))))
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-k.damaged:
			t.Stop()
			k.lastIndex = 0
		case <-t.C:
		}
	}
}

// Keep looks once.
func (k *Keeper) Keep(ctx context.Context) {
	c := k.r.opt.Cluster
	if c.Ready() != nil || c.Age() > currentEnough || c.View().Index() == 0 {
		return // what is known may be old: delete nothing
	}
	guarded := k.r.guards(c.View()) // before the view below: a file leaves the guard only once a view has it
	view := c.View()
	held := k.held(view)
	k.retain(view, held, guarded)
	k.mirrors(view)
	if view.Index() != k.lastIndex {
		if k.losses(ctx, view, held) {
			k.lastIndex = view.Index()
			k.first = false
		}
	}
}

// retain lets go of the files that no generation names.
func (k *Keeper) retain(view *catalog.View, held, guarded map[string]bool) {
	live := guarded
	self := k.r.opt.Cluster.Self()
	for repo := range view.Repos() {
		group := targetsOf(view, groupOf(repo.ID))
		for _, s := range repo.Shards {
			targets := group
			if s.Slice != 0 {
				targets = targetsOf(view, UnitOf(repo.ID, s))
			}
			wanted := len(targets) == 0 || slices.Contains(targets, self)
			for key, file := range filesOf(repo.ID, s) {
				if wanted || held[key] {
					live[file] = true
				}
			}
		}
	}
	removed, err := k.r.opt.Set.Retain(func(name string) bool { return live[name] }, view.File().Settings.RepoGarbageCollectionGrace)
	if err != nil {
		k.log.Error("old shards could not be removed", "err", err)
	}
	if len(removed) > 0 {
		k.log.Debug("old shards removed", "files", len(removed))
	}
}

// mirrors lets go of the mirrors of repositories that have left.
func (k *Keeper) mirrors(view *catalog.View) {
	ids, strange, err := k.r.opt.Mirrors.Names()
	if err != nil {
		k.log.Error("mirrors could not be listed", "err", err)
		return
	}
	for _, name := range strange {
		k.r.opt.Mirrors.dropStrange(name)
	}
	now := k.r.opt.Now()
	k.r.opt.Mirrors.measure(ids, now)
	grace := view.File().Settings.RepoGarbageCollectionGrace
	for _, id := range ids {
		if k.wantsMirror(view, id) {
			delete(k.orphaned, id)
			continue
		}
		since, ok := k.orphaned[id]
		if !ok {
			k.orphaned[id] = now
			continue
		}
		if now.Sub(since) < grace || k.r.busy(id) {
			continue
		}
		if err := k.r.opt.Mirrors.Drop(id); err != nil {
			k.log.Error("mirror could not be removed", "repo", id, "err", err)
			continue
		}
		delete(k.orphaned, id)
		k.log.Info("mirror removed", "repo", id)
	}
}

// losses reports files that the catalog believes to be here and are not.
// Then either the copier gets them from another holder, or the plan sees that
// nobody has them and asks to index the repository again. It reports whether
// that is done.
func (k *Keeper) losses(ctx context.Context, view *catalog.View, held map[string]bool) bool {
	c := k.r.opt.Cluster
	self := c.Self()
	var lost []string
	var again []catalog.Command
	repos := 0
	for repo := range view.Repos() {
		if k.r.busy(repo.ID) {
			continue
		}
		missing := false
		for _, s := range repo.Shards {
			for key, file := range filesOf(repo.ID, s) {
				if held[key] && !k.r.opt.Set.Has(file) {
					lost, missing = append(lost, key), true
				}
			}
		}
		if key := catalog.MirrorKey(repo.ID); k.first && held[key] && !k.r.opt.Mirrors.Has(repo.ID) {
			lost, missing = append(lost, key), true
		}
		if missing {
			repos++
		}
	}
	if len(lost) == 0 {
		return true
	}
	slices.Sort(lost)
	lost = slices.Compact(lost) // a pack is missed by each of its repositories
	k.log.Warn("files of this node are missing", "files", len(lost), "repos", repos)
	for len(lost) > 0 {
		n := min(len(lost), 1000)
		again = append(again, &catalog.Confirm{Node: self, Epoch: c.Epoch(), Lost: lost[:n]})
		lost = lost[n:]
	}
	_, err := c.Propose(ctx, again...)
	if err != nil && !refused(err) {
		k.log.Warn("losses could not be reported", "err", err)
		return false
	}
	return true
}

// held is the keys that the catalog believes this node to hold.
func (k *Keeper) held(view *catalog.View) map[string]bool {
	held := map[string]bool{}
	self := view.Member(k.r.opt.Cluster.Self())
	if self == nil {
		return held
	}
	for h := range view.Holdings() {
		if slices.Contains(h.Nodes, self.Number) {
			held[h.Key] = true
		}
	}
	return held
}

// wantsMirror tells whether the mirror of a repository belongs here.
func (k *Keeper) wantsMirror(view *catalog.View, id catalog.RepoID) bool {
	if view.Repo(id) == nil {
		return false
	}
	self, targets := k.r.opt.Cluster.Self(), targetsOf(view, groupOf(id))
	return len(targets) == 0 || slices.Contains(targets, self) || slices.Contains(view.Holders(catalog.MirrorKey(id)), self)
}

// filesOf is the files of a shard by the keys of their holdings.
func filesOf(repo catalog.RepoID, s catalog.ShardRef) iter.Seq2[string, string] {
	return func(yield func(key, file string) bool) {
		p := PartOf(repo, s)
		_ = yield(catalog.ShardKey(s.ID), p.Shard) &&
			(s.Dead == "" || yield(catalog.ShardKey(s.Dead), p.Dead)) &&
			(s.Symbols == "" || yield(catalog.ShardKey(s.Symbols), p.Symbols))
	}
}
