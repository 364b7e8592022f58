package hold

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/git"
)

// Copier makes this node hold what the placement wants it to hold. It copies missing files from
// live holders, confirms what is here, and gives up what others have taken over. scene.go decides
// what to do; a Copier does it.
type Copier struct {
	cluster Cluster
	files   *Files
	from    *Transfers
	opt     CopyOptions

	mu        sync.Mutex // guards the fields below
	active    map[string]bool
	failed    map[string]failure
	fresh     map[catalog.RepoID]freshness
	rewritten map[string]time.Time // packs that wait for their part to be written, and since when
}

// freshness says which generation a mirror has. A mirror that was dropped and comes back is another
// one: nothing is known about it.
type freshness struct {
	generation uint64
	mirror     *git.Mirror
}

// CopyOptions are the settings of a Copier.
type CopyOptions struct {
	Replicas int                          // wanted copies of everything
	Busy     func(id catalog.RepoID) bool // reports whether a job works on the mirror of a repository here
	Log      *slog.Logger
	Now      func() time.Time
}

// failure counts failed copies of a file or mirror.
type failure struct {
	until time.Time // no attempt before
	count int       // failures in a row
}

// How often the copier works.
const (
	copyLook   = 200 * time.Millisecond // shortest pause between two looks
	copyIdle   = 5 * time.Second        // pause while nothing changes
	copyShare  = 20                     // a look takes at most this fraction of the time, as 1/n
	copyRetry  = time.Second            // pause after a failure; doubled after each
	copyWait   = copyRetry << 6         // longest pause after a failure
	confirmMax = 1000                   // keys in one command

	// How long a copy of a pack waits for the job that writes the part wanted here. partHurry
	// applies while there are too few copies.
	partWait  = 5 * time.Minute
	partHurry = 30 * time.Second
)

// NewCopier returns a Copier. Run makes it work.
func NewCopier(cluster Cluster, files *Files, from *Transfers, opt CopyOptions) *Copier {
	return &Copier{
		cluster:   cluster,
		files:     files,
		from:      from,
		opt:       opt,
		active:    map[string]bool{},
		failed:    map[string]failure{},
		fresh:     map[catalog.RepoID]freshness{},
		rewritten: map[string]time.Time{},
	}
}

// restPer is the pause for each repository between two looks at all of them. For 20,000
// repositories, which take milliseconds to look at, that is ten seconds.
const restPer = 500 * time.Microsecond

// Rest returns the pause between two looks at all repositories when nothing asks for one
// sooner, at most a minute.
func Rest(repos int) time.Duration {
	return min(time.Duration(repos)*restPer, time.Minute)
}

// Run copies to this node what it should hold and lacks, until ctx ends.
func (c *Copier) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		changed := c.cluster.Changed()
		took := c.copyMissing(ctx, &wg)

		// A look over many repositories takes time: the pause grows with it.
		if !clock.Wait(ctx, max(copyLook, min(copyShare*took, copyIdle))) {
			return nil
		}

		idle := time.NewTimer(max(copyIdle, Rest(5*c.cluster.View().RepoCount())))
		select {
		case <-ctx.Done():
		case <-changed:
		case <-idle.C:
		}
		idle.Stop()
	}
}

// copyMissing starts to copy what this node lacks, and confirms what it has. It returns how long the
// decision took, which grows with the number of repositories.
func (c *Copier) copyMissing(ctx context.Context, wg *sync.WaitGroup) time.Duration {
	view := c.cluster.View()
	// A node with an old catalog might copy deleted data.
	if c.cluster.Ready() != nil || view.Index() == 0 {
		return 0
	}

	began := c.opt.Now()
	w := c.newScene(ctx, view).decideAll()
	c.forgetUnwanted(view, w)
	took := c.opt.Now().Sub(began)

	for name, from := range w.files {
		c.startCopy(ctx, wg, name, func() error { return c.from.CopyFile(ctx, name, from) })
	}
	for id, from := range w.mirrors {
		c.startCopy(ctx, wg, catalog.MirrorKey(id), func() error {
			if err := c.from.CopyMirror(ctx, id, from); err != nil {
				return err
			}
			return c.files.Mirrors.Get(id).Groom(ctx)
		})
	}

	// Confirm what has arrived. The copies started now are confirmed by a later call.
	c.confirmHeld(ctx, w)
	return took
}

// newScene returns the inputs for the decisions of this node in a view.
func (c *Copier) newScene(ctx context.Context, view *catalog.View) *scene {
	packs := RewritesOf(view)
	// The functions read the present state: since the view a node may have died, and a file may
	// have come.
	return &scene{
		view:   view,
		self:   c.cluster.Self(),
		wanted: c.opt.Replicas,
		now:    c.opt.Now(),
		alive:  c.cluster.Alive,
		has:    c.files.Has,
		stored: c.files.Mirrors.Has,
		busy:   c.opt.Busy,
		fresh:  func(repo *catalog.Repo) bool { return c.Fresh(ctx, view, repo) },
		rewritten: func(repo catalog.RepoID, id string, live int) bool {
			return packs.Due(repo, id) && c.mayWaitForPart(id, live)
		},
	}
}

