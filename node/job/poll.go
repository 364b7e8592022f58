package job

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/node/place"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/git"
)

// Poller fetches the mirrors of this node and enqueues index jobs for changed ones. It polls a
// repository at once if the host reports a push, see Hear. Otherwise it polls recently pushed ones
// more often, and each at least every reindexInterval. A poll without news enters nothing in the
// cluster's log. During a partition two nodes may poll a repository, which only costs a fetch.
type Poller struct {
	cluster Cluster
	remotes *remotes
	copies  *hold.Transfers
	options func() string                // key of the build options
	busy    func(id catalog.RepoID) bool // whether an attempt works on the repository here
	now     func() time.Time
	began   time.Time

	searched func(shard.FileID) time.Duration // for how long this node has searched an index file

	mu      sync.Mutex // guards the fields below
	polls   map[catalog.RepoID]poll
	signals map[string]*connectionSignal // by connection
	quiet   quietTime
	queue   []candidate // to poll when a running poll ends, in order
	reindex []candidate // to index because settings or file versions have changed, in order
}

// maxQueue limits how many polls one round queues. With one round a second and 3 ms of CPU per poll,
// polling takes a seventh of a core.
const maxQueue = 50

// maxAnewJobs: while more index jobs wait, the poller enqueues none for changed settings or file
// versions, so that a push does not wait behind them.
const maxAnewJobs = 128

// quietTime says until when no repository can be due, so that the poller need not look at all of
// them.
type quietTime struct {
	view    *catalog.View
	options string
	until   time.Time // counts only while the repositories are as in view
	rest    time.Time // counts whatever changes
}

// nothingDue reports whether no repository can be due yet.
func (c *quietTime) nothingDue(view *catalog.View, options string, now time.Time) bool {
	if c.view == nil || c.options != options {
		return false
	}
	return now.Before(c.rest) || now.Before(c.until) && c.view.SameRepos(view)
}

// poll is the state of polling a repository.
type poll struct {
	at      time.Time // end of the last poll, or time of the last index
	wanted  string    // wantedKey when an index job was last enqueued
	running bool
	begun   time.Time // start of the running poll

	stamp    string    // stampOf the last push that the host reported
	due      bool      // the host has reported a push since the last poll began
	hotUntil time.Time // until then the host may not report further pushes
	changed  time.Time // when a poll last found something new
}

func newPoller(cluster Cluster, from *remotes, copies *hold.Transfers, options func() string, busy func(catalog.RepoID) bool, now func() time.Time) *Poller {
	return &Poller{
		cluster: cluster,
		remotes: from,
		copies:  copies,
		options: options,
		busy:    busy,
		now:     now,
		began:   now(),
		polls:   map[catalog.RepoID]poll{},
		signals: map[string]*connectionSignal{},
	}
}

// Run polls remotes for new commits until ctx ends.
func (p *Poller) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		settings := p.cluster.View().File().Settings
		for _, id := range p.duePolls(settings.MaxRepoIndexingJobs) {
			// Continue with the next repository, without waiting for the next round.
			wg.Go(func() {
				for more := true; more && ctx.Err() == nil; id, more = p.nextQueued() {
					p.pollRepo(ctx, id)
				}
			})
		}
		p.enqueueReindexes(ctx)
		if !clock.Wait(ctx, min(max(settings.ReindexRepoPollingInterval, 10*time.Millisecond), time.Minute)) {
			return nil
		}
	}
}

