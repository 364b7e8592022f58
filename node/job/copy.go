package job

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/place"
)

// Copier makes this node hold what the placement wants it to: it copies what
// is missing from other holders, confirms what is here, and gives up what
// others have taken over.
//
//	target, not here           copy by hash, then confirm
//	target, here               confirm
//	no target, others have it  un-confirm; the keeper deletes it after the grace period
//
// Searches go to holders only, never to targets: a move leaves no gap.
type Copier struct {
	r *Runner

	mu     sync.Mutex // guards the fields below
	active map[string]bool
	failed map[string]failure
	fresh  map[catalog.RepoID]uint64 // generation that the mirror is known to have
	put    map[string]time.Time      // since when a file waits for the part of it that belongs here
}

type failure struct {
	until time.Time
	count int
}

// The pace of the copier.
const (
	copyLook   = 200 * time.Millisecond // between two looks
	copyIdle   = 5 * time.Second        // when nothing changes
	copyShare  = 20                     // a look takes at most one in so many parts of the time
	copyRetry  = time.Second            // after a failure, doubled
	confirmMax = 1000                   // keys of one command

	// How long a copy of a pack waits for the job that writes the part of it
	// which is wanted here, and where there are too few copies.
	partWait  = 5 * time.Minute
	partHurry = 30 * time.Second
)

// NewCopier returns a Copier.
func NewCopier(r *Runner) *Copier {
	return &Copier{r: r, active: map[string]bool{}, failed: map[string]failure{}, fresh: map[catalog.RepoID]uint64{}, put: map[string]time.Time{}}
}

// Run copies until the context ends.
func (c *Copier) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		changed := c.r.opt.Cluster.Changed()
		took := c.look(ctx, &wg)
		if !sleep(ctx, max(copyLook, min(copyShare*took, copyIdle))) {
			return nil
		}
		t := time.NewTimer(copyIdle)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-t.C:
		}
		t.Stop()
	}
}

// work is what a look found.
type work struct {
	held, lost []string // keys
	files      map[string][]string
	mirrors    map[catalog.RepoID][]string

	// What each repository that reads a file says of it: the repositories of
	// a pack may be of different minds after a move.
	wish map[string]wish

	parts *parts
	put   map[string]bool // files that wait for the part of them that belongs here
}

// wish is what to do with a file, the strongest reason last.
type wish uint8

const (
	giveUp wish = 1 + iota // all that should have it do
	keep                   // it is here and not everywhere yet where it should be
	want                   // it should be here
)

// look starts what is to be copied and says what is here. It tells how long
// the search for that took: with many repositories, milliseconds.
func (c *Copier) look(ctx context.Context, wg *sync.WaitGroup) time.Duration {
	cl, began := c.r.opt.Cluster, time.Now()
	if cl.Ready() != nil || cl.View().Index() == 0 {
		return 0
	}
	w := c.find(ctx, cl.View())
	took := time.Since(began)
	for name, from := range w.files {
		c.start(ctx, wg, name, func() error { return c.r.transfers.File(ctx, name, from) })
	}
	for id, from := range w.mirrors {
		c.start(ctx, wg, catalog.MirrorKey(id), func() error {
			if err := c.r.transfers.Mirror(ctx, id, from); err != nil {
				return err
			}
			return c.r.opt.Mirrors.Get(id).Groom(ctx)
		})
	}
	c.confirm(ctx, w)
	return took
}

// confirm tells the catalog what this node holds and what not any more.
func (c *Copier) confirm(ctx context.Context, w *work) {
	cl := c.r.opt.Cluster
	for len(w.held)+len(w.lost) > 0 {
		h, l := min(len(w.held), confirmMax), min(len(w.lost), confirmMax)
		cmd := &catalog.Confirm{Node: cl.Self(), Epoch: cl.Epoch(), Held: w.held[:h], Lost: w.lost[:l]}
		if _, err := cl.Propose(ctx, cmd); err != nil {
			return // found again by the next look
		}
		w.held, w.lost = w.held[h:], w.lost[l:]
	}
}

// start runs one copy, unless it is under way or failed just now.
func (c *Copier) start(ctx context.Context, wg *sync.WaitGroup, key string, run func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active[key] || len(c.active) >= 4*copiesIn || time.Now().Before(c.failed[key].until) {
		return
	}
	c.active[key] = true
	wg.Go(func() {
		err := run()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.active, key)
		if err == nil || ctx.Err() != nil {
			delete(c.failed, key)
			return
		}
		f := c.failed[key]
		f.count++
		f.until = time.Now().Add(copyRetry << min(f.count, 6))
		c.failed[key] = f
		c.r.opt.Log.Warn("a copy failed", "what", key, "attempt", f.count, "err", err)
	})
}

// find compares what the view wants of this node with what is here.
func (c *Copier) find(ctx context.Context, view *catalog.View) *work {
	w := &work{files: map[string][]string{}, mirrors: map[catalog.RepoID][]string{}, wish: map[string]wish{}, parts: &parts{view: view}, put: map[string]bool{}}
	self := c.r.opt.Cluster.Self()
	for repo := range view.Repos() {
		if repo.Orphaned() || !repo.Indexed() {
			continue
		}
		group := targetsOf(view, groupOf(repo.ID))
		if len(group) == 0 {
			group = []string{self} // a cluster of one, or before the first placement
			if !slices.Contains(view.Holders(catalog.MirrorKey(repo.ID)), self) {
				continue
			}
		}
		c.findMirror(ctx, view, repo, group, w)
		for _, s := range repo.Shards {
			targets := group
			if s.Slice != 0 {
				if own := targetsOf(view, UnitOf(repo.ID, s)); len(own) > 0 {
					targets = own
				}
			}
			c.findShard(view, repo, s, targets, w)
		}
	}
	for key, wish := range w.wish {
		if wish == giveUp {
			w.lost = append(w.lost, key)
		}
	}
	c.forget(w)
	return w
}

