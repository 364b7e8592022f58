package api

import (
	"context"

	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
)

// The orders of commits.
const (
	newestFirst = "newest"
	bestFirst   = "best"
)

// commits handles POST /api/search_commits.
func (a *searchRoutes) commits(ctx context.Context, c *call) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}
	req := search.Request{
		Query:         f.required("query"),
		Matches:       f.integer("matches", 1, search.MaxCommits),
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
	c.sought = req.Query
	if err := f.err(); err != nil {
		return err
	}
	found, err := a.searcher.SearchCommits(ctx, c.viewer, req)
	if err != nil {
		return err
	}
	return c.json(struct {
		*search.CommitsResponse
		Exhaustive bool           `json:"isSearchExhaustive"`
		Gaps       []coverage.Gap `json:"notSearched,omitempty"`
	}{found, found.Coverage.Exhaustive(), found.Coverage.Gaps()})
}
