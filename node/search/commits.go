package search

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/history"
	"github.com/shoalsearch/shoal/shard/change"
	"github.com/shoalsearch/shoal/shard/query"
)

// MaxCommits is the most that one search of commits returns.
const MaxCommits = 1000

const (
	releaseTime     = time.Second // for the first releases with what a node tells
	defaultCommits  = 50
	mostAuthors     = 1000 // that one repository counts
	mostUncovered   = 20   // repositories that are named
	commitHolders   = 3    // that are asked for a repository, one after the other
	commitsTogether = 4    // repositories that a node searches at once, at most
)

// CommitsResponse is the answer to a search of commits: the newest first, or the best.
type CommitsResponse struct {
	Diff      bool              `json:"-"` // files were counted and bounded, and not commits
	Commits   []FoundCommit     `json:"commits"`
	Total     int               `json:"totalCount"`       // commits, or files with Diff, that match
	Exact     bool              `json:"isTotalExact"`     // in what was searched; else Total is a lower bound
	Named     int               `json:"filesNotSearched"` // binary and huge files that the query reaches, of which only the name was looked at
	Moved     bool              `json:"-"`                // see change.LogMatches
	Uncovered []Uncovered       `json:"uncovered"`
	Coverage  coverage.Coverage `json:"-"`
	Facets    *CommitFacets     `json:"facets,omitempty"` // of all that match; nil unless requested
	Hints     []string          `json:"hints,omitempty"`
	Next      string            `json:"next,omitempty"` // the After of what comes next
	Took      time.Duration     `json:"duration,format:nano"`
}

// CommitFacets counts what matches, commits or files with type:diff.
type CommitFacets struct {
	Repositories []FacetValue `json:"repositories"`
	Authors      []FacetValue `json:"authors"` // by name
	Months       []FacetValue `json:"months"`  // as 2026-01, the newest first
	Exact        bool         `json:"isExact"`
}

// FoundCommit is a commit that matches.
type FoundCommit struct {
	RepoID     uint32 `json:"repositoryId"`
	Repository string `json:"repository"`
	WebURL     string `json:"webUrl"` // page of this service
	change.CommitMatch
}

// Uncovered is a repository whose commits were not all searched.
type Uncovered struct {
	Repository string `json:"repository"`
	Why        string `json:"why"`

	Before time.Time `json:"before,omitzero"` // older commits were not searched
	After  time.Time `json:"after,omitzero"`  // newer ones were not
}

// commitsRequest is a search of the changes of some repositories that a node has.
type commitsRequest struct {
	Pass     account.Pass // on whose behalf
	Q        queryBox
	Diff     bool
	Best     bool // the best first, else the newest
	Facets   bool
	Releases bool
	Moves    bool
	Rest     bool // read from git what is not indexed
	All      bool // count everything
	Limit    int
	Repos    []catalog.RepoID
	Digest   []string       // of Repos: what the asker knows of their revisions
	After    []change.Place // of Repos: where the answer before this one ended
	Within   time.Duration  // until the answer is of no more use
}

// commitsResponse is what each repository of a request has, in their order.
type commitsResponse struct{ Parts []commitsPart }

// commitsPart is what the changes of one repository have.
type commitsPart struct {
	State              history.Reach
	Late               bool // the time was over
	Moved              bool // see change.LogMatches
	Total, Named, Left int
	Commits            []change.CommitMatch
	Authors, Months    map[string]int
	MoreAuthors        bool      // that are not counted
	More               bool      // the counts are lower bounds
	Before, After      time.Time // between which commits were searched, where that is known
}

// commitsCall asks another node to search changes that it has. One of a version without them
// does not know it, and another node is asked.
var commitsCall = call.To[commitsRequest, commitsResponse]("search_commits").Whole()

// SearchCommits finds commits, or files of commits, in all that the viewer may see.
func (s *Searcher) SearchCommits(ctx context.Context, v catalog.Viewer, req Request) (*CommitsResponse, error) {
	parsed, err := query.Parse(req.Query, req.toggles())
	if err != nil {
		return nil, mistake(req, err)
	}
	return s.commits(ctx, v, req, parsed)
}

