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

// Poller fetches the mirrors of this node and enqueues index jobs for changed ones. It polls at
// once if the host reports a push, see Hear. Otherwise it polls the sooner the more recent the last
// push was, but at least every reindexInterval. A poll without news enters nothing in the cluster's
// log. If two nodes poll a repository after a partition, that only costs a fetch.
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
	calm    calmness
	queue   []candidate // to poll when a running poll ends, in order
	anew    []candidate // to index for a reason other than a push, in order
}

// maxQueue limits how many polls one round queues. At one round a second and 3 ms of CPU per poll,
// they take a seventh of a core.
const maxQueue = 50

// maxAnewJobs is the number of waiting index jobs up to which the poller enqueues more for changed
// settings or file versions. So only so many jobs delay a push.
const maxAnewJobs = 128

// calmness avoids looking at all repositories while the same repositories, with the same options,
// cannot be due.
type calmness struct {
	view    *catalog.View
	options string
	until   time.Time // while the repositories are the same
	rest    time.Time // whatever changes
}

// holds reports whether nothing can be due yet.
func (c *calmness) holds(view *catalog.View, options string, now time.Time) bool {
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

	stamp    string    // of the last push, as reported by the host
	due      bool      // the host has reported a push since the last poll began
	hotUntil time.Time // until then the host may fail to report further pushes
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
		for _, id := range p.due(settings.MaxRepoIndexingJobs) {
			// Continue with the next repository, without waiting for the next round.
			wg.Go(func() {
				for more := true; more && ctx.Err() == nil; id, more = p.another() {
					p.poll(ctx, id)
				}
			})
		}
		p.askAnew(ctx)
		if !clock.Wait(ctx, min(max(settings.ReindexRepoPollingInterval, 10*time.Millisecond), time.Minute)) {
			return nil
		}
	}
}

// due returns the repositories to poll now, marked as running. limit bounds the running polls.
func (p *Poller) due(limit int) []catalog.RepoID {
	view, now := p.cluster.View(), p.now()
	wanted := wantedKeys{options: p.options(), view: view}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calm.holds(view, wanted.options, now) {
		return nil
	}

	// Repositories that other nodes poll become due here too, and stay due.
	next := now.Add(min(othersPause, view.File().Settings.ReindexInterval))
	var ready []candidate
	p.queue, p.anew = nil, nil
	for repo := range view.Repos() {
		if p.polls[repo.ID].running || repo.Orphaned() || !repo.Indexed() || repo.Unfetchable != "" {
			continue
		}

		key := wanted.keyOf(repo)
		at := p.next(view, repo, key, now)
		if now.Before(at) {
			if at.Before(next) {
				next = at
			}
		} else if c := (candidate{repo, at, key}); p.mine(view, repo) && (p.polls[repo.ID].due || !rests(view, repo.ID, now)) {
			// If it is outdated, its index job will fetch it.
			if p.outdated(repo, key) {
				p.anew = append(p.anew, c)
			} else {
				ready = append(ready, c)
			}
		}
	}

	// If there are too many, sort them.
	room := max(0, limit-p.clean(view))
	if len(ready) > room {
		p.order(ready)
		ready, p.queue, next = ready[:room], ready[room:min(len(ready), room+maxQueue)], now
	}
	if p.order(p.anew); len(p.anew) > 0 {
		next = now
	}

	var due []catalog.RepoID
	for _, c := range ready {
		p.begin(c)
		due = append(due, c.repo.ID)
	}

	// A longer queue goes on at once.
	p.calm = calmness{view: view, options: wanted.options, until: next}
	if next.After(now) {
		p.calm.rest = now.Add(hold.Rest(view.RepoCount()))
	}
	return due
}

// candidate is a repository that may be polled, since the time at.
type candidate struct {
	repo   *catalog.Repo
	at     time.Time
	wanted string // its wantedKey
}

// outdated reports whether a repository must be indexed for changed settings or file versions, and
// no job was enqueued for that yet. The caller holds the mutex.
func (p *Poller) outdated(repo *catalog.Repo, wanted string) bool {
	s := p.polls[repo.ID]
	return !s.due && wantedOf(repo.InputKey) != wanted && s.wanted != wanted
}

