package hold

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Collector collects garbage on this disk: it removes files that no view names, after the grace
// period. It also reports files that are missing as lost, so that they are copied or built again.
type Collector struct {
	cluster Cluster
	files   *Files
	busy    func(id catalog.RepoID) bool // reports whether a job works on the mirror of a repository here
	log     *slog.Logger
	damaged chan struct{} // signals that a file was put aside, so that losses are looked for

	lossesIndex    uint64                       // index of the view when losses were last reported
	mirrorsChecked bool                         // all mirrors were checked once
	orphaned       map[catalog.RepoID]time.Time // unwanted mirrors, and since when they are unwanted

	// removed are the mirrors that this node has removed. A catalog entry that was under way may
	// still name this node as a holder of one.
	removed map[catalog.RepoID]bool
}

// NewCollector returns a Collector. Run makes it work.
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

// Damaged reports that a file was put aside, so that it is soon reported as lost. It never blocks.
func (c *Collector) Damaged() {
	select {
	case c.damaged <- struct{}{}:
	default: // a signal is waiting already
	}
}

// How often the collector works.
const (
	maxViewAge   = 30 * time.Second // a view older than this deletes nothing
	collectEvery = time.Second
)

// Run removes from this node what it no longer should hold, until ctx ends.
func (c *Collector) Run(ctx context.Context) error {
	for {
		c.Collect(ctx)

		view := c.cluster.View()
		grace := view.File().Settings.RepoGarbageCollectionGrace
		next := time.NewTimer(max(Rest(5*view.RepoCount()), min(collectEvery, max(grace/2, 10*time.Millisecond))))

		select {
		case <-ctx.Done():
			next.Stop()
			return nil
		case <-c.damaged:
			next.Stop()
			c.lossesIndex = 0
		case <-next.C:
		}
	}
}

// Collect removes garbage and reports losses once.
func (c *Collector) Collect(ctx context.Context) {
	if c.cluster.Ready() != nil || c.cluster.Age() > maxViewAge || c.cluster.View().Index() == 0 {
		return // the view may be out of date: delete nothing
	}

	// Read the guards before the view. A guard ends only after a view names the file, so each
	// file is guarded or named by the view.
	live := c.files.unpublishedFiles(c.cluster.View())
	view := c.cluster.View()
	held := heldKeys(view, c.cluster.Self())

	c.removeFiles(view, held, live)
	c.removeMirrors(view)

	// Do not look for losses again before something changes.
	if view.Index() != c.lossesIndex && c.reportLosses(ctx, view, held) {
		c.lossesIndex, c.mirrorsChecked = view.Index(), true
	}
}

// heldKeys returns the keys of the files and mirrors that a node holds in a view; each is true.
func heldKeys(view *catalog.View, node string) map[string]bool {
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

// removeFiles removes files that no generation names, and files that neither belong on this node
// nor are held by it.
func (c *Collector) removeFiles(view *catalog.View, held, live map[string]bool) {
	addNeeded(view, c.cluster.Self(), held, live)
	removed, err := c.files.Retain(func(name string) bool { return live[name] }, view.File().Settings.RepoGarbageCollectionGrace)
	if err != nil {
		c.log.Error("old shards could not be removed", "err", err)
	}
	if len(removed) > 0 {
		c.log.Debug("old shards removed", "files", len(removed))
	}
}

// addNeeded adds to live the files that a node should hold, or holds by the catalog.
func addNeeded(view *catalog.View, self string, held, live map[string]bool) {
	for repo := range view.Repos() {
		group := RepoTargets(view, repo.ID)
		for _, s := range repo.Shards {
			targets := group
			if s.Slice != 0 {
				targets = TargetsOf(view, UnitOf(repo.ID, s))
			}

			// Before the first placement every file belongs on every node.
			wanted := len(targets) == 0 || slices.Contains(targets, self)

			// A held file stays until the catalog knows that it is given up.
			for key, file := range FilesOf(repo.ID, s) {
				if wanted || held[key] {
					live[file] = true
				}
			}
		}
	}
}

// removeMirrors removes the mirrors that this node no longer needs.
func (c *Collector) removeMirrors(view *catalog.View) {
	mirrors, now := c.files.Mirrors, c.files.now()
	ids, others, err := mirrors.Names()
	if err != nil {
		c.log.Error("mirrors could not be listed", "err", err)
		return
	}

	for _, name := range others {
		mirrors.dropOther(name)
	}
	mirrors.measureDue(ids, now)

	grace := view.File().Settings.RepoGarbageCollectionGrace
	for _, id := range ids {
		if isMirrorWanted(view, id, c.cluster.Self()) {
			delete(c.orphaned, id)
			continue
		}

		// The grace period starts when the mirror is first found unwanted.
		since, ok := c.orphaned[id]
		if !ok {
			c.orphaned[id] = now
			continue
		}

		// A job may still read the mirror, or a newer view may want it again.
		if now.Sub(since) < grace || c.busy(id) || isMirrorWanted(c.cluster.View(), id, c.cluster.Self()) {
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

// isMirrorWanted reports whether the mirror of a repository belongs on a node.
func isMirrorWanted(view *catalog.View, id catalog.RepoID, self string) bool {
	if view.Repo(id) == nil {
		return false
	}
	targets := RepoTargets(view, id)
	return len(targets) == 0 || slices.Contains(targets, self) || view.Holds(self, catalog.MirrorKey(id))
}

// reportLosses reports the files that this node should hold and does not have. Then the copier gets
// them from another holder, or the plan finds that nobody has them and asks for a new index. The
// result is false if the report failed and must be repeated.
func (c *Collector) reportLosses(ctx context.Context, view *catalog.View, held map[string]bool) bool {
	lost, repos := c.findLosses(view, held)
	if len(lost) == 0 {
		return true
	}
	c.log.Warn("files of this node are missing", "files", len(lost), "repos", repos)

	// Report in parts, so that one log entry does not grow with the size of the loss.
	var cmds []catalog.Command
	for part := range slices.Chunk(lost, confirmMax) {
		cmds = append(cmds, &catalog.Confirm{Node: c.cluster.Self(), Epoch: c.cluster.Epoch(), Lost: part})
	}
	// A refused report would be refused again, so it counts as done.
	if _, err := c.cluster.Propose(ctx, cmds...); err != nil {
		if _, refused := catalog.Refused(err); !refused {
			c.log.Warn("losses could not be reported", "err", err)
			return false
		}
	}
	return true
}

// findLosses returns the keys of files that this node holds by the catalog but does not have, and the
// number of their repositories.
func (c *Collector) findLosses(view *catalog.View, held map[string]bool) (lost []string, repos int) {
	for repo := range view.Repos() {
		// A job is about to change the files of the repository.
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

		// A check of a mirror costs a system call. Only a removal can lose one, so after the first
		// round check only removed ones.
		if key := catalog.MirrorKey(repo.ID); held[key] && (!c.mirrorsChecked || c.removed[repo.ID]) && !c.files.Mirrors.Has(repo.ID) {
			lost = append(lost, key)
		}

		if len(lost) > before {
			repos++
		}
	}
	slices.Sort(lost)
	return slices.Compact(lost), repos // a pack was added once for each of its repositories
}