// commits answers a search of commits whose query is parsed.
func (s *Searcher) commits(ctx context.Context, v catalog.Viewer, req Request, parsed *query.Query) (*CommitsResponse, error) {
	if err := checkCommits(parsed, &req); err != nil {
		return nil, err
	}

	began := clock.Now()
	limit := defaultTime
	if parsed.Timeout > 0 {
		limit = min(parsed.Timeout, maxTime)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	q, err := newQuestion(&s.d, v, req, parsed)
	if err != nil {
		return nil, err
	}

	after, err := commitsAfter(req, parsed)
	if err != nil {
		return nil, err
	}
	q.digest, q.from = digestOf(parsed), after

	c := &commitSearch{d: &s.d, leaves: s.leaves, q: q, diff: parsed.Type == query.DiffType, best: map[catalog.RepoID]commitsPart{}, asked: map[catalog.RepoID]map[string]bool{}}
	for range commitHolders {
		if !c.round(ctx) || ctx.Err() != nil {
			break
		}
	}
	if c.busy != nil {
		return nil, c.busy
	}
	out := c.respond()
	out.Took = clock.Since(began)
	return out, nil
}

// checkCommits returns an error for a query that only a search of files can answer, and sets the
// defaults of the request.
func checkCommits(q *query.Query, req *Request) error {
	switch {
	case !q.Type.Changes():
		return call.Fail(call.ErrQuery, "a search of commits needs type:commit or type:diff in its query; files are searched by POST /api/search")
	case !q.At.IsZero():
		return call.Fail(call.ErrQuery, "at: is about files as they were; commits are bounded by since: and until:")
	case req.Matches < 0 || req.Matches > MaxCommits:
		return call.Fail(call.ErrInvalid, "matches must be from 1 to %d", MaxCommits)
	}
	symbols := false
	query.Map(q.Q, func(n query.Q) query.Q {
		t, ok := n.(*query.Text)
		symbols = symbols || ok && t.Field == query.Symbol
		return n
	})
	if symbols {
		return call.Fail(call.ErrQuery, "sym: is about files as they are; added: and removed: search the lines of commits")
	}
	req.Matches = cmp.Or(req.Matches, defaultCommits)
	if q.Count > 0 {
		q.Count = min(q.Count, MaxCommits)
	}
	return nil
}

// commitsAfter reads the cursor at which a search of commits continues.
func commitsAfter(req Request, parsed *query.Query) (*cursor, error) {
	c, err := readCursor(req.After, parsed)
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return &cursor{Place: &change.Place{}}, nil
	case c.Place == nil || (c.Place.Score > 0) != req.Best:
		return nil, call.Fail(call.ErrInvalid, "after: it belongs to another order. Leave it out to start again.")
	}
	return c, nil
}

// commitSearch is one search of commits at the node that was asked.
type commitSearch struct {
	d      *Deps
	leaves *leaves
	q      *question
	diff   bool

	mu    sync.Mutex // guards the fields below
	best  map[catalog.RepoID]commitsPart
	asked map[catalog.RepoID]map[string]bool // nodes, by repository
	busy  error                              // a node had too much to do, and no other one was left
}

// round asks of each repository that is not whole yet the next node that has its mirror. It
// reports whether there was one.
func (c *commitSearch) round(ctx context.Context) bool {
	byNode := map[string][]catalog.RepoID{}
	for it := c.q.repos.Iterator(); it.HasNext(); {
		id := it.Next()
		part := c.best[id]
		repo, err := c.q.visible.ByID(id)
		if part.State == history.Whole || part.State == history.Partial || err != nil || !repo.Indexed() {
			continue
		}
		key := catalog.MirrorKey(id)
		for _, node := range c.d.Peers.Prefer(c.q.visible.View.Holders(key), key) {
			if !c.asked[id][node] {
				if c.asked[id] == nil {
					c.asked[id] = map[string]bool{}
				}
				c.asked[id][node] = true
				byNode[node] = append(byNode[node], id)
				break
			}
		}
	}

	c.busy = nil
	group, _ := call.NewGroup(ctx, 0)
	for node, ids := range byNode {
		group.Go(func() error { c.ask(ctx, node, ids); return nil })
	}
	_ = group.Wait() // ask has no error
	return len(byNode) > 0
}