// begin marks a repository as running. The caller holds the mutex.
func (p *Poller) begin(c candidate) {
	s := p.polls[c.repo.ID]
	s.running, s.begun, s.due = true, p.now(), false
	p.polls[c.repo.ID] = s
}

// another returns the next queued repository, or false.
func (p *Poller) another() (catalog.RepoID, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) > 0 {
		c := p.queue[0]
		p.queue = p.queue[1:]
		if !p.polls[c.repo.ID].running {
			p.begin(c)
			return c.repo.ID, true
		}
	}
	return 0, false
}

// askAnew enqueues index jobs for changed settings or file versions. It keeps the queue short, so
// that a push does not wait long.
func (p *Poller) askAnew(ctx context.Context) {
	room := maxAnewJobs
	for range p.cluster.View().JobsOfKind(catalog.JobIndex, catalog.JobWaiting) {
		if room--; room == 0 {
			return
		}
	}

	p.mu.Lock()
	some := p.anew[:min(room, len(p.anew))]
	p.anew = p.anew[len(some):]
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

// order sorts candidates: the longest waiting first. Those that wait for changed settings are equal
// in this; of these the most searched go first, then those with the newest push.
func (p *Poller) order(ready []candidate) {
	heat := func(r *catalog.Repo) (most time.Duration) {
		for _, s := range r.Shards {
			most = max(most, p.searched(hold.PartOf(r.ID, s).Shard))
		}
		return most
	}

	slices.SortFunc(ready, func(a, b candidate) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(heat(b.repo), heat(a.repo)), b.repo.PushedAt.Compare(a.repo.PushedAt))
	})
}

// clean forgets repositories that left the catalog, and counts the running polls. The caller holds
// the mutex.
func (p *Poller) clean(view *catalog.View) (running int) {
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

// mine reports whether this node polls a repository: the live holder of its mirror with the best
// score does.
func (p *Poller) mine(view *catalog.View, repo *catalog.Repo) bool {
	// All nodes compute the same result, without agreeing on it.
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

// poll fetches a mirror, and enqueues an index job if something is new. It also does so after a
// failure: the job then shows the failure, and is retried with back-off.
func (p *Poller) poll(ctx context.Context, id catalog.RepoID) {
	wanted, changed, err := p.look(ctx, id)
	if ctx.Err() != nil {
		return
	}

	ask := changed || err != nil
	if ask {
		_, perr := p.cluster.Propose(ctx, &catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: catalog.RepoSubject(id)})

		// If the proposal fails, the next poll finds it again.
		ask = perr == nil || refused(perr)
	}
	p.note(id, wanted, ask, changed)
}

// note records the result of a poll.
func (p *Poller) note(id catalog.RepoID, wanted string, asked, changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.polls[id]
	s.running, s.at = false, p.now()
	if asked {
		s.wanted = wanted
	}
	if changed {
		s.changed = s.at
	}
	p.polls[id] = s
}

// look reports whether a repository should be indexed again.
func (p *Poller) look(ctx context.Context, id catalog.RepoID) (wanted string, changed bool, err error) {
	view := p.cluster.View()
	repo := view.Repo(id)

	// A running job finds it anyway.
	if repo == nil || p.busy(id) {
		return "", false, nil
	}
	wanted = wantedKey(p.options(), view, repo)

	// Limit the time: a long fetch is left to a job.
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	mirror, _, err := p.remotes.fetch(ctx, repo, git.FetchOptions{Timeout: pollTime})
	if err != nil {
		return wanted, false, err
	}

	revs, leftOut, err := p.remotes.revisions(ctx, mirror, repo)
	if err != nil {
		return wanted, false, err
	}

	var names []catalog.Revision
	for _, rev := range revs {
		names = append(names, catalog.Revision{Name: rev.Name, Commit: rev.Commit})
	}

	// A changed number of left-out revisions counts, too: people see it.
	changed = inputKey(wanted, names) != repo.InputKey || uint32(leftOut) != repo.LeftOut
	return wanted, changed || p.copies.Lost(view, repo), nil
}