// findShard notes what a repository wants of the files of a shard.
func (c *Copier) findShard(view *catalog.View, repo *catalog.Repo, s catalog.ShardRef, targets []string, w *work) {
	self := c.r.opt.Cluster.Self()
	wanted := slices.Contains(targets, self)
	for key, file := range filesOf(repo.ID, s) {
		if w.wish[key] == want {
			continue // another repository of a pack wants it already
		}
		if wanted && s.Pack > 0 && !c.r.opt.Set.Has(file) && c.waits(view, repo.ID, s.ID, w) {
			continue
		}
		holders := view.Holders(key)
		held := slices.Contains(holders, self)
		switch {
		case wanted:
			w.wish[key] = want
			if !c.r.opt.Set.Has(file) {
				if from := c.r.sources(view, key); len(from) > 0 {
					w.files[file] = from
				}
			} else if !held {
				w.held = append(w.held, key)
			}
		case held && c.covered(holders, targets):
			w.wish[key] = max(w.wish[key], giveUp)
		case held:
			w.wish[key] = max(w.wish[key], keep)
		}
	}
}

// covered tells that all targets have confirmed, and one of them is alive.
func (c *Copier) covered(holders, targets []string) bool {
	alive := false
	for _, t := range targets {
		if !slices.Contains(holders, t) {
			return false
		}
		alive = alive || c.r.opt.Cluster.Alive(t)
	}
	return alive
}

func (c *Copier) findMirror(ctx context.Context, view *catalog.View, repo *catalog.Repo, targets []string, w *work) {
	self, key := c.r.opt.Cluster.Self(), catalog.MirrorKey(repo.ID)
	holders := view.Holders(key)
	held := slices.Contains(holders, self)
	if !slices.Contains(targets, self) {
		if held && c.covered(holders, targets) && !c.r.busy(repo.ID) {
			w.lost = append(w.lost, key)
		}
		return
	}
	if c.r.busy(repo.ID) {
		return
	}
	if c.Fresh(ctx, view, repo) {
		if !held {
			w.held = append(w.held, key)
		}
		return
	}
	from := c.r.sources(view, key)
	if j := view.Job(catalog.JobIndex, catalog.RepoSubject(repo.ID)); j != nil {
		if i := slices.Index(from, j.Node); i > 0 { // who indexed last is newest
			from[0], from[i] = from[i], from[0]
		}
	}
	if len(from) > 0 {
		w.mirrors[repo.ID] = from
	}
}

// Fresh tells whether the mirror of this node has the commits of the live
// generation under their names.
func (c *Copier) Fresh(ctx context.Context, view *catalog.View, repo *catalog.Repo) bool {
	c.mu.Lock()
	known := c.fresh[repo.ID]
	c.mu.Unlock()
	if known == repo.GenerationAt && repo.GenerationAt != 0 {
		return true
	}
	if !c.r.opt.Mirrors.Has(repo.ID) {
		return false
	}
	self := c.r.opt.Cluster.Self()
	j := view.Job(catalog.JobIndex, catalog.RepoSubject(repo.ID))
	if j == nil || j.Node != self || j.State != catalog.JobDone {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		m := c.r.opt.Mirrors.Get(repo.ID)
		for _, rev := range repo.Revisions {
			if commit, err := m.Resolve(ctx, rev.Name); err != nil || commit != rev.Commit {
				return false
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh[repo.ID] = repo.GenerationAt
	return true
}

// Moves is how many copies are under way, or put off.
func (c *Copier) Moves() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.active) + len(c.put)
}

// UnderReplicated counts the repositories of which something has fewer live
// holders than copies are wanted, or than there are live members.
func UnderReplicated(view *catalog.View, c *cluster.Cluster, copies int) (repos []string) {
	alive := map[string]bool{}
	for _, m := range c.Members() {
		alive[m.ID] = m.Alive && m.State != catalog.MemberRemoved
	}
	n := 0
	for _, ok := range alive {
		if ok {
			n++
		}
	}
	want := min(copies, n)
	few := func(key string) bool {
		have := 0
		for _, id := range view.Holders(key) {
			if alive[id] {
				have++
			}
		}
		return have < want
	}
	for repo := range view.ReposByName() {
		if !repo.Indexed() || repo.Orphaned() {
			continue
		}
		keys := []string{catalog.MirrorKey(repo.ID)}
		for _, s := range repo.Shards {
			for key := range filesOf(repo.ID, s) {
				keys = append(keys, key)
			}
		}
		if slices.ContainsFunc(keys, few) {
			repos = append(repos, repo.Name)
		}
	}
	return repos
}

// groupOf is the placement group of a repository.
func groupOf(id catalog.RepoID) uint64 { return place.GroupOf(id) }

// orderBy lists the ids that are wanted, in an order that depends on the key.
func orderBy(key string, ids []string, wanted func(id string) bool) []string {
	var out []string
	for _, id := range ids {
		if wanted(id) {
			out = append(out, id)
		}
	}
	score := func(id string) float64 { return place.Score(place.Key(key), place.Member{ID: id}) }
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(a, b)) })
	return out
}
