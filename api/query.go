package api

import (
	"context"

	"github.com/shoalsearch/shoal/node/suggest"
	"github.com/shoalsearch/shoal/shard/query"
)

// query handles GET /api/query: how a search would understand a query. An invalid query is not an
// error of this request.
func (a *suggestRoutes) query(_ context.Context, c *call) error {
	p := c.params()
	text := p.text("query")
	opt := query.Options{Regexp: p.flag("isRegexEnabled", false), CaseSensitive: p.flag("isCaseSensitivityEnabled", false)}
	if err := p.err(); err != nil {
		return err
	}
	return c.json(suggest.Explain(text, opt))
}
