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

// Copier makes this node hold what the placement wants it to hold: it copies
// what is missing from live holders, confirms what is here, and gives up what
// others have taken over. What to do is decided in scene.go; a Copier does it.
type Copier struct {
	cluster Cluster
	files   *Files
	from    *Transfers
	opt     CopyOptions

	mu        sync.Mutex // guards the fields below
	active    map[string]bool
	failed    map[string]failure
	fresh     map[catalog.RepoID]freshness
	rewritten map[string]time.Time // packs of which a part is awaited, since when
}

// freshness is what is known of a mirror: the generation that it has. A mirror that
// was dropped is another one when it comes back, and nothing is known of that.
type freshness struct {
	generation uint64
	mirror     *git.Mirror
}

// CopyOptions is what a Copier takes beside its parts.
type CopyOptions struct {
	Replicas int                          // copies wanted of everything
	Busy     func(id catalog.RepoID) bool // a job works on the mirror of a repository here
	Log      *slog.Logger
	Now      func() time.Time
}

// failure is a copy that could not be made.
type failure struct {
	until time.Time // no attempt before
	count int       // in a row
}

// The pace of the copier.
const (
	copyLook   = 200 * time.Millisecond // between two looks
	copyIdle   = 5 * time.Second        // when nothing changes
	copyShare  = 20                     // a look takes at most one in so many parts of the time
	copyRetry  = time.Second            // after a failure, doubled
	copyWait   = copyRetry << 6         // the longest of these pauses
	confirmMax = 1000                   // keys of one command

	// How long a copy of a pack waits for the job that writes the part of it
	// which is wanted here, and where there are too few copies.
	partWait  = 5 * time.Minute
	partHurry = 30 * time.Second
)

// NewCopier returns a Copier; Run makes it work.
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

// restPer is the pause for each repository between two looks at all of them. With 20,000
// repositories, of which a look takes milliseconds, that is ten seconds.
const restPer = 500 * time.Microsecond

// Rest returns the pause between two looks at all repositories when nothing asks for one
// sooner, at most a minute.
func Rest(repos int) time.Duration {
	return min(time.Duration(repos)*restPer, time.Minute)
}

// Run copies until the context ends.
func (c *Copier) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		changed := c.cluster.Changed()
		took := c.look(ctx, &wg)

		// A look over many repositories takes time: the pause is a share of that.
		if !clock.Wait(ctx, max(copyLook, min(copyShare*took, copyIdle))) {
			return nil
		}

		idle := time.NewTimer(max(copyIdle, Rest(c.cluster.View().RepoCount())))
		select {
		case <-ctx.Done():
		case <-changed:
		case <-idle.C:
		}
		idle.Stop()
	}
}

// look starts what is to be copied and says what is here. It returns how long
// the search for that took: with many repositories, milliseconds.
func (c *Copier) look(ctx context.Context, wg *sync.WaitGroup) time.Duration {
	view := c.cluster.View()
	// A node without a catalog that is up to date might copy what has gone.
	if c.cluster.Ready() != nil || view.Index() == 0 {
		return 0
	}

	began := c.opt.Now()
	w := c.scene(ctx, view).decide()
	c.forget(view, w)
	took := c.opt.Now().Sub(began)

	for name, from := range w.files {
		c.start(ctx, wg, name, func() error { return c.from.File(ctx, name, from) })
	}
	for id, from := range w.mirrors {
		c.start(ctx, wg, catalog.MirrorKey(id), func() error {
			if err := c.from.Mirror(ctx, id, from); err != nil {
				return err
			}
			return c.files.Mirrors.Get(id).Groom(ctx)
		})
	}

	// What came since the last look is told now, what is under way at the next.
	c.confirm(ctx, w)
	return took
}

// scene is what this node sees of a view.
func (c *Copier) scene(ctx context.Context, view *catalog.View) *scene {
	packs := RewritesOf(view)
	// The lookups ask at the moment of use: a node may have died, and a file come, since this view.
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
			return packs.Due(repo, id) && c.mayWait(id, live)
		},
	}
}

