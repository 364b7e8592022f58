// Package history keeps the changes of the repositories of this node: beside each mirror an
// index of what its commits changed, as far back as the operator wants it.
//
//	mirror and revisions of the catalog -- Keeper.Run --> change.Log in <data>/history/<number>
//	search of commits -- Keeper.Search --> what the log has, and whether it covers those revisions
//
// A node makes the changes of each mirror that it has. Nothing of them is in the catalog, and
// nothing travels: a member of another version neither sees nor deletes them.
package history

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard/change"
	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
)

// MirrorDir is the mirrors of this node; *hold.Mirrors is one.
type MirrorDir interface {
	Names() (ids []catalog.RepoID, strange []string, err error)
	Has(id catalog.RepoID) bool
	Get(id catalog.RepoID) *git.Mirror
}

// Deps is what a Keeper works with.
type Deps struct {
	Dir     string // of the changes of all repositories
	View    func() *catalog.View
	Mirrors MirrorDir
	Bound   change.Bound
	Busy    func() bool          // other work runs here, which goes first
	Rest    func() time.Duration // the pause between two looks at all repositories
	Now     func() time.Time
	Log     *slog.Logger
}

// Keeper keeps changes up to date and searches them. It is safe for concurrent use.
type Keeper struct {
	d Deps

	mu      sync.Mutex // guards the fields below
	logs    map[catalog.RepoID]*kept
	covered map[catalog.RepoID]change.Extent // when Run looked last

	inForce *rules        // of the catalog when somebody asked last
	asked   *catalog.View // that catalog

	reading chan struct{} // has one for each search that reads from git

	calm *catalog.View // of the last round, if that left nothing to do; of Run alone

	counting sync.Mutex // guards the fields below, and is held while Status counts
	counted  time.Time
	status   Status
}

// kept is the changes of one repository.
type kept struct {
	log  *change.Log
	used time.Time // by the last search; guarded by the mutex of the Keeper

	// Only Run uses these fields.
	rules *rules        // that it follows
	done  *catalog.Repo // up to which the log was brought; the record is another one after a push
	next  time.Time     // not before then after a failure
	fail  int           // failures in a row
}

const (
	lookEvery  = time.Second     // at what has changed in the catalog
	retryFirst = 3 * time.Second // after a failure; each further one doubles it
	retryMost  = 10 * time.Minute
	openTime   = time.Minute // how long a log stays open after a search
	waitBusy   = 200 * time.Millisecond
	restDir    = "rest"      // has files of searches that read what is not indexed
	restAtOnce = 2           // of these searches
	waitMost   = time.Minute // for other work, before each piece: where there is always some, this goes on slowly
)

// New makes a Keeper. Nothing is read before Run.
func New(d Deps) *Keeper {
	return &Keeper{d: d, logs: map[catalog.RepoID]*kept{}, covered: map[catalog.RepoID]change.Extent{}, reading: make(chan struct{}, restAtOnce)}
}

// of returns the changes of a repository.
func (k *Keeper) of(id catalog.RepoID) *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.logs[id]
	if e == nil {
		e = &kept{log: change.Open(filepath.Join(k.d.Dir, strconv.FormatUint(uint64(id), 10)))}
		k.logs[id] = e
	}
	return e
}

// Run keeps the index of changes of each repository as new as the catalog, one repository after the
// other, until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	defer k.close()
	_ = os.RemoveAll(filepath.Join(k.d.Dir, restDir)) // of searches that a crash ended
	for clock.Wait(ctx, max(lookEvery, k.d.Rest())) {
		if err := k.round(ctx); err != nil && ctx.Err() == nil {
			k.d.Log.Warn("the index of changes was not brought up to date", "err", err)
		}
	}
	return nil
}

func (k *Keeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.logs {
		e.log.Close()
	}
	k.logs = map[catalog.RepoID]*kept{}
}

