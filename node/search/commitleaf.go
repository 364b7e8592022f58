package search

import (
	"context"
	"runtime"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/history"
	"github.com/shoalsearch/shoal/shard/change"
	"github.com/shoalsearch/shoal/shard/query"
)

// commits searches changes of this node.
func (l *leaves) commits(ctx context.Context, req *commitsRequest) (*commitsResponse, error) {
	if req.Within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, req.Within)
		defer cancel()
	}
	leave, _, err := l.enter(ctx, true)
	if err != nil {
		return nil, err
	}
	defer leave()

	// Nothing is opened before the viewer is known to be allowed to see it.
	visible := func(r *account.Repos) bool {
		return !slices.ContainsFunc(req.Repos, func(id catalog.RepoID) bool { return !r.Set.Contains(id) })
	}
	sight, err := l.d.Gate.Again(ctx, req.Pass, visible)
	if err != nil {
		return nil, err
	}

	out := &commitsResponse{Parts: l.searchLogs(ctx, req, sight)}
	if req.Releases {
		ctx, cancel := context.WithTimeout(ctx, releaseTime)
		defer cancel()
		for i, id := range req.Repos {
			l.d.Histories.Releases(ctx, id, out.Parts[i].Commits)
		}
	}
	return out, nil
}

// searchLogs searches the logs of some repositories as if they were one.
func (l *leaves) searchLogs(ctx context.Context, req *commitsRequest, sight *account.Repos) []commitsPart {
	parts, names := make([]commitsPart, len(req.Repos)), make([]string, len(req.Repos))
	readers := make([]*change.LogReader, len(req.Repos))
	// Look for one more than the answer shows, to know whether there are more.
	common := change.LogSearch{Diff: req.Diff, Best: req.Best, Limit: req.Limit + 1, Facets: req.Facets, Moves: req.Moves, All: req.All, Patterns: &change.Patterns{}}
	of := func(i int) change.LogSearch {
		own := common
		own.Q, own.After = ofRepo(req.Q.Q, req.Repos[i]), req.After[i]
		return own
	}
	failed := func(i int, err error) {
		if parts[i] = (commitsPart{Late: ctx.Err() != nil}); !parts[i].Late {
			l.d.Log.Warn("the changes of a repository cannot be searched", "repo", req.Repos[i], "err", err)
		}
	}

	maySearch := func(i int) bool {
		return i < len(req.Digest) && i < len(req.After) && sight.Set.Contains(req.Repos[i])
	}

	// Opening a log may read its head from the disk.
	group, _ := call.NewGroup(ctx, min(commitsTogether, runtime.GOMAXPROCS(0)))
	for i, id := range req.Repos {
		if !maySearch(i) {
			continue
		}
		if repo, err := sight.ByID(id); err == nil {
			names[i] = repo.Name
		}
		group.Go(func() error {
			var err error
			if readers[i], parts[i].State, err = l.d.Histories.Reader(id, req.Digest[i], of(i)); err != nil {
				failed(i, err)
			}
			return nil
		})
	}
	_ = group.Wait() // no task returns an error

	// Search them together, and then read what each tells.
	var open []*change.LogReader
	for _, r := range readers {
		if r != nil {
			defer r.Close()
			open = append(open, r)
		}
	}
	change.ReadLogs(ctx, open, common)
	for i, r := range readers {
		if r == nil {
			continue
		}
		if found, err := r.Result(ctx); err != nil {
			failed(i, err)
		} else {
			parts[i] = partOf(found, parts[i].State)
		}
	}

	// Of one repository git tells the rest. If it cannot, what is indexed is better than nothing.
	if req.Rest && len(parts) == 1 && maySearch(0) && parts[0].State != history.Whole && ctx.Err() == nil {
		if found, state := l.d.Histories.Rest(ctx, req.Repos[0], req.Digest[0], of(0)); found != nil {
			parts[0] = partOf(found, state)
		} else if ctx.Err() != nil {
			failed(0, ctx.Err())
		}
	}

	trimCommits(parts, names, req.Limit)
	return parts
}

// partOf returns what the search of a log found.
func partOf(found *change.LogMatches, state history.Reach) commitsPart {
	part := commitsPart{State: state, Total: found.Total, Named: found.Named, Moved: found.Moved, Left: found.Left, More: found.More, Commits: found.Commits, Months: found.Months, Before: found.Before, After: found.After}
	part.Authors, part.MoreAuthors = most(found.Authors, mostAuthors)
	return part
}

// ofRepo returns a query with its conditions on repositories resolved for one repository.
func ofRepo(q query.Q, id catalog.RepoID) query.Q {
	return query.Simplify(query.Map(q, func(n query.Q) query.Q {
		if set, ok := n.(*query.Repos); ok {
			return query.Const(set.Set.Contains(id))
		}
		return n
	}))
}

// most keeps the limit highest counts.
func most(counts map[string]int, limit int) (kept map[string]int, more bool) {
	if len(counts) <= limit {
		return counts, false
	}
	kept = map[string]int{}
	for _, v := range byFrequency(counts)[:limit] {
		kept[v.Value] = v.Files
	}
	return kept, true
}

// trimCommits keeps the first commits of all parts, in the order of the whole answer.
func trimCommits(parts []commitsPart, names []string, limit int) {
	type told struct {
		part int
		c    *change.CommitMatch
	}
	var all []told
	for part := range parts {
		for i := range parts[part].Commits {
			all = append(all, told{part, &parts[part].Commits[i]})
		}
	}
	if len(all) <= limit {
		return
	}

	slices.SortFunc(all, func(a, b told) int { return inOrder(a.c, b.c, names[a.part], names[b.part]) })
	keep := make([]int, len(parts))
	for _, k := range all[:limit] {
		keep[k.part]++
	}
	for i, n := range keep {
		parts[i].Commits = parts[i].Commits[:n]
	}
}
