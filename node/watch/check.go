package watch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/shard/change"
	"github.com/shoalsearch/shoal/shard/query"
)

const (
	lookEvery   = time.Second      // at whether the catalog has another backlog
	nextHolder  = 10 * time.Second // after which the next holder of a mirror checks, if the one before has not
	retryFirst  = 3 * time.Second  // after a failure; each further one doubles it
	retryMost   = 5 * time.Minute
	hitsAtMost  = 10  // of one notice
	textAtMost  = 200 // bytes of a title
	pathAtMost  = 500
	partNotices = 100 // that one entry stores
)

// turn is how far this node is with a backlog.
type turn struct {
	first uint64 // of the backlog
	since time.Time
	next  time.Time // not before then
	fails int
}

// Run checks the watches against what is new in the repositories of this node, until ctx ends.
func (w *Watches) Run(ctx context.Context) error {
	for clock.Wait(ctx, lookEvery) {
		w.round(ctx)
	}
	return nil
}

// round looks at each backlog once, unless the catalog has the same ones as before and none waits.
func (w *Watches) round(ctx context.Context) {
	view := w.d.Cluster.View()
	if w.calm != nil && view.SameBacklogs(w.calm) {
		return
	}
	w.calm = nil
	w.sets.update(view)
	seen := map[catalog.RepoID]bool{}
	for b := range view.Backlogs() {
		if ctx.Err() != nil {
			return
		}
		seen[b.Repo] = true
		w.look(ctx, view, b)
	}
	for id := range w.pending {
		if !seen[id] {
			delete(w.pending, id)
		}
	}
	if len(seen) == 0 {
		w.calm = view
	}
}

// look checks a repository if it is this node's turn.
func (w *Watches) look(ctx context.Context, view *catalog.View, b *catalog.Backlog) {
	repo := view.Repo(b.Repo)
	rank := w.rank(view, b.Repo)
	if repo == nil || rank < 0 {
		return
	}
	now := w.d.Now()
	t := w.pending[b.Repo]
	if t == nil || t.first != b.First {
		t = &turn{first: b.First, since: now}
		w.pending[b.Repo] = t
	}
	if now.Before(t.next) || now.Sub(t.since) < time.Duration(rank)*nextHolder {
		return
	}
	switch done, err := w.checkRepo(ctx, view, repo, b, t.fails < patienceTime); {
	case ctx.Err() != nil:
	case err != nil:
		t.next = now.Add(min(retryFirst<<min(t.fails, 10), retryMost))
		t.fails++
		w.count(func(c *Counts) { c.Failed++ })
		w.d.Log.Warn("watches were not checked against what is new", "repo", repo.Name, "err", err)
	case done:
		delete(w.pending, b.Repo)
		w.count(func(c *Counts) { c.Checked++ })
	}
}

// rank is the place of this node among the live holders of a mirror; -1 if it holds none.
func (w *Watches) rank(view *catalog.View, id catalog.RepoID) int {
	live := slices.DeleteFunc(slices.Clone(view.Holders(catalog.MirrorKey(id))), func(node string) bool {
		return node != w.d.Cluster.Self() && !w.d.Cluster.Alive(node)
	})
	slices.Sort(live)
	return slices.Index(live, w.d.Cluster.Self())
}

// checkRepo checks the watches against what is new in a repository. done is false if this node does
// not have it yet.
func (w *Watches) checkRepo(ctx context.Context, view *catalog.View, repo *catalog.Repo, b *catalog.Backlog, patient bool) (done bool, err error) {
	c := &check{w: w, view: view, repo: repo, backlog: b, visible: map[string]*account.Repos{}}
	if w.sets.have(true) && !w.d.Histories.Off() {
		news, rootless, err := w.news(repo, b.From)
		if news == nil || err != nil {
			return false, err
		}
		defer news.Close()
		if err := c.commits(ctx, news, rootless); err != nil {
			return false, err
		}
	}
	if w.sets.have(false) {
		if !w.d.Mirrors.Has(repo.ID) {
			return false, nil
		}
		if err := c.files(ctx, patient); err != nil && patient {
			return false, err
		} else if err != nil {
			w.d.Log.Warn("watches of text were not checked against what is new: this push is passed over", "repo", repo.Name, "err", err)
		}
	}
	return true, c.store(ctx)
}

// newCommits are the commits that one check is about; *change.News has them.
type newCommits interface {
	Texts(ctx context.Context, look func([]byte)) error
	Search(ctx context.Context, req change.LogSearch) (*change.LogMatches, error)
	Close()
}

// newsOf finds the new commits; nil means not yet.
func (w *Watches) newsOf(repo *catalog.Repo, before []catalog.Revision) (news newCommits, rootless bool, err error) {
	found, err := w.d.Histories.News(repo, before)
	if found == nil || err != nil {
		return nil, false, err
	}
	return found, found.Rootless, nil
}

// check is a check of one repository.
type check struct {
	w       *Watches
	view    *catalog.View
	repo    *catalog.Repo
	backlog *catalog.Backlog
	visible map[string]*account.Repos // by account
	notices []catalog.Notice
}