// round looks at each mirror once, unless the catalog has the same data as before.
func (k *Keeper) round(ctx context.Context) error {
	k.closeIdle()
	view := k.d.View()
	if k.calm != nil && k.calm.SameData(view) {
		return nil
	}
	k.calm = nil
	ids, _, err := k.d.Mirrors.Names()
	if err != nil {
		return err
	}
	if err := k.drop(ids); err != nil {
		return err
	}

	waits, rules := false, k.rules(view)
	for _, id := range ids {
		repo, e := view.Repo(id), k.of(id)
		// The mirror of a repository that has left goes later, without a word in the catalog.
		waits = waits || repo == nil || k.d.Now().Before(e.next)
		if repo == nil || !repo.Indexed() || e.done == repo && e.rules == rules || k.d.Now().Before(e.next) || !k.d.Mirrors.Has(id) {
			continue
		}
		began := clock.Now()
		changed, err := k.update(ctx, e, repo)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			// Often the mirror is a moment behind the catalog.
			waits = true
			e.next = k.d.Now().Add(min(retryFirst<<min(e.fail, 10), retryMost))
			e.fail++
			if !errors.Is(err, file.ErrNewer) {
				k.d.Log.Info("the changes of a repository are not indexed yet", "repo", repo.Name, "err", err)
			}
		default:
			e.done, e.rules, e.fail, e.next = repo, rules, 0, time.Time{}
			k.note(ctx, e, repo, changed, clock.Since(began))
			e.log.Close() // a search opens it again
		}
	}
	if !waits {
		k.calm = view
	}
	return nil
}

// closeIdle closes the logs that no search has used for a while: each open file takes one of the
// mappings that a process may have.
func (k *Keeper) closeIdle() {
	k.mu.Lock()
	var idle []*kept
	for _, e := range k.logs {
		if !e.used.IsZero() && k.d.Now().Sub(e.used) > openTime {
			e.used = time.Time{}
			idle = append(idle, e)
		}
	}
	k.mu.Unlock()
	for _, e := range idle {
		e.log.Close()
	}
}

// note stores what the log of a repository covers now, which the status shows. If the log changed,
// note also logs that.
func (k *Keeper) note(ctx context.Context, e *kept, repo *catalog.Repo, changed bool, took time.Duration) {
	c, err := e.log.Extent(ctx)
	if err != nil {
		return
	}
	k.mu.Lock()
	k.covered[repo.ID] = c
	k.mu.Unlock()
	if changed {
		k.d.Log.Info("changes indexed", "repo", repo.Name, "commits", c.Commits, "files", c.Files, "bytes", c.Bytes, "took", took.Round(time.Millisecond))
	}
}

// update brings the changes of a repository up to its revisions and the bound, if they are not.
func (k *Keeper) update(ctx context.Context, e *kept, repo *catalog.Repo) (changed bool, err error) {
	want, bound := revisionsOf(repo), k.rules(k.d.View()).bound(repo.Name)
	if bound.Off() {
		return false, k.forget(e, repo.ID)
	}
	if c, err := e.log.Extent(ctx); err == nil && slices.Equal(c.Revisions, want) && c.Bound == bound.String() {
		return false, nil
	}
	return true, e.log.Update(ctx, k.d.Mirrors.Get(repo.ID), want, bound, k.d.Now(), k.pause)
}

// pause waits, but not for ever, while this node is busy with other work.
func (k *Keeper) pause(ctx context.Context) error {
	for waited := time.Duration(0); waited < waitMost && k.d.Busy(); waited += waitBusy {
		if !clock.Wait(ctx, waitBusy) {
			break
		}
	}
	return ctx.Err()
}

// drop deletes the changes of repositories without a mirror.
func (k *Keeper) drop(mirrors []catalog.RepoID) error {
	entries, err := os.ReadDir(k.d.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("index of changes: %w", err)
	}
	there := make(map[catalog.RepoID]bool, len(mirrors))
	for _, id := range mirrors {
		there[id] = true
	}
	for _, e := range entries {
		n, err := strconv.ParseUint(e.Name(), 10, 32)
		if err != nil || there[catalog.RepoID(n)] {
			continue
		}
		id := catalog.RepoID(n)
		k.of(id).log.Close()
		k.mu.Lock()
		delete(k.logs, id)
		delete(k.covered, id)
		k.mu.Unlock()
		if err := os.RemoveAll(filepath.Join(k.d.Dir, e.Name())); err != nil {
			return fmt.Errorf("index of changes: %w", err)
		}
	}
	return nil
}

