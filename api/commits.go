package api

import (
	"context"

	"github.com/shoalsearch/shoal/api/reply"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
)

// The orders of commits.
const (
	newestFirst = "newest"
	bestFirst   = "best"
)

// commitsRequest decodes the body of a search of commits, which may ask for up to maxCommits. It
// stores the query in c for the audit.
func commitsRequest(c *call, maxCommits int) (search.Request, error) {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return search.Request{}, err
	}
	req := search.Request{
		Query:         f.required("query"),
		Matches:       f.integer("matches", 1, maxCommits),
		Regexp:        f.flag("isRegexEnabled"),
		CaseSensitive: f.flag("isCaseSensitivityEnabled"),
		Facets:        f.flag("facets"),
		After:         f.text("after"),
		Releases:      f.flag("releases"),
	}
	order := f.text("order")
	if req.Best = order == bestFirst; !req.Best && order != newestFirst && order != "" {
		f.wrong("order", "newest or best")
	}
	c.query = req.Query
	return req, f.err()
}

// commitsReach says whether all commits were searched, and if not, what was left out.
type commitsReach struct {
	Exhaustive bool           `json:"isSearchExhaustive"`
	Gaps       []coverage.Gap `json:"notSearched,omitempty"`
}

func reachOf(found *search.CommitsResponse) commitsReach {
	return commitsReach{found.Coverage.Exhaustive(), found.Coverage.Gaps()}
}

// commits handles POST /api/search_commits.
func (a *searchRoutes) commits(ctx context.Context, c *call) error {
	req, err := commitsRequest(c, search.MaxCommits)
	if err != nil {
		return err
	}
	found, err := a.searcher.SearchCommits(ctx, c.viewer, req)
	if err != nil {
		return err
	}
	return c.json(struct {
		*search.CommitsResponse
		commitsReach
	}{found, reachOf(found)})
}

// streamCommits handles POST /api/stream_search_commits.
func (a *searchRoutes) streamCommits(ctx context.Context, c *call) error {
	req, err := commitsRequest(c, search.MaxStreamedCommits)
	if err != nil {
		return err
	}
	viewer, lease := c.viewer, c.lease
	return a.streamEvents(ctx, c, "/api/stream_search_commits", func(ctx context.Context, events chan<- event) error {
		found, err := a.searcher.StreamCommits(ctx, viewer, req, func(part []search.FoundCommit) error {
			text, err := reply.Encode(struct {
				Type    string               `json:"type"`
				Commits []search.FoundCommit `json:"commits"`
			}{"chunk", part})
			if err != nil {
				return err
			}
			// In memory are a part, its JSON, and the previous part, which is still being written.
			if f := lease.resize(4 * int64(len(text))); f != nil {
				return f
			}
			return sendEvent(ctx, events, text)
		})
		if err != nil {
			return err
		}
		text, err := reply.Encode(struct {
			Type string `json:"type"`
			*search.CommitsResponse
			Commits []search.FoundCommit `json:"commits,omitempty"` // hides the embedded field: the parts had the commits
			commitsReach
		}{Type: "final", CommitsResponse: found, commitsReach: reachOf(found)})
		if err != nil {
			return err
		}
		return sendEvent(ctx, events, text)
	})
}
