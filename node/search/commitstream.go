package search

import (
	"cmp"
	"context"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/shard/query"
)

// MaxStreamedCommits is the most that one stream of commits sends.
const MaxStreamedCommits = 100_000

// firstCommits is the size of the first part of a stream, which a reader waits for. Later parts have
// MaxCommits.
const firstCommits = 20

// StreamCommits sends the answer to a search of commits in parts, in its order: the newest first, or
// the best. No part is held while the next is made, so the memory depends on a part and not on the
// answer. It returns the answer without commits.
func (s *Searcher) StreamCommits(ctx context.Context, v catalog.Viewer, req Request, send func([]FoundCommit) error) (*CommitsResponse, error) {
	parsed, err := query.Parse(req.Query, req.toggles())
	if err != nil {
		return nil, mistake(req, err)
	}
	left := cmp.Or(req.Matches, defaultCommits)
	switch {
	case req.Matches < 0 || req.Matches > MaxStreamedCommits:
		return nil, call.Fail(call.ErrInvalid, "matches must be from 1 to %d", MaxStreamedCommits)
	case parsed.Count == query.CountAll:
		left = MaxStreamedCommits
	case parsed.Count > 0:
		left = min(parsed.Count, MaxStreamedCommits)
	}
	parsed.Count = query.NoCount // each part has its own
	req.Exact = true             // the first part counts for the whole stream

	var out *CommitsResponse
	for size := firstCommits; ; size = MaxCommits {
		req.Matches = min(left, size)
		part, err := s.commits(ctx, v, req, parsed)
		if err != nil {
			return nil, err
		}
		if len(part.Commits) > 0 {
			if err := send(part.Commits); err != nil {
				return nil, err
			}
		}
		left -= part.items()
		out = out.followedBy(part)
		if out.Next == "" || left <= 0 {
			return out, nil
		}
		req.After, req.Facets, req.Exact = out.Next, false, false
	}
}

// items returns how many commits, or files of them, a part has.
func (r *CommitsResponse) items() (n int) {
	for i := range r.Commits {
		if r.Diff {
			n += len(r.Commits[i].Files) + r.Commits[i].MoreFiles
		} else {
			n++
		}
	}
	return n
}

// followedBy adds the next part of a stream to an answer, which is nil before the first. What any part
// did not search is missing in the whole.
func (r *CommitsResponse) followedBy(part *CommitsResponse) *CommitsResponse {
	part.Commits = nil
	if r == nil {
		return part
	}
	c := part.Coverage
	if before := r.Coverage.Without(coverage.Limit); !before.Complete() {
		if c = before; part.Coverage.Has(coverage.Limit) {
			c = c.With(coverage.Gap{Kind: coverage.Limit})
		}
	}
	r.Coverage, r.Next, r.Took = c, part.Next, r.Took+part.Took
	if len(r.Uncovered) == 0 {
		r.Uncovered = part.Uncovered
	}
	return r
}