// mayWaitForPart reports whether this node can still wait for a part of a pack instead of copying
// the pack. The wait starts at the first call. It is shorter if the pack has fewer live copies than
// wanted.
func (c *Copier) mayWaitForPart(id string, live int) bool {
	wait := partWait
	if live < c.opt.Replicas {
		wait = partHurry
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	since, ok := c.rewritten[id]
	if !ok {
		since = c.opt.Now()
		c.rewritten[id] = since
	}
	return c.opt.Now().Sub(since) < wait
}

// forgetUnwanted drops what is known about packs, files and repositories that are no longer wanted.
func (c *Copier) forgetUnwanted(view *catalog.View, w *work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.rewritten {
		if !w.rewritten[id] {
			delete(c.rewritten, id)
		}
	}

	// No attempt for copyWait after the pause: the file is no longer wanted, or its count may start
	// again. Do not forget it sooner, because a file may have no live holder for a moment.
	for key, f := range c.failed {
		if c.opt.Now().Sub(f.until) > copyWait && !c.active[key] {
			delete(c.failed, key)
		}
	}

	// With more entries than repositories, some repositories were removed.
	if len(c.fresh) > view.RepoCount() {
		for id := range c.fresh {
			if view.Repo(id) == nil {
				delete(c.fresh, id)
			}
		}
	}
}

// confirmHeld reports to the catalog what this node holds now, and what it gives up.
func (c *Copier) confirmHeld(ctx context.Context, w *work) {
	// Confirm in parts, so that no log entry grows with the size of the disk.
	for len(w.held)+len(w.giveUps) > 0 {
		h, g := min(len(w.held), confirmMax), min(len(w.giveUps), confirmMax)
		cmd := &catalog.Confirm{Node: c.cluster.Self(), Epoch: c.cluster.Epoch(), Held: w.held[:h], Lost: w.giveUps[:g]}
		if _, err := c.cluster.Propose(ctx, cmd); err != nil {
			return // the next copyMissing finds it again
		}
		w.held, w.giveUps = w.held[h:], w.giveUps[g:]
	}
}

// startCopy runs a copy, unless it is running already or failed a short time ago.
func (c *Copier) startCopy(ctx context.Context, wg *sync.WaitGroup, key string, copyOne func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Only copiesIn copies run at once. Limit those that wait: after a long wait the view
	// that asked for the copy is out of date.
	if c.active[key] || len(c.active) >= 4*copiesIn || c.opt.Now().Before(c.failed[key].until) {
		return
	}
	c.active[key] = true

	wg.Go(func() {
		err := copyOne()

		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.active, key)
		// A copy that stopped because the node stops has not failed.
		if err == nil || ctx.Err() != nil {
			delete(c.failed, key)
			return
		}

		// Wait twice as long after each failure, up to copyRetry << 6.
		f := c.failed[key]
		f.count++
		f.until = c.opt.Now().Add(copyRetry << min(f.count, 6))
		c.failed[key] = f
		c.opt.Log.Warn("a copy failed", "what", key, "attempt", f.count, "err", err)
	})
}

// Fresh reports whether in this node's mirror the branches and tags of the live generation name
// its commits.
func (c *Copier) Fresh(ctx context.Context, view *catalog.View, repo *catalog.Repo) bool {
	// A generation never changes, so a positive result stays valid for this mirror.
	found := freshness{repo.GenerationAt, c.files.Mirrors.Get(repo.ID)}
	c.mu.Lock()
	known := c.fresh[repo.ID]
	c.mu.Unlock()
	if known == found && repo.GenerationAt != 0 {
		return true
	}
	if !c.files.Mirrors.Has(repo.ID) {
		return false
	}

	// If this node made the generation, its mirror has the commits. Otherwise ask the mirror.
	j := view.Job(catalog.JobIndex, catalog.RepoSubject(repo.ID))
	if j == nil || j.Node != c.cluster.Self() || j.State != catalog.JobDone {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()

		// Check the names too: the commits may be here from another branch.
		for _, rev := range repo.Revisions {
			if commit, err := found.mirror.Resolve(ctx, rev.Name); err != nil || commit != rev.Commit {
				return false
			}
		}
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh[repo.ID] = found
	return true
}

// Moves returns how many copies are running or waiting for repositories that somebody may see.
// Copies for hidden repositories do not count, because nobody may learn that those exist.
func (c *Copier) Moves(view *catalog.View) int {
	mirrors, files := c.listMoving()
	if len(mirrors)+len(files) == 0 {
		return 0
	}

	n := 0
	shown := view.Shown()
	for _, id := range mirrors {
		if repo := view.Repo(id); repo != nil && shown(repo) {
			n++
		}
	}

	// A file may belong to several repositories: one visible repository is enough.
	for repo := range view.Repos() {
		if len(files) == 0 {
			break
		}
		if !shown(repo) {
			continue
		}

		for _, s := range repo.Shards {
			for _, id := range []string{s.ID, s.Dead, s.Symbols} {
				if files[id] {
					n++
					delete(files, id)
				}
			}
		}
	}
	return n
}

// listMoving returns the mirrors and the files that are being copied or wait to be. Files have their
// ids in the catalog.
func (c *Copier) listMoving() (mirrors []catalog.RepoID, files map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	files = map[string]bool{}
	for id := range c.rewritten {
		files[id] = true
	}

	for key := range c.active {
		if id, _, ok := shard.ParseFileName(key); ok {
			files[id.String()] = true
		} else if id, ok := catalog.MirrorRepo(key); ok {
			mirrors = append(mirrors, id)
		}
	}
	return mirrors, files
}
