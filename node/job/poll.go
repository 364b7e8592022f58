package job

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/place"
	"github.com/shoalsearch/shoal/shard/git"
)

// Poller fetches the mirrors of this node every reindexInterval and asks for
// an index job where something changed. A poll that finds nothing leaves no
// trace in the log of the cluster. Two nodes that poll the same repository
// after a partition cost a fetch, nothing else.
type Poller struct {
	r *Runner

	mu    sync.Mutex // guards the fields below
	polls map[catalog.RepoID]poll
	calm  calmness
}

// calmness spares looks at all repositories while the same ones, for the same
// options, are not due yet.
type calmness struct {
	view    *catalog.View
	options string
	until   time.Time
}

// holds tells that nothing can be due yet.
func (c *calmness) holds(view *catalog.View, options string, now time.Time) bool {
	return c.view != nil && c.view.SameRepos(view) && c.options == options && now.Before(c.until)
}

// poll is what is known of the last one of a repository.
type poll struct {
	at      time.Time // end of the last, or the time of the last index
	failed  int       // in a row
	err     string
	wish    string // of the index that was asked for last
	running bool
}

// NewPoller returns a Poller that uses the mirrors and credentials of r.
func NewPoller(r *Runner) *Poller {
	return &Poller{r: r, polls: map[catalog.RepoID]poll{}}
}

// Run polls until the context ends.
func (p *Poller) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		settings := p.r.opt.Cluster.View().File().Settings
		for _, id := range p.due(settings.MaxRepoIndexingJobs) {
			wg.Go(func() { p.poll(ctx, id) })
		}
		if !sleep(ctx, min(max(settings.ReindexRepoPollingInterval, 10*time.Millisecond), time.Minute)) {
			return nil
		}
	}
}

// due marks the repositories to poll now as running and returns them.
func (p *Poller) due(limit int) []catalog.RepoID {
	view, now := p.r.opt.Cluster.View(), p.r.opt.Now()
	wishes := wishes{options: p.r.optionsKey(), view: view}
	interval := view.File().Settings.ReindexInterval
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calm.holds(view, wishes.options, now) {
		return nil
	}
	running := 0
	for id, s := range p.polls {
		if s.running {
			running++
		} else if r := view.Repo(id); r == nil {
			delete(p.polls, id)
		}
	}
	// What another node polls becomes due here too, and stays so.
	next := now.Add(min(othersPause, interval))
	var due []catalog.RepoID
	for repo := range view.Repos() {
		if running+len(due) >= limit {
			next = now
			break
		}
		s := p.polls[repo.ID]
		if s.running || repo.Orphaned() || !repo.Indexed() {
			continue
		}
		last := repo.IndexedAt
		if s.at.After(last) {
			last = s.at
		}
		wish := wishes.of(repo)
		if at := last.Add(spreadOf(repo.ID, interval)); now.Before(at) && (wishOf(repo.InputKey) == wish || s.wish == wish) {
			if at.Before(next) {
				next = at
			}
			continue
		}
		if !p.mine(view, repo) {
			continue
		}
		s.running = true
		p.polls[repo.ID] = s
		due = append(due, repo.ID)
	}
	p.calm = calmness{view, wishes.options, next}
	return due
}

// othersPause is the longest time between two looks at all repositories.
const othersPause = time.Second

// spreadOf shortens the interval by up to a tenth, by repository, so that
// repositories that were added together are not polled together for ever.
func spreadOf(id catalog.RepoID, interval time.Duration) time.Duration {
	return interval - time.Duration(uint64(interval/10)*place.GroupOf(id)/place.Groups)
}

// mine tells whether this node polls a repository: the first live holder of
// its mirror does.
func (p *Poller) mine(view *catalog.View, repo *catalog.Repo) bool {
	c := p.r.opt.Cluster
	best, bestScore := "", 0.0
	for _, id := range view.Holders(catalog.MirrorKey(repo.ID)) {
		if !c.Alive(id) {
			continue
		}
		if s := place.Score(place.GroupOf(repo.ID), place.Member{ID: id}); best == "" || s > bestScore {
			best, bestScore = id, s
		}
	}
	return best == c.Self()
}

// poll fetches one mirror.
func (p *Poller) poll(ctx context.Context, id catalog.RepoID) {
	r := p.r
	wish, changed, err := p.look(ctx, id)
	if ctx.Err() != nil {
		return
	}
	ask := changed || err != nil
	if ask {
		// A failure is asked for too: the job fails in the open, and is tried
		// again with the patience of jobs.
		_, perr := r.opt.Cluster.Propose(ctx, &catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: catalog.RepoSubject(id)})
		if perr != nil && !refused(perr) {
			ask = false
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.polls[id]
	s.running, s.at, s.err = false, r.opt.Now(), ""
	if ask {
		s.wish = wish
	}
	if err != nil {
		s.err, s.failed = short(err.Error()), s.failed+1
	} else {
		s.failed = 0
	}
	p.polls[id] = s
}

// look tells whether a repository should be indexed again.
func (p *Poller) look(ctx context.Context, id catalog.RepoID) (wish string, changed bool, err error) {
	r := p.r
	view := r.opt.Cluster.View()
	repo := view.Repo(id)
	if repo == nil || r.busy(id) {
		return "", false, nil
	}
	wish = wishKey(r.optionsKey(), view, repo)
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	cred, err := r.credential(ctx, repo)
	if err != nil {
		return wish, false, err
	}
	m := r.opt.Mirrors.Get(id)
	fetched, err := m.Fetch(ctx, git.Remote{URL: repo.CloneURL, Credential: cred}, git.FetchOptions{Timeout: pollTime})
	if err != nil {
		return wish, false, err
	}
	if fetched.Changed {
		r.opt.Mirrors.changed(id)
	}
	revs, err := r.revisions(ctx, m, repo)
	if err != nil && !errors.Is(err, git.ErrEmpty) {
		return wish, false, err
	}
	var names []catalog.Revision
	for _, rev := range revs {
		names = append(names, catalog.Revision{Name: rev.Name, Commit: rev.Commit})
	}
	return wish, inputKey(wish, names) != repo.InputKey || r.lost(view, repo), nil
}

// pollTime bounds one poll; a clone that takes longer is a job's work.
const pollTime = 15 * time.Minute