// ask asks a node, this one or another, and keeps its answer if it is better than the earlier one.
func (c *commitSearch) ask(ctx context.Context, node string, ids []catalog.RepoID) {
	req := &commitsRequest{Pass: c.q.visible.Pass(), Q: c.q.leaf.Q, Diff: c.diff, Best: c.q.req.Best, Facets: c.q.req.Facets, Releases: c.q.req.Releases, Moves: c.q.req.Moves, All: c.q.leaf.CountAll || c.q.req.Exact, Rest: c.q.repos.GetCardinality() == 1, Limit: c.q.req.Matches, Repos: ids}
	for _, id := range ids {
		digest, after := "", change.Place{}
		if repo, err := c.q.visible.ByID(id); err == nil {
			digest, after = history.Digest(repo), c.q.from.placeIn(repo.Name)
		}
		req.Digest, req.After = append(req.Digest, digest), append(req.After, after)
	}
	if left, ok := clock.Left(ctx); ok {
		req.Within = max(left-min(left/10, 300*time.Millisecond), time.Millisecond)
	}

	var out *commitsResponse
	var err error
	if node == c.d.Cluster.Self() {
		out, err = c.leaves.commits(ctx, req)
	} else {
		out, err = commitsCall.Ask(ctx, c.d.Cluster, node, req)
		c.d.Peers.Heard(node, err)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.d.Log.Warn("a search of commits failed on a node", "node", node, "err", err)
		if e := call.KindOf(err); e != nil && e.Err == call.ErrOverloaded {
			c.busy = err
		}
	case len(out.Parts) == len(ids):
		for i, id := range ids {
			c.best[id] = better(c.best[id], out.Parts[i])
		}
	}
}

// better returns which of two parts of one repository reaches further. Where none reaches anything,
// the one that tells why.
func better(known, other commitsPart) commitsPart {
	if other.State > known.State || other.State == known.State && other.Late {
		return other
	}
	return known
}

// inOrder compares commits of two repositories by their order in the answer. Many may have the same
// time, so names and ids decide, too.
func inOrder(a, b *change.CommitMatch, repoA, repoB string) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), b.CommitTime.Compare(a.CommitTime), cmp.Compare(repoA, repoB), cmp.Compare(a.ID, b.ID))
}

// respond builds the response from the best answer for each repository.
func (c *commitSearch) respond() *CommitsResponse {
	out := &CommitsResponse{Diff: c.diff, Hints: c.q.hints}
	asked, whole, left, more := 0, 0, 0, false
	tally := newCommitTally()
	gaps := map[coverage.Kind]int{}
	for it := c.q.repos.Iterator(); it.HasNext(); {
		repo, err := c.q.visible.ByID(it.Next())
		if err != nil || repo.NoCommit() {
			continue
		}
		asked++
		part := c.best[repo.ID]
		out.Total, out.Named, left = out.Total+part.Total, out.Named+part.Named, left+part.Left
		out.Moved = out.Moved || part.Moved
		more = more || part.More
		tally.add(repo.Name, &part)
		for _, found := range part.Commits {
			out.Commits = append(out.Commits, FoundCommit{repo.ID, repo.Name, browse.WebURL(c.q.base, repo.Name, "", "commit", found.ID), found})
		}
		if part.State == history.Whole {
			whole++
			continue
		}
		kind, lack := part.lack()
		gaps[kind]++
		lack.Repository = repo.Name
		out.Uncovered = append(out.Uncovered, lack)
	}

	slices.SortFunc(out.Uncovered, func(a, b Uncovered) int { return cmp.Compare(a.Repository, b.Repository) })
	out.Uncovered = out.Uncovered[:min(len(out.Uncovered), mostUncovered)]
	out.Coverage = coverage.Of(coverage.Repositories, asked, whole)
	for kind, n := range gaps {
		out.Coverage = out.Coverage.With(coverage.Gap{Kind: kind, Count: n, Of: asked})
	}
	if rev := c.unknownRevision(); rev != "" {
		out.Hints = append(out.Hints, fmt.Sprintf("no repository of this query has the revision %q", rev))
	}
	if c.q.req.Facets {
		out.Facets = tally.facets(asked == whole && !more)
	}
	out.Exact = !more
	isCut := out.cut(c.q.req.Matches, left) || more
	if isCut {
		out.Coverage = out.Coverage.With(coverage.Gap{Kind: coverage.Limit})
	}
	if isCut && len(out.Commits) > 0 {
		last := out.Commits[len(out.Commits)-1]
		out.Next = (&cursor{Query: c.q.digest, Repo: last.Repository, Place: &change.Place{Score: last.Score, Time: last.CommitTime.Unix(), ID: last.ID}}).String()
	}
	return out
}

