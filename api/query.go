package api

import (
	"context"

	"github.com/shoalsearch/shoal/node/suggest"
	"github.com/shoalsearch/shoal/shard/query"
)

// query is GET /api/query: how a search would understand a text. What is no query
// is no failure of this request.
func (a *suggestRoutes) query(_ context.Context, c *call) error {
	p := c.params()
	text := p.text("query")
	opt := query.Options{Regexp: p.flag("isRegexEnabled", false), CaseSensitive: p.flag("isCaseSensitivityEnabled", false)}
	if err := p.err(); err != nil {
		return err
	}
	return c.json(suggest.Explain(text, opt))
}
