package hold

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Collector is the garbage collector of this disk, and the reverse: what no
// view names leaves after the grace period, what is missing is reported as
// lost and copied or built again.
type Collector struct {
	cluster Cluster
	files   *Files
	busy    func(id catalog.RepoID) bool // a job works on the mirror of a repository here
	log     *slog.Logger
	damaged chan struct{} // a file was put aside: look for losses

	looked   uint64                       // index of the view at the last look for losses
	began    bool                         // every mirror was looked for once
	orphaned map[catalog.RepoID]time.Time // mirrors that nobody wants here, since when

	// removed is the mirrors that this node has removed since. An entry that was under way may
	// still name this node as the holder of one.
	removed map[catalog.RepoID]bool
}

// NewCollector returns a Collector; Run makes it work.
func NewCollector(cluster Cluster, files *Files, busy func(id catalog.RepoID) bool, log *slog.Logger) *Collector {
	return &Collector{
		cluster:  cluster,
		files:    files,
		busy:     busy,
		log:      log,
		damaged:  make(chan struct{}, 1),
		orphaned: map[catalog.RepoID]time.Time{},
		removed:  map[catalog.RepoID]bool{},
	}
}

// Damaged says that a file was put aside, so that it is reported as lost at
// once. It never blocks.
func (c *Collector) Damaged() {
	select {
	case c.damaged <- struct{}{}:
	default: // the next look is asked for already
	}
}

// The pace of collecting.
const (
	currentEnough = 30 * time.Second // an older view deletes nothing
	collectEvery  = time.Second
)

// Run collects until the context ends.
func (c *Collector) Run(ctx context.Context) error {
	for {
		c.Collect(ctx)

		view := c.cluster.View()
		grace := view.File().Settings.RepoGarbageCollectionGrace
		next := time.NewTimer(max(Rest(view.RepoCount()), min(collectEvery, max(grace/2, 10*time.Millisecond))))

		select {
		case <-ctx.Done():
			next.Stop()
			return nil
		case <-c.damaged:
			next.Stop()
			c.looked = 0
		case <-next.C:
		}
	}
}

// Collect looks once.
func (c *Collector) Collect(ctx context.Context) {
	if c.cluster.Ready() != nil || c.cluster.Age() > currentEnough || c.cluster.View().Index() == 0 {
		return // what is known may be old: delete nothing
	}

	// The guards before the view: a file leaves its guard only once a view has it.
	live := c.files.kept(c.cluster.View())
	view := c.cluster.View()
	held := heldBy(view, c.cluster.Self())

	c.removeFiles(view, held, live)
	c.removeMirrors(view)

	// What was reported once is not looked for again before something changes.
	if view.Index() != c.looked && c.reportLosses(ctx, view, held) {
		c.looked, c.began = view.Index(), true
	}
}

