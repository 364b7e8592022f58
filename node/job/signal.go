package job

import (
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/place"
)

// Times between two polls of a repository. If its host reports pushes, only one check a day is
// needed.
const (
	busyPause   = 45 * time.Second       // pause while a repository is being pushed to
	localShare  = 100 * time.Millisecond // pause for each repository between two polls of a directory
	checkTime   = 24 * time.Hour         // pause if its host reports pushes
	clockSlack  = 5 * time.Minute        // possible error of a host's clock
	reportGrace = 90 * time.Second       // possible delay of a host's report
)

// connectionSignal is the last news about pushes to a connection.
type connectionSignal struct {
	signal Signal    // the last one, without its marks
	at     time.Time // time of signal
	hookAt time.Time // last call of a webhook
}

// isFresh reports whether the host still reports pushes.
func (h *connectionSignal) isFresh(now time.Time) bool {
	return h.signal.Problem == "" && now.Before(h.at.Add(2*h.signal.Every+reportGrace))
}

// FollowingState tells how this node learns of pushes to the repositories of a connection.
type FollowingState struct {
	Signal  string        // name of the host's API; "": it has none
	Every   time.Duration // between two looks
	LastAt  time.Time     // time of the last look; zero: none
	Problem string        // why it failed; "": it did not
	Live    bool          // pushes are found this way now; otherwise every repository is polled
	HookAt  time.Time     // last call of a webhook since the start of this node
}

// Following returns how the poller learns of pushes to the repositories of a connection.
func (p *Poller) Following(connection string) FollowingState {
	p.mu.Lock()
	defer p.mu.Unlock()

	h := p.signals[connection]

	// No signal has come since the start of this node.
	if h == nil {
		return FollowingState{}
	}

	return FollowingState{
		Signal:  h.signal.Name,
		Every:   h.signal.Every,
		LastAt:  h.at,
		Problem: h.signal.Problem,
		HookAt:  h.hookAt,
		Live:    !h.at.IsZero() && h.isFresh(p.now()),
	}
}

// lastLook returns when the last look at a connection began whose signal has reached this node;
// zero: none. A look at another definition of the connection does not count.
func (p *Poller) lastLook(connection, hash string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.signals[connection]
	if h == nil || h.signal.Hash != hash {
		return time.Time{}
	}
	return h.signal.Since
}

// Hear receives a signal from another node or this one. It is safe for concurrent use.
func (p *Poller) Hear(s *Signal) {
	view, now := p.cluster.View(), p.now()
	p.mu.Lock()
	defer p.mu.Unlock()

	h := p.signals[s.Connection]
	if h == nil {
		h = &connectionSignal{}
		p.signals[s.Connection] = h
	}

	// A webhook call only tells that there was a push.
	if s.Hook {
		h.hookAt = now
		return
	}

	h.signal, h.at = *s, now

	// Store only marks of known repositories.
	h.signal.Marks = nil
	for _, m := range s.Marks {
		if repo := view.RepoByExternalID(m.ExternalID); repo != nil {
			p.recordMark(repo, m, s.Lag, now)
		}
	}

	// Look at all repositories again: some may be due now.
	p.quiet = quietTime{}
}

// recordMark makes a repository due if its mark is new. The first mark after a start counts as new
// unless the index includes it. The caller holds the mutex.
func (p *Poller) recordMark(repo *catalog.Repo, m host.Mark, lag time.Duration, now time.Time) {
	s, stamp := p.polls[repo.ID], markText(m)
	if s.stamp == stamp {
		return
	}
	if s.stamp != "" || !indexIncludes(repo, m, now) {
		s.due, s.hotUntil = true, now.Add(lag)
	}
	s.stamp = stamp
	p.polls[repo.ID] = s
}

// markText returns a mark as text.
func markText(m host.Mark) string {
	if len(m.Commits) > 0 {
		return strings.Join(m.Commits, " ")
	}
	return m.At.UTC().Format(time.RFC3339Nano)
}

// indexIncludes reports whether the index of a repository includes the push that a mark reports.
func indexIncludes(repo *catalog.Repo, m host.Mark, now time.Time) bool {
	if len(m.Commits) == 0 {
		// The host's clock may be wrong, so a mark near the index time does not count as included.
		// Nor does any mark if the cluster's clock was ahead then.
		return m.At.Add(clockSlack).Before(repo.IndexedAt) && !repo.IndexedAt.After(now)
	}
	return slices.ContainsFunc(repo.Revisions, func(r catalog.Revision) bool { return slices.Contains(m.Commits, r.Commit) })
}

// reportsPushes reports whether a host would report a push to a repository. For reportGrace after a
// start, it expects that of each host that can. The caller holds the mutex.
func (p *Poller) reportsPushes(view *catalog.View, repo *catalog.Repo, now time.Time) bool {
	return slices.ContainsFunc(repo.Connections, func(link catalog.RepoConnection) bool {
		h := p.signals[link.Name]
		if h == nil {
			row, tells := host.SignalOf(view.File().Connection(link.Name))
			return tells && row.Sure && now.Before(p.began.Add(reportGrace)) && !strings.HasPrefix(link.Target, "repos/")
		}
		return h.signal.Sure && h.isFresh(now) && slices.Contains(h.signal.Targets, link.Target)
	})
}

// nextPoll returns when to poll a repository: the zero time means at once, if its host reported a
// push or its index is outdated. Otherwise it is some time after the last poll or index. The caller
// holds the mutex.
func (p *Poller) nextPoll(view *catalog.View, repo *catalog.Repo, wanted string, now time.Time) time.Time {
	s := p.polls[repo.ID]
	if s.due || p.outdated(repo, wanted) {
		return time.Time{}
	}

	// The cluster's clock, which IndexedAt is from, may be ahead of this node's.
	last := repo.IndexedAt
	if last.After(now) {
		last = p.began
	}
	if s.at.After(last) {
		last = s.at
	}
	longest := view.File().Settings.ReindexInterval
	if repo.Local() {
		longest = min(longest, localPause(view.RepoCount()))
	}
	switch {
	case now.Before(s.hotUntil):
		return last.Add(min(busyPause, longest))
	case p.reportsPushes(view, repo, now):
		// Spread the daily checks over the day, also after a start.
		if first := p.began.Add(-checkTime + repoOffset(repo.ID, checkTime)); first.After(last) {
			last = first
		}
		return last.Add(max(checkTime, longest))
	}
	return last.Add(adaptivePause(repo, s, last, longest))
}

// localPause returns the longest pause after a poll of a directory of this machine. Such a poll asks
// no host and takes 3 ms of CPU, so all of them take at most 3 % of a core.
func localPause(repos int) time.Duration {
	return max(busyPause, time.Duration(repos)*localShare)
}

// adaptivePause returns the pause after a poll of a repository whose host reports nothing: half of
// the time between the last push and that poll. Pushes tend to come in groups.
func adaptivePause(repo *catalog.Repo, s poll, last time.Time, longest time.Duration) time.Duration {
	pushed := repo.PushedAt
	if s.changed.After(pushed) || pushed.After(last) {
		pushed = s.changed // a commit may have any date
	}
	if rest := max(last.Sub(pushed)/2, busyPause); rest < longest {
		return rest
	}

	// Spread repositories that were added together.
	return longest - repoOffset(repo.ID, longest/10)
}

// repoOffset returns a duration between 0 and d that depends only on the repository, to spread work
// over time.
func repoOffset(id catalog.RepoID, d time.Duration) time.Duration {
	return time.Duration(uint64(d) / place.Groups * place.GroupOf(id))
}
