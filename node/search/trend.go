package search

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/glob"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard/query"
)

const (
	// MaxTrend is the most dates of one trend: a blob has a bit for each.
	MaxTrend    = 64
	trendAtOnce = 4 // repositories
	trendTime   = 20 * time.Second
)

// TrendResponse has how many matches a query had at each date.
type TrendResponse struct {
	Counts       []int
	Repositories int // that were asked
	Missing      int // of these, whose matches are not counted, or not all of them
}

// Trend counts the matches of a query about files at some dates, in all that the viewer may see. A zero
// time is now. It is what a search with at: finds, over any number of repositories: the index of
// changes says which files can match, and only those are read.
func (s *Searcher) Trend(ctx context.Context, v catalog.Viewer, req Request, at []time.Time) (*TrendResponse, error) {
	parsed, err := query.Parse(req.Query, req.toggles())
	if err != nil {
		return nil, mistake(req, err)
	}
	switch {
	case parsed.Type.Changes() || !parsed.At.IsZero():
		return nil, call.Fail(call.ErrQuery, "a count over time is about files and needs no at:")
	case len(at) > MaxTrend:
		return nil, call.Fail(call.ErrInvalid, "at most %d dates", MaxTrend)
	}
	q, err := newQuestion(&s.d, v, req, parsed)
	if err != nil {
		return nil, err
	}
	out := &TrendResponse{Counts: make([]int, len(at))}
	if q.repos.IsEmpty() {
		return out, nil
	}
	rev, single := singleRev(q.tree)
	if _, plain := glob.Start(rev); !single || !plain {
		return nil, call.Fail(call.ErrQuery, "a count over time needs one revision for the whole query: HEAD, or what a single rev: names")
	}

	ctx, cancel := context.WithTimeout(ctx, trendTime)
	defer cancel()
	var mu sync.Mutex // guards out
	group, _ := call.NewGroup(ctx, trendAtOnce)
	for it := q.repos.Iterator(); it.HasNext(); {
		repo, err := q.visible.ByID(it.Next())
		if err != nil || repo.NoCommit() {
			continue
		}
		out.Repositories++
		group.Go(func() error {
			found, err := s.d.Scanner.Trend(ctx, v, repo.Name, browse.TrendRequest{Ref: rev, At: at, Q: q.tree})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, call.ErrRef): // it has no such revision, so nothing matches there
			case err != nil:
				s.d.Log.Info("the matches of a repository over time are not counted", "repo", repo.Name, "err", err)
				out.Missing++
			default:
				for i, n := range found.Counts {
					out.Counts[i] += n
				}
				if !found.Exact {
					out.Missing++
				}
			}
			return nil
		})
	}
	return out, group.Wait()
}
