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

// Poller fetches the mirrors of this node and asks for an index job where
// something changed: at once where the host tells of a push, see Hear, else
// the sooner the later the last push was, and every reindexInterval at least. A
// poll that finds nothing leaves no trace in the log of the cluster. Two nodes that poll the same repository
// after a partition cost a fetch, nothing else.
type Poller struct {
	cluster Cluster
	remotes *remotes
	copies  *hold.Transfers
	options func() string                // key of the options of builds
	busy    func(id catalog.RepoID) bool // an attempt works on the repository here
	now     func() time.Time
	began   time.Time

	searched func(shard.FileID) time.Duration // how long this node has searched an index file

	mu    sync.Mutex // guards the fields below
	polls map[catalog.RepoID]poll
	heard map[string]*heard // by connection
	calm  calmness
	queue []candidate // to be looked at when a look ends, the first first
	anew  []candidate // to be indexed for another reason than a push, the first first
}

// mostLooks is the number of looks that one round puts off until another has ended. At
// one round a second and 3 ms of CPU a look, a seventh of a core is busy with them.
const mostLooks = 50

// mostAnew is the number of waiting index jobs up to which the poller asks for more for
// other settings or versions of files. A push waits behind as many at most.
const mostAnew = 128

// calmness spares looks at all repositories while the same ones, for the same
// options, are not due yet.
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

// poll is what is known of the last one of a repository.
type poll struct {
	at      time.Time // end of the last, or the time of the last index
	wanted  string    // key of what was wanted when an index was asked for last
	running bool
	begun   time.Time // when the one that runs began

	stamp    string    // of the last push, as the host told it
	due      bool      // the host told of a push since the last poll began
	hotUntil time.Time // until then the host may keep silent about further pushes
	changed  time.Time // when a poll found something new last
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
		heard:   map[string]*heard{},
	}
}

// Run polls until the context ends.
func (p *Poller) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		settings := p.cluster.View().File().Settings
		for _, id := range p.due(settings.MaxRepoIndexingJobs) {
			// One look after another, so that no look waits for the next round.
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

// due marks the repositories to poll now as running and returns them: no more
// than keep the number of running polls within the limit.
func (p *Poller) due(limit int) []catalog.RepoID {
	view, now := p.cluster.View(), p.now()
	wanted := wantedKeys{options: p.options(), view: view}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calm.holds(view, wanted.options, now) {
		return nil
	}

	// What another node polls becomes due here too, and stays so.
	next := now.Add(min(othersPause, view.File().Settings.ReindexInterval))
	var ready []candidate
	p.queue, p.anew = nil, nil
	for repo := range view.Repos() {
		if p.polls[repo.ID].running || repo.Orphaned() || !repo.Indexed() || repo.Unfetchable != "" {
			continue
		}

		key := wanted.of(repo)
		at := p.next(view, repo, key, now)
		if now.Before(at) {
			if at.Before(next) {
				next = at
			}
		} else if c := (candidate{repo, at, key}); p.mine(view, repo) && (p.polls[repo.ID].due || !rests(view, repo.ID, now)) {
			// What is indexed anew in any case is fetched by its job.
			if p.outdated(repo, key) {
				p.anew = append(p.anew, c)
			} else {
				ready = append(ready, c)
			}
		}
	}

	// Where not all can be polled, some go first.
	room := max(0, limit-p.clean(view))
	if len(ready) > room {
		p.order(ready)
		ready, p.queue, next = ready[:room], ready[room:min(len(ready), room+mostLooks)], now
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

// candidate is a repository that may be polled, since some time.
type candidate struct {
	repo   *catalog.Repo
	at     time.Time
	wanted string // key of what is wanted of it
}

// outdated reports whether a repository has to be indexed for other settings or versions
// of files, whatever its remote has, and no job was asked for that yet. The mutex is held.
func (p *Poller) outdated(repo *catalog.Repo, wanted string) bool {
	s := p.polls[repo.ID]
	return !s.due && wantedOf(repo.InputKey) != wanted && s.wanted != wanted
}

// begin marks a repository as running. The mutex is held.
func (p *Poller) begin(c candidate) {
	s := p.polls[c.repo.ID]
	s.running, s.begun, s.due = true, p.now(), false
	p.polls[c.repo.ID] = s
}

// another is the next repository of those that due had no room for, and false for none.
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

// askAnew asks for index jobs where other settings or versions of files want them, as
// many at a time as leave a push a short way.
func (p *Poller) askAnew(ctx context.Context) {
	room := mostAnew
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
	// What nobody was asked for is outdated at the next round too.
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

// order puts those first that wait longest. All that other settings or versions of
// files wait for are equal: of these the ones that this node searches most, then those
// that were pushed to last.
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

// clean forgets the repositories that have left, and counts the polls that
// run. The mutex is held.
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

// Polls is how many repositories this node fetches to see whether something is
// new, and which of them takes longest; began is the zero time where none runs.
// It may be called at any time.
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

// othersPause is the longest time between two looks at all repositories.
const othersPause = time.Second

// mine reports whether this node polls a repository: the first live holder of
// its mirror does.
func (p *Poller) mine(view *catalog.View, repo *catalog.Repo) bool {
	// By arithmetic alone all nodes choose the same one, and need not agree on it.
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

// pollTime bounds one poll; a clone that takes longer is a job's work.
const pollTime = 15 * time.Minute

// poll fetches one mirror, and asks for an index job where that is of use. A
// failure is asked for too: the job fails in the open, and is tried again with
// the patience of jobs.
func (p *Poller) poll(ctx context.Context, id catalog.RepoID) {
	wanted, changed, err := p.look(ctx, id)
	if ctx.Err() != nil {
		return
	}

	ask := changed || err != nil
	if ask {
		_, perr := p.cluster.Propose(ctx, &catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: catalog.RepoSubject(id)})

		// What nobody was asked for is found again by the next poll.
		ask = perr == nil || refused(perr)
	}
	p.note(id, wanted, ask, changed)
}

// note remembers how a poll ended.
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

	// A job that works on it finds out by itself.
	if repo == nil || p.busy(id) {
		return "", false, nil
	}
	wanted = wantedKey(p.options(), view, repo)

	// A poll is not worth the time of a job: one that takes long is left to that.
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

	// How many are left out is told to people, so a change of that is one, too.
	changed = inputKey(wanted, names) != repo.InputKey || uint32(leftOut) != repo.LeftOut
	return wanted, changed || p.copies.Lost(view, repo), nil
}