// revisionsOf returns the indexed revisions of a repository.
func revisionsOf(repo *catalog.Repo) []change.Tip {
	out := make([]change.Tip, 0, len(repo.Revisions))
	for _, r := range repo.Revisions {
		out = append(out, change.Tip{Name: r.Name, Commit: r.Commit})
	}
	return out
}

// Digest identifies the revisions of a repository in calls between nodes.
func Digest(repo *catalog.Repo) string { return digest(revisionsOf(repo)) }

func digest(revisions []change.Tip) string {
	h := sha256.New()
	for _, r := range revisions {
		fmt.Fprintf(h, "%s %s\n", r.Name, r.Commit)
	}
	return string(h.Sum(nil)[:16])
}

// Reach is how far the changes of a repository reach on a node.
type Reach uint8

// The states, the worst first.
const (
	Absent  Reach = iota // nothing of it is here
	Behind               // what is here is of other revisions than were asked for
	Partial              // older commits are left out, by the bound, because the remote lacks them, or because git could not read one
	Whole                // all commits of the revisions
)

// Reader begins a search of the index of a repository, and says how far the index reaches. revisions is
// the [Digest] of the revisions that the asker knows. The reader is nil if nothing is indexed. Otherwise
// the caller must close it.
func (k *Keeper) Reader(id catalog.RepoID, revisions string, req change.LogSearch) (*change.LogReader, Reach, error) {
	view := k.d.View()
	repo := view.Repo(id)
	if repo == nil || !k.d.Mirrors.Has(id) || k.rules(view).bound(repo.Name).Off() {
		return nil, Absent, nil // what is indexed goes soon
	}
	r, err := k.use(id).log.Reader(req)
	switch {
	case err != nil:
		return nil, Absent, err
	case len(r.Revisions) == 0:
		r.Close()
		return nil, Absent, nil
	case digest(r.Revisions) != revisions:
		return r, Behind, nil
	case !r.Whole:
		return r, Partial, nil
	}
	return r, Whole, nil
}

// Rest searches all commits of a repository, and reads from git those that are not indexed. It returns
// nil where it cannot.
func (k *Keeper) Rest(ctx context.Context, id catalog.RepoID, revisions string, req change.LogSearch) (*change.LogMatches, Reach) {
	if !k.d.Mirrors.Has(id) {
		return nil, Absent
	}
	all, err := k.withRest(ctx, id, revisions, req)
	switch {
	case err != nil || all == nil:
		if err != nil && ctx.Err() == nil {
			k.d.Log.Info("commits that are not indexed cannot be read", "repo", id, "err", err)
		}
		return nil, Absent
	case !all.Whole:
		return all, Partial
	}
	return all, Whole
}

// Paths returns the paths at which a file of an indexed revision of a repository, or of one of its
// ancestors, can match a query about files. Where the changes here do not tell, it returns all.
func (k *Keeper) Paths(ctx context.Context, repo *catalog.Repo, q query.Q) (*change.Paths, error) {
	if k.rules(k.d.View()).bound(repo.Name).Off() {
		return &change.Paths{All: true}, nil
	}
	paths, revisions, err := k.use(repo.ID).log.Paths(ctx, q)
	if err != nil || digest(revisions) != Digest(repo) {
		return &change.Paths{All: true}, err
	}
	return paths, nil
}

// use returns the changes of a repository, which then stay open for a while.
func (k *Keeper) use(id catalog.RepoID) *kept {
	e := k.of(id)
	k.mu.Lock()
	e.used = k.d.Now()
	k.mu.Unlock()
	return e
}