// mayWait reports whether a pack can wait to be copied, for the part of it that
// belongs here. It waits for the first time now, or not for too long.
func (c *Copier) mayWait(id string, live int) bool {
	wait := partWait
	if live < c.opt.Replicas {
		wait = partHurry
	}

	// The first look at it starts the time, and the later ones measure it.
	c.mu.Lock()
	defer c.mu.Unlock()
	since, ok := c.rewritten[id]
	if !ok {
		since = c.opt.Now()
		c.rewritten[id] = since
	}
	return c.opt.Now().Sub(since) < wait
}

// forget ends the waiting for what is not wanted any more, and lets go of what is
// known of files and repositories that are gone.
func (c *Copier) forget(view *catalog.View, w *work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.rewritten {
		if !w.rewritten[id] {
			delete(c.rewritten, id)
		}
	}

	// So long after the pause nothing was tried again: it is wanted no more, or has waited so
	// long for its turn that it may begin anew. Not before, so that what has no source for a
	// moment goes on being counted.
	for key, f := range c.failed {
		if c.opt.Now().Sub(f.until) > copyWait && !c.active[key] {
			delete(c.failed, key)
		}
	}

	// There are as many as repositories at most, so that few looks walk over them.
	if len(c.fresh) > view.RepoCount() {
		for id := range c.fresh {
			if view.Repo(id) == nil {
				delete(c.fresh, id)
			}
		}
	}
}

// confirm tells the catalog what this node holds and what not any more.
func (c *Copier) confirm(ctx context.Context, w *work) {
	// In parts, so that no entry of the log grows with what a disk holds.
	for len(w.held)+len(w.given) > 0 {
		h, g := min(len(w.held), confirmMax), min(len(w.given), confirmMax)
		cmd := &catalog.Confirm{Node: c.cluster.Self(), Epoch: c.cluster.Epoch(), Held: w.held[:h], Lost: w.given[:g]}
		if _, err := c.cluster.Propose(ctx, cmd); err != nil {
			return // found again by the next look
		}
		w.held, w.given = w.held[h:], w.given[g:]
	}
}

// start runs one copy, unless it is under way or failed just now.
func (c *Copier) start(ctx context.Context, wg *sync.WaitGroup, key string, run func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Beyond copiesIn they only wait: more of them in line would be of an old view.
	if c.active[key] || len(c.active) >= 4*copiesIn || c.opt.Now().Before(c.failed[key].until) {
		return
	}
	c.active[key] = true

	wg.Go(func() {
		err := run()

		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.active, key)
		// A copy that the end of the node stopped has not failed.
		if err == nil || ctx.Err() != nil {
			delete(c.failed, key)
			return
		}

		// Twice as long after each failure, up to copyRetry << 6.
		f := c.failed[key]
		f.count++
		f.until = c.opt.Now().Add(copyRetry << min(f.count, 6))
		c.failed[key] = f
		c.opt.Log.Warn("a copy failed", "what", key, "attempt", f.count, "err", err)
	})
}

// Fresh reports whether the mirror of this node has the commits of the live
// generation under their names.
func (c *Copier) Fresh(ctx context.Context, view *catalog.View, repo *catalog.Repo) bool {
	// A generation never changes: what was found once holds for it, in that mirror.
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

	// Where this node made the generation, its mirror has the commits. Else
	// the mirror is asked.
	j := view.Job(catalog.JobIndex, catalog.RepoSubject(repo.ID))
	if j == nil || j.Node != c.cluster.Self() || j.State != catalog.JobDone {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()

		// Under their names: the commits alone may be here since a branch was elsewhere.
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

// Moves is how many copies are under way, or put off, of what repositories need that
// anybody is shown: the others are copied too, but do not exist for whoever looks.
func (c *Copier) Moves(view *catalog.View) int {
	mirrors, files := c.moving()
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

	// A file may be of several repositories, and one that is shown is enough.
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

// moving is the mirrors and the files, by the ids that the catalog has for them, that
// are being copied, or wait to be.
func (c *Copier) moving() (mirrors []catalog.RepoID, files map[string]bool) {
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