// unknownRevision returns the revision in the query if no repository has it.
func (c *commitSearch) unknownRevision() string {
	rev, ok := singleRev(c.q.tree)
	if !ok || rev == "HEAD" || c.q.repos.IsEmpty() {
		return ""
	}
	for it := c.q.repos.Iterator(); it.HasNext(); {
		if repo, err := c.q.visible.ByID(it.Next()); err != nil || hasRevision(repo, rev) {
			return ""
		}
	}
	return rev
}

// lack says why the commits of a repository were not all searched, and which.
func (p *commitsPart) lack() (coverage.Kind, Uncovered) {
	day := func(format string, at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return fmt.Sprintf(format, at.Format(time.DateOnly))
	}
	switch {
	case p.Late:
		return coverage.Late, Uncovered{Why: "the time was over"}
	case p.State == history.Behind:
		return coverage.Pending, Uncovered{Why: "the newest commits are not indexed yet" + day(", those after %s", p.After), After: p.After}
	case p.State == history.Partial:
		return coverage.Shallow, Uncovered{Why: "older commits are not indexed" + day(", those before %s", p.Before), Before: p.Before}
	}
	return coverage.Pending, Uncovered{Why: "its commits are not indexed, or not yet"}
}

// cut sorts the commits and keeps the first limit commits, or files. It reports whether any of the
// left others remain.
func (r *CommitsResponse) cut(limit, left int) bool {
	slices.SortFunc(r.Commits, func(a, b FoundCommit) int {
		return inOrder(&a.CommitMatch, &b.CommitMatch, a.Repository, b.Repository)
	})
	shown := 0
	for i := range r.Commits {
		n := 1
		if r.Diff {
			n = len(r.Commits[i].Files) + r.Commits[i].MoreFiles
		}
		if shown+n > limit && shown > 0 {
			r.Commits = r.Commits[:i]
			break
		}
		shown += n
	}
	return shown < left && len(r.Commits) > 0
}

// commitTally counts what matches.
type commitTally struct {
	repositories, authors, months map[string]int
	more                          bool // not all authors are counted
}

func newCommitTally() *commitTally {
	return &commitTally{repositories: map[string]int{}, authors: map[string]int{}, months: map[string]int{}}
}

// add counts the commits of a repository's part of the answer.
func (t *commitTally) add(repo string, p *commitsPart) {
	if p.Total > 0 {
		t.repositories[repo] = p.Total
	}
	for name, n := range p.Authors {
		t.authors[name] += n
	}
	for month, n := range p.Months {
		t.months[month] += n
	}
	t.more = t.more || p.MoreAuthors
}

// facets returns the counts. They are exact only if the answer is whole.
func (t *commitTally) facets(whole bool) *CommitFacets {
	months := byFrequency(t.months)
	slices.SortFunc(months, func(a, b FacetValue) int { return cmp.Compare(b.Value, a.Value) })
	return &CommitFacets{
		Repositories: byFrequency(t.repositories), Authors: byFrequency(t.authors), Months: months,
		Exact: whole && !t.more,
	}
}