// duePolls returns the repositories to poll now, and marks them as running. At most limit polls run.
func (p *Poller) duePolls(limit int) []catalog.RepoID {
	view, now := p.cluster.View(), p.now()
	wanted := wantedKeys{options: p.options(), view: view}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quiet.nothingDue(view, wanted.options, now) {
		return nil
	}

	// next is when to look at all repositories again. A repository that another node polls stays due
	// here, so its time does not count.
	next := now.Add(min(othersPause, view.File().Settings.ReindexInterval))
	var ready []candidate
	p.queue, p.reindex = nil, nil
	for repo := range view.Repos() {
		if p.polls[repo.ID].running || repo.Orphaned() || !repo.Indexed() || repo.Unfetchable != "" {
			continue
		}

		key := wanted.keyOf(repo)
		at := p.nextPoll(view, repo, key, now)
		if now.Before(at) {
			if at.Before(next) {
				next = at
			}
			continue
		}
		if !p.pollsHere(view, repo) || !p.polls[repo.ID].due && waitsLong(view, repo.ID, now) {
			continue
		}

		// An outdated repository needs no poll, because its index job will fetch it.
		c := candidate{repo, at, key}
		if p.outdated(repo, key) {
			p.reindex = append(p.reindex, c)
		} else {
			ready = append(ready, c)
		}
	}

	// If too many repositories are due, queue the less urgent, and look again in the next round.
	room := max(0, limit-p.forgetGone(view))
	if len(ready) > room {
		p.sortByUrgency(ready)
		ready, p.queue = ready[:room], ready[room:min(len(ready), room+maxQueue)]
		next = now
	}
	p.sortByUrgency(p.reindex)
	if len(p.reindex) > 0 {
		next = now
	}

	var due []catalog.RepoID
	for _, c := range ready {
		p.markRunning(c)
		due = append(due, c.repo.ID)
	}

	p.quiet = quietTime{view: view, options: wanted.options, until: next}
	if next.After(now) {
		p.quiet.rest = now.Add(hold.Rest(view.RepoCount()))
	}
	return due
}

// candidate is a repository that is due.
type candidate struct {
	repo   *catalog.Repo
	at     time.Time // since when it is due
	wanted string    // its wantedKey
}

// outdated reports whether a repository must be indexed for changed settings or file versions, and
// no job was enqueued for that yet. The caller holds the mutex.
func (p *Poller) outdated(repo *catalog.Repo, wanted string) bool {
	s := p.polls[repo.ID]
	return !s.due && wantedPart(repo.InputKey) != wanted && s.wanted != wanted
}

// markRunning marks a repository as running. The caller holds the mutex.
func (p *Poller) markRunning(c candidate) {
	s := p.polls[c.repo.ID]
	s.running, s.begun, s.due = true, p.now(), false
	p.polls[c.repo.ID] = s
}

// nextQueued takes the next repository from the queue, and marks it as running; false if none is left.
func (p *Poller) nextQueued() (catalog.RepoID, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) > 0 {
		c := p.queue[0]
		p.queue = p.queue[1:]
		if !p.polls[c.repo.ID].running {
			p.markRunning(c)
			return c.repo.ID, true
		}
	}
	return 0, false
}

// enqueueReindexes enqueues index jobs for changed settings or file versions, while fewer than
// maxAnewJobs wait.
func (p *Poller) enqueueReindexes(ctx context.Context) {
	room := maxAnewJobs
	for range p.cluster.View().JobsOfKind(catalog.JobIndex, catalog.JobWaiting) {
		if room--; room == 0 {
			return
		}
	}

	p.mu.Lock()
	some := p.reindex[:min(room, len(p.reindex))]
	p.reindex = p.reindex[len(some):]
	p.mu.Unlock()
	if len(some) == 0 {
		return
	}

	cmds := make([]catalog.Command, len(some))
	for i, c := range some {
		cmds[i] = &catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: catalog.RepoSubject(c.repo.ID)}
	}
	// If the proposal fails, the next round tries again.
	if _, err := p.cluster.Propose(ctx, cmds...); err != nil && !refused(err) {
		return
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range some {
		s := p.polls[c.repo.ID]
		s.wanted = c.wanted
		p.polls[c.repo.ID] = s
	}
}

// sortByUrgency sorts candidates: the longest waiting first, then the most searched, then those with
// the newest push.
func (p *Poller) sortByUrgency(ready []candidate) {
	searchTime := func(r *catalog.Repo) (most time.Duration) {
		for _, s := range r.Shards {
			most = max(most, p.searched(hold.PartOf(r.ID, s).Shard))
		}
		return most
	}

	slices.SortFunc(ready, func(a, b candidate) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(searchTime(b.repo), searchTime(a.repo)), b.repo.PushedAt.Compare(a.repo.PushedAt))
	})
}