// sees returns what the owner of a watch may see; nil if that is not the repository.
func (c *check) sees(x *catalog.Watch) *account.Repos {
	seen, ok := c.visible[x.Account]
	if !ok {
		if v, active := c.w.d.Gate.WorksFor(x.Account); active {
			seen, _ = c.w.d.Gate.Repos(v) // nobody is told of what cannot be decided now
		}
		if seen != nil && !seen.Set.Contains(c.repo.ID) {
			seen = nil
		}
		c.visible[x.Account] = seen
	}
	return seen
}

// commits looks for the watches of commits and diffs in the new commits.
func (c *check) commits(ctx context.Context, news newCommits, rootless bool) error {
	found := c.w.sets.needs.findings()
	if err := news.Texts(ctx, found.add); err != nil {
		return err
	}
	return c.each(found, true, func(g *group, _ *catalog.Watch, q query.Q) (result, error) {
		found, err := news.Search(ctx, change.LogSearch{Q: q, Diff: g.standing.Query.Type == query.DiffType, Limit: hitsAtMost})
		if err != nil {
			return result{}, err
		}
		return result{hitsOf(found, g.standing.Query.Type == query.DiffType), found.Total, rootless}, nil
	})
}

// result is what a query found.
type result struct {
	hits  []catalog.Hit
	total int
	// rootless means that the hits may be older than what was checked last.
	rootless bool
}

// each searches for each watch whose query may match, if its owner may see the repository. Watches with
// one query share a search.
func (c *check) each(texts *findings, changes bool, search func(*group, *catalog.Watch, query.Q) (result, error)) error {
	for _, g := range c.w.sets.all {
		if g.changes != changes || !texts.meet(g.need) {
			continue
		}
		results := map[string]result{}
		for _, x := range g.watches {
			seen := c.sees(x)
			if seen == nil || x.Since > c.backlog.Last {
				continue // what was indexed before the watch was made is not new for it
			}
			q, err := g.standing.In(c.view, c.repo, func() (*account.Repos, error) { return seen, nil })
			if err != nil || q == query.Const(false) {
				continue // such as a search context that was removed
			}
			found, ok := results[q.String()]
			if !ok {
				if found, err = search(g, x, q); err != nil {
					return err
				}
				results[q.String()] = found
			}
			c.add(x, found)
		}
	}
	return nil
}

// add makes a notice of what was found for a watch.
func (c *check) add(x *catalog.Watch, found result) {
	if found.rootless {
		// The commit that was checked last has left the history, as after a forced push to a history
		// that is bounded. Only what is newer than the watch is new for sure.
		found.hits = slices.DeleteFunc(slices.Clone(found.hits), func(h catalog.Hit) bool { return h.At.Before(x.Created) })
		found.total = len(found.hits)
	}
	if len(found.hits) > 0 {
		c.notices = append(c.notices, catalog.Notice{ID: c.id(x), Watch: x.ID, Hits: found.hits, Total: uint32(min(found.total, 1<<30))})
	}
}

// id identifies what one check finds for a watch. A repeated check gives the same one.
func (c *check) id(x *catalog.Watch) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", x.ID, c.repo.ID, c.backlog.First))
	return hex.EncodeToString(sum[:12])
}

// store stores the notices, and then the end of the check. A check that another node has stored
// meanwhile is refused, and this node looks again at what is left.
func (c *check) store(ctx context.Context) error {
	slices.SortFunc(c.notices, func(a, b catalog.Notice) int { return strings.Compare(a.Watch, b.Watch) })
	rest, last := c.notices, false
	for !last {
		part := catalog.Check{Repo: c.repo.ID, First: c.backlog.First, Notices: rest[:min(len(rest), partNotices)]}
		if rest = rest[len(part.Notices):]; len(rest) == 0 {
			part.To, last = c.repo.Revisions, true
		}
		_, err := c.w.d.Cluster.Propose(ctx, &catalog.FinishChecks{Checks: []catalog.Check{part}})
		if refusal, ok := catalog.Refused(err); ok && refusal.Code == catalog.Stale {
			return nil
		}
		if err != nil {
			return err
		}
	}
	c.w.count(func(n *Counts) { n.Found += int64(len(c.notices)) })
	return nil
}

// hitsOf returns the commits, or their files, as hits.
func hitsOf(found *change.LogMatches, diff bool) (hits []catalog.Hit) {
	for i := range found.Commits {
		m := &found.Commits[i]
		subject, _, _ := strings.Cut(m.Message, "\n")
		name, _, _ := strings.Cut(m.Author, " <")
		hit := catalog.Hit{Commit: m.ID, Title: cut(subject, textAtMost), Author: cut(name, textAtMost), At: m.CommitTime}
		if !diff {
			hits = append(hits, hit)
			continue
		}
		for _, f := range m.Files {
			hit.Path = cut(f.Path, pathAtMost)
			hits = append(hits, hit)
		}
	}
	return hits[:min(len(hits), hitsAtMost)]
}

// cut keeps so many bytes of a text, in whole characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return strings.ToValidUTF8(text, "?")
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}
