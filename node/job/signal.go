package job

import (
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/place"
)

// The times between two polls of a repository. A host that tells of pushes
// spares all but one a day, which checks what it tells.
const (
	busiest   = 45 * time.Second // of one that is being pushed to
	checkTime = 24 * time.Hour   // of one whose host tells of pushes
	slack     = 5 * time.Minute  // by which the clock of a host may be off
	grace     = 90 * time.Second // that a host may be late with its word
)

// heard is what this node was told of the pushes of a connection.
type heard struct {
	signal Signal    // the last one; without marks
	at     time.Time // of it
	hookAt time.Time // when a webhook called last
}

// fresh reports whether a host still tells.
func (h *heard) fresh(now time.Time) bool {
	return h.signal.Problem == "" && now.Before(h.at.Add(2*h.signal.Every+grace))
}

// FollowingState is how this node learns of pushes to the repositories of a
// connection.
type FollowingState struct {
	Signal  string        // what the host is asked for; empty where it tells nothing
	Every   time.Duration // between two looks
	LastAt  time.Time     // of the last look; zero before the first
	Problem string        // why it failed; empty where it did not
	Live    bool          // pushes are found by it now; else every repository is fetched from time to time
	HookAt  time.Time     // when a webhook called last, since this node was started
}

// Following tells how pushes to the repositories of a connection are found.
func (p *Poller) Following(connection string) FollowingState {
	p.mu.Lock()
	defer p.mu.Unlock()

	h := p.heard[connection]

	// Nothing was told since this node started.
	if h == nil {
		return FollowingState{}
	}

	return FollowingState{
		Signal:  h.signal.Name,
		Every:   h.signal.Every,
		LastAt:  h.at,
		Problem: h.signal.Problem,
		HookAt:  h.hookAt,
		Live:    !h.at.IsZero() && h.fresh(p.now()),
	}
}

// lookedAt is when the last look began that this node was told of, for a connection
// of a definition; zero for none. What it found this node knows.
func (p *Poller) lookedAt(connection, hash string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.heard[connection]
	if h == nil || h.signal.Hash != hash {
		return time.Time{}
	}
	return h.signal.Since
}

// Hear takes what another node, or this one, learned from a host. It may be
// called from any goroutine.
func (p *Poller) Hear(s *Signal) {
	view, now := p.cluster.View(), p.now()
	p.mu.Lock()
	defer p.mu.Unlock()

	h := p.heard[s.Connection]
	if h == nil {
		h = &heard{}
		p.heard[s.Connection] = h
	}

	// A webhook says that a push came, by calling; what was pushed its job finds out.
	if s.Hook {
		h.hookAt = now
		return
	}

	h.signal, h.at = *s, now

	// Marks are taken apart here: only the repositories that this node knows count.
	h.signal.Marks = nil
	for _, m := range s.Marks {
		if repo := view.RepoByExternalID(m.ExternalID); repo != nil {
			p.take(repo, m, s.Lag, now)
		}
	}

	// What is due may have changed: all repositories are looked at again.
	p.calm = calmness{}
}

// take makes a repository due whose mark is another than the last one. After a
// start the last one is not known: then the index tells what is new. The mutex
// is held.
func (p *Poller) take(repo *catalog.Repo, m host.Mark, lag time.Duration, now time.Time) {
	s, stamp := p.polls[repo.ID], stampOf(m)
	if s.stamp == stamp {
		return
	}
	if s.stamp != "" || !indexed(repo, m, now) {
		s.due, s.hotUntil = true, now.Add(lag)
	}
	s.stamp = stamp
	p.polls[repo.ID] = s
}

// stampOf is a mark as a text.
func stampOf(m host.Mark) string {
	if len(m.Commits) > 0 {
		return strings.Join(m.Commits, " ")
	}
	return m.At.UTC().Format(time.RFC3339Nano)
}

// indexed reports whether the index of a repository has what a mark tells of.
func indexed(repo *catalog.Repo, m host.Mark, now time.Time) bool {
	if len(m.Commits) == 0 {
		// The clock of the host may be off: what is close to the index is not believed to be in it.
		// Nor is anything where the clock of what is agreed on was hours ahead.
		return m.At.Add(slack).Before(repo.IndexedAt) && !repo.IndexedAt.After(now)
	}
	return slices.ContainsFunc(repo.Revisions, func(r catalog.Revision) bool { return slices.Contains(m.Commits, r.Commit) })
}

// followed reports whether a host would tell of a push to a repository. After a
// start, its first word is waited for. The mutex is held.
func (p *Poller) followed(view *catalog.View, repo *catalog.Repo, now time.Time) bool {
	return slices.ContainsFunc(repo.Connections, func(link catalog.RepoConnection) bool {
		h := p.heard[link.Name]
		if h == nil {
			row, tells := host.SignalOf(view.File().Connection(link.Name))
			return tells && row.Sure && now.Before(p.began.Add(grace)) && !strings.HasPrefix(link.Target, "repos/")
		}
		return h.signal.Sure && h.fresh(now) && slices.Contains(h.signal.Targets, link.Target)
	})
}

// next is when a repository is polled: at once, the zero time, when its host
// tells of a push, or when something else is wanted of it than its index was
// made for, or asked for; else some time after the last poll or index. The mutex
// is held.
func (p *Poller) next(view *catalog.View, repo *catalog.Repo, wanted string, now time.Time) time.Time {
	s := p.polls[repo.ID]
	if s.due || p.outdated(repo, wanted) {
		return time.Time{}
	}

	// The clock of what is agreed on may be ahead of this node's: an index of later was made
	// before now all the same.
	last := repo.IndexedAt
	if last.After(now) {
		last = p.began
	}
	if s.at.After(last) {
		last = s.at
	}
	most := view.File().Settings.ReindexInterval
	switch {
	case now.Before(s.hotUntil):
		return last.Add(min(busiest, most))
	case p.followed(view, repo, now):
		// The checks of a day are spread over it, also after a start.
		if first := p.began.Add(-checkTime + spread(repo.ID, checkTime)); first.After(last) {
			last = first
		}
		return last.Add(max(checkTime, most))
	}
	return last.Add(adaptive(repo, s, last, most))
}

// adaptive is how long a repository rests whose host tells nothing: half of the
// time since the last push, since the next tends to come as soon as the last
// ones did.
func adaptive(repo *catalog.Repo, s poll, last time.Time, most time.Duration) time.Duration {
	pushed := repo.PushedAt
	if s.changed.After(pushed) || pushed.After(last) {
		pushed = s.changed // a commit may have any date
	}
	if rest := max(last.Sub(pushed)/2, busiest); rest < most {
		return rest
	}

	// What was added together is not polled together for ever.
	return most - spread(repo.ID, most/10)
}

// spread is a part of a time that depends on the repository alone.
func spread(id catalog.RepoID, d time.Duration) time.Duration {
	return time.Duration(uint64(d) / place.Groups * place.GroupOf(id))
}