// withRest searches all commits of a repository, also those that the log lacks. It returns nil where
// this node does not know the revisions that the asker knows.
func (k *Keeper) withRest(ctx context.Context, id catalog.RepoID, revisions string, req change.LogSearch) (*change.LogMatches, error) {
	repo := k.d.View().Repo(id)
	if repo == nil || Digest(repo) != revisions {
		return nil, nil
	}
	select {
	case k.reading <- struct{}{}:
		defer func() { <-k.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := os.MkdirAll(filepath.Join(k.d.Dir, restDir), 0o700); err != nil {
		return nil, fmt.Errorf("read commits: %w", err)
	}
	dir, err := os.MkdirTemp(filepath.Join(k.d.Dir, restDir), "")
	if err != nil {
		return nil, fmt.Errorf("read commits: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return k.use(id).log.SearchAll(ctx, req, change.Rest{Mirror: k.d.Mirrors.Get(id), Revisions: revisionsOf(repo), Dir: dir})
}

// Off reports whether this node keeps no changes.
func (k *Keeper) Off() bool { return k.d.Bound.Off() }

// News finds the commits of a repository that are new since some earlier revisions. It returns nil
// while the changes here are not of the repository's revisions. The caller must close the result.
func (k *Keeper) News(repo *catalog.Repo, before []catalog.Revision) (*change.News, error) {
	if k.d.Bound.Off() || !k.d.Mirrors.Has(repo.ID) {
		return nil, nil
	}
	var commits []string
	for _, r := range before {
		commits = append(commits, r.Commit)
	}
	news, err := k.use(repo.ID).log.News(commits)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(news.Revisions, revisionsOf(repo)) {
		news.Close()
		return nil, nil
	}
	return news, nil
}

// Releases tells the first release with each commit, or the first tag where no name is one, until ctx
// ends.
func (k *Keeper) Releases(ctx context.Context, id catalog.RepoID, commits []change.CommitMatch) {
	if len(commits) == 0 || !k.d.Mirrors.Has(id) {
		return
	}
	mirror := k.d.Mirrors.Get(id)
	for i := range commits {
		first, err := mirror.FirstTag(ctx, commits[i].ID)
		if err != nil || ctx.Err() != nil {
			return // what is not known in time is not told
		}
		commits[i].FirstTag = cmp.Or(first.Whole, first.Release, first.Name)
	}
}

// Status is what the changes of this node cover.
type Status struct {
	Bound        string `json:"bound"`
	Excluded     int    `json:"excluded"`     // with a mirror here, and left out by a rule or because histories are off
	Repositories int    `json:"repositories"` // with a mirror and an index here
	Covered      int    `json:"covered"`      // of those, whose changes are up to date
	Cut          int    `json:"cut"`          // of those, whose older commits are left out: by the bound, or because the mirror lacks them
	Commits      int    `json:"commits"`
	Bytes        int64  `json:"bytes"` // on disk
}

// Status tells what the changes of this node cover, as far as Run has looked. To count reads the
// directory of mirrors, so it is as old as the pause between two looks, at most.
func (k *Keeper) Status() Status {
	k.counting.Lock()
	defer k.counting.Unlock()
	if k.counted.IsZero() || clock.Since(k.counted) >= k.d.Rest() {
		k.status, k.counted = k.count(), clock.Now()
	}
	return k.status
}

// count computes the status from the directory of mirrors.
func (k *Keeper) count() Status {
	out, view := Status{Bound: k.d.Bound.String()}, k.d.View()
	rules := k.rules(view)
	ids, _, _ := k.d.Mirrors.Names() // where none can be told, none is covered
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range ids {
		repo := view.Repo(id)
		if repo == nil || !repo.Indexed() {
			continue
		}
		if rules.bound(repo.Name).Off() {
			out.Excluded++
			continue
		}
		out.Repositories++
		c, ok := k.covered[id]
		if !ok {
			continue
		}
		out.Commits, out.Bytes = out.Commits+c.Commits, out.Bytes+c.Bytes
		if c.Cut {
			out.Cut++
		}
		if slices.Equal(c.Revisions, revisionsOf(repo)) {
			out.Covered++
		}
	}
	return out
}
