package search

import (
	"context"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard/query"
)

// root is one search on the node that a client asked. It has the question and the answer so far.
// Each fan-out to the leaves is a round.
type root struct {
	d       *Deps
	leaves  *leaves
	layouts *layouts

	ctx    context.Context
	cancel context.CancelFunc
	began  time.Time

	q      *question
	a      *answer
	shards int // number of shards of the whole search; known once there are targets
}

// newRoot is plan with a trace span.
func (s *Searcher) newRoot(ctx context.Context, v catalog.Viewer, req Request) (*root, error) {
	_, span := s.d.Tracer.Start(ctx, "plan")
	r, err := s.plan(ctx, v, req)
	span.End(err)
	return r, err
}

// plan parses the query and finds what it is about.
func (s *Searcher) plan(ctx context.Context, v catalog.Viewer, req Request) (*root, error) {
	if err := s.check(&req); err != nil {
		return nil, err
	}

	parsed, err := query.Parse(req.Query, req.toggles())
	if err != nil {
		return nil, mistake(req, err)
	}
	if parsed.Type.Changes() {
		return nil, call.Fail(call.ErrQuery, "type:commit and type:diff search commits, and this searches files: use POST /api/search_commits, or shoal search on the command line")
	}
	if req.counting {
		countEveryFile(parsed)
	}

	from, err := readCursor(req.After, parsed)
	if err != nil {
		return nil, err
	}

	r, err := s.newRootOf(ctx, v, req, parsed)
	if err != nil {
		return nil, err
	}

	r.q.leaf.Reach = true
	if req.Pages {
		r.q.digest = digestOf(parsed)
	}
	r.q.continueFrom(from)

	// Git may have what the index does not have.
	err = r.q.searchGit(r.ctx, v, s.d.Scanner, parsed.At)
	if err == nil {
		err = r.checkUnchanged()
	}
	if err != nil {
		r.close()
		return nil, err
	}

	return r, nil
}

// check checks the bounds of a request and sets the defaults.
func (s *Searcher) check(req *Request) error {
	switch {
	case req.Matches < 0 || req.Matches > MaxMatches:
		return call.Fail(call.ErrInvalid, "matches must be from 1 to %d", MaxMatches)
	case req.ContextLines < 0 || req.ContextLines > MaxContext:
		return call.Fail(call.ErrInvalid, "contextLines must be from 0 to %d", MaxContext)
	case req.Pages && req.PerFile > 0:
		return call.Fail(call.ErrInvalid, "the best lines of each file have no order to page through")
	case req.After != "" && !req.Pages:
		return call.Fail(call.ErrInvalid, "after: it needs pages")
	}

	// Without a number, use the default of the node within the same bound.
	if req.Matches == 0 {
		req.Matches = min(s.d.Matches(), MaxMatches)
	}
	return nil
}

// newRootOf prepares a search for a parsed query.
func (s *Searcher) newRootOf(ctx context.Context, v catalog.Viewer, req Request, parsed *query.Query) (*root, error) {
	began := clock.Now()
	q, err := newQuestion(&s.d, v, req, parsed)
	if err != nil {
		return nil, err
	}

	limit := defaultTime
	if parsed.Timeout > 0 {
		limit = min(parsed.Timeout, maxTime)
	}

	r := &root{d: &s.d, leaves: s.leaves, layouts: &s.layouts, began: began, q: q, a: &answer{q: q}}
	r.ctx, r.cancel = context.WithTimeout(ctx, limit)
	return r, nil
}

func (r *root) close() { r.cancel() }

// targets returns the shards that the query needs in this view. It records the repositories without
// an index.
func (r *root) targets() []*target {
	l := r.layouts.get(r.q.visible.View)
	for it := roaring.And(l.unindexed, r.q.repos).Iterator(); it.HasNext(); {
		r.a.unindexed = append(r.a.unindexed, l.rank[it.Next()].name)
	}

	ranks := l.rank
	if r.q.repos.GetCardinality() == 1 {
		// In one repository all files are equally recent.
		id := r.q.repos.Minimum()
		ranks = map[uint32]rank{id: {name: l.rank[id].name}}
	}

	list := l.targets(r.q.visible.View, r.d.Peers, r.q.repos, ranks)
	r.a.stats.ShardsRequired, r.shards = len(list), len(list)
	r.a.reportProgress()
	return list
}

// scatter asks for all targets and merges the responses.
func (r *root) scatter(targets []*target, leaf leafRequest) {
	leaf.Shards = r.shards
	r.a.most = limits{leaf.Matches, leaf.Files, memoryLimit, leaf.Context}
	newRound(r, leaf).run(targets)
}

// changedSight is the error of a search whose viewer's permissions changed while it ran.
func changedSight() error {
	return call.Fail(call.ErrUnavailable, "What you may see has changed while the search ran: ask again.")
}