// heldBy is the keys that a view believes a node to hold.
func heldBy(view *catalog.View, node string) map[string]bool {
	held := map[string]bool{}
	self := view.Member(node)
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

// removeFiles lets go of the files that no generation names, and of those
// that neither belong here nor are held.
func (c *Collector) removeFiles(view *catalog.View, held, live map[string]bool) {
	needed(view, c.cluster.Self(), held, live)
	removed, err := c.files.Retain(func(name string) bool { return live[name] }, view.File().Settings.RepoGarbageCollectionGrace)
	if err != nil {
		c.log.Error("old shards could not be removed", "err", err)
	}
	if len(removed) > 0 {
		c.log.Debug("old shards removed", "files", len(removed))
	}
}

// needed adds the files to live that a node should have, or holds.
func needed(view *catalog.View, self string, held, live map[string]bool) {
	for repo := range view.Repos() {
		group := RepoTargets(view, repo.ID)
		for _, s := range repo.Shards {
			targets := group
			if s.Slice != 0 {
				targets = TargetsOf(view, UnitOf(repo.ID, s))
			}

			// Before the first placement everything belongs everywhere.
			wanted := len(targets) == 0 || slices.Contains(targets, self)

			// What the catalog says is here stays until it has heard otherwise.
			for key, file := range FilesOf(repo.ID, s) {
				if wanted || held[key] {
					live[file] = true
				}
			}
		}
	}
}

// removeMirrors lets go of the mirrors that are not wanted here any more.
func (c *Collector) removeMirrors(view *catalog.View) {
	mirrors, now := c.files.Mirrors, c.files.now()
	ids, strange, err := mirrors.Names()
	if err != nil {
		c.log.Error("mirrors could not be listed", "err", err)
		return
	}

	for _, name := range strange {
		mirrors.dropStrange(name)
	}
	mirrors.measure(ids, now)

	grace := view.File().Settings.RepoGarbageCollectionGrace
	for _, id := range ids {
		if wantsMirror(view, id, c.cluster.Self()) {
			delete(c.orphaned, id)
			continue
		}

		// The grace period begins when it was first seen to be of no use.
		since, ok := c.orphaned[id]
		if !ok {
			c.orphaned[id] = now
			continue
		}

		// A job may still read it, or it belongs here again since this view.
		if now.Sub(since) < grace || c.busy(id) || wantsMirror(c.cluster.View(), id, c.cluster.Self()) {
			continue
		}
		if err := mirrors.Drop(id); err != nil {
			c.log.Error("mirror could not be removed", "repo", id, "err", err)
			continue
		}
		delete(c.orphaned, id)
		if view.Repo(id) != nil {
			c.removed[id] = true
		}
		c.log.Info("mirror removed", "repo", id)
	}
}

// wantsMirror reports whether the mirror of a repository belongs on a node.
func wantsMirror(view *catalog.View, id catalog.RepoID, self string) bool {
	if view.Repo(id) == nil {
		return false
	}
	targets := RepoTargets(view, id)
	return len(targets) == 0 || slices.Contains(targets, self) || view.Holds(self, catalog.MirrorKey(id))
}

// reportLosses says which files the catalog believes to be here and are not.
// Then either the copier gets them from another holder, or the plan sees that
// nobody has them and asks to index the repository again. It reports whether
// that is done.
func (c *Collector) reportLosses(ctx context.Context, view *catalog.View, held map[string]bool) bool {
	lost, repos := c.losses(view, held)
	if len(lost) == 0 {
		return true
	}
	c.log.Warn("files of this node are missing", "files", len(lost), "repos", repos)

	// Parts of a bounded size: one entry of the log must not grow with what a disk lost.
	var cmds []catalog.Command
	for part := range slices.Chunk(lost, confirmMax) {
		cmds = append(cmds, &catalog.Confirm{Node: c.cluster.Self(), Epoch: c.cluster.Epoch(), Lost: part})
	}
	// A refusal is an answer: the next time it would be the same.
	if _, err := c.cluster.Propose(ctx, cmds...); err != nil {
		if _, refused := catalog.Refused(err); !refused {
			c.log.Warn("losses could not be reported", "err", err)
			return false
		}
	}
	return true
}

// losses is the keys of what is held and not here, and of how many repositories.
func (c *Collector) losses(view *catalog.View, held map[string]bool) (lost []string, repos int) {
	for repo := range view.Repos() {
		// A job is about to change what it holds.
		if c.busy(repo.ID) {
			continue
		}

		before := len(lost)
		for _, s := range repo.Shards {
			for key, file := range FilesOf(repo.ID, s) {
				if held[key] && !c.files.Has(file) {
					lost = append(lost, key)
				}
			}
		}

		// To look for all mirrors each time costs a system call for each. Only a removal takes one away.
		if key := catalog.MirrorKey(repo.ID); held[key] && (!c.began || c.removed[repo.ID]) && !c.files.Mirrors.Has(repo.ID) {
			lost = append(lost, key)
		}

		if len(lost) > before {
			repos++
		}
	}
	slices.Sort(lost)
	return slices.Compact(lost), repos // a pack is missed by each of its repositories
}