// forgetGone forgets repositories that left the catalog, and counts the running polls. The caller
// holds the mutex.
func (p *Poller) forgetGone(view *catalog.View) (running int) {
	for id, s := range p.polls {
		if s.running {
			running++
		} else if view.Repo(id) == nil {
			delete(p.polls, id)
		}
	}
	return running
}

// Polls returns how many polls are running, and which one runs for longest; began is zero if there
// is none. It is safe for concurrent use.
func (p *Poller) Polls() (running int, longest catalog.RepoID, began time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, s := range p.polls {
		if !s.running {
			continue
		}
		if running++; began.IsZero() || s.begun.Before(began) {
			longest, began = id, s.begun
		}
	}
	return running, longest, began
}

// othersPause is the longest pause between two looks at all repositories.
const othersPause = time.Second

// pollsHere reports whether this node should poll a repository. All nodes compute the same node: the
// live holder of the mirror with the best score.
func (p *Poller) pollsHere(view *catalog.View, repo *catalog.Repo) bool {
	best, bestScore := "", 0.0
	for _, id := range view.Holders(catalog.MirrorKey(repo.ID)) {
		if !p.cluster.Alive(id) {
			continue
		}
		if s := place.Score(place.GroupOf(repo.ID), place.Member{ID: id}); best == "" || s > bestScore {
			best, bestScore = id, s
		}
	}
	return best == p.cluster.Self()
}

// pollTime is the time limit of a poll; a longer fetch is left to a job.
const pollTime = 15 * time.Minute

// pollRepo fetches a mirror, and enqueues an index job if something is new. It also does so after a
// failure: the job then shows the failure, and is retried with back-off.
func (p *Poller) pollRepo(ctx context.Context, id catalog.RepoID) {
	wanted, changed, err := p.checkForNews(ctx, id)
	if ctx.Err() != nil {
		return
	}

	enqueued := false
	if changed || err != nil {
		// If the proposal fails, the next poll finds the change again.
		_, perr := p.cluster.Propose(ctx, &catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: catalog.RepoSubject(id)})
		enqueued = perr == nil || refused(perr)
	}
	p.recordPoll(id, wanted, enqueued, changed)
}

// recordPoll records the result of a poll. enqueued means that it has enqueued an index job.
func (p *Poller) recordPoll(id catalog.RepoID, wanted string, enqueued, changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.polls[id]
	s.running, s.at = false, p.now()
	if enqueued {
		s.wanted = wanted
	}
	if changed {
		s.changed = s.at
	}
	p.polls[id] = s
}

// checkForNews fetches the mirror of a repository. changed reports whether the repository should be
// indexed again; wanted is its wantedKey.
func (p *Poller) checkForNews(ctx context.Context, id catalog.RepoID) (wanted string, changed bool, err error) {
	view := p.cluster.View()
	repo := view.Repo(id)

	// A running job fetches the mirror anyway.
	if repo == nil || p.busy(id) {
		return "", false, nil
	}
	wanted = wantedKey(p.options(), view, repo)

	// Limit the time: a long fetch is left to a job.
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	mirror, _, err := p.remotes.fetchMirror(ctx, repo, git.FetchOptions{Timeout: pollTime})
	if err != nil {
		return wanted, false, err
	}

	revs, leftOut, err := p.remotes.revisionsToIndex(ctx, mirror, repo)
	if err != nil {
		return wanted, false, err
	}

	var names []catalog.Revision
	for _, rev := range revs {
		names = append(names, catalog.Revision{Name: rev.Name, Commit: rev.Commit})
	}

	// A changed number of left-out revisions counts, too, because pages show it.
	changed = inputKey(wanted, names) != repo.InputKey || uint32(leftOut) != repo.LeftOut
	return wanted, changed || p.copies.AnyFileLost(view, repo), nil
}
