package api

import (
	"context"

	"github.com/shoalsearch/shoal/node/suggest"
	"github.com/shoalsearch/shoal/shard/query"
)

type explanationJSON struct {
	Tokens    []tokenJSON   `json:"tokens"`
	Canonical string        `json:"canonical,omitempty"`
	Warnings  []warningJSON `json:"warnings"`
	Error     *mistakeJSON  `json:"error,omitzero"`
}

type tokenJSON struct {
	Kind    string `json:"kind"`
	Start   int    `json:"start"`
	End     int    `json:"end"`
	Text    string `json:"text"`
	Meaning string `json:"meaning,omitempty"`
}

type warningJSON struct {
	Start      int    `json:"start"`
	End        int    `json:"end"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion,omitempty"`
}

type mistakeJSON struct {
	Message    string `json:"message"`
	Offset     int    `json:"offset"`
	Length     int    `json:"length"`
	Expected   string `json:"expected"`
	Suggestion string `json:"suggestion,omitempty"`
}

// query is GET /api/query: how a search would understand a text. What is no query
// is no failure of this request.
func (a *suggestRoutes) query(_ context.Context, c *call) error {
	p := c.params()
	text := p.text("query")
	opt := query.Options{Regexp: p.flag("isRegexEnabled", false), CaseSensitive: p.flag("isCaseSensitivityEnabled", false)}
	if err := p.err(); err != nil {
		return err
	}

	e := suggest.Explain(text, opt)
	out := explanationJSON{Tokens: make([]tokenJSON, len(e.Tokens)), Canonical: e.Canonical, Warnings: make([]warningJSON, len(e.Warnings))}
	for i, t := range e.Tokens {
		out.Tokens[i] = tokenJSON{string(t.Kind), t.Start, t.End, t.Text, t.Meaning}
	}
	for i, w := range e.Warnings {
		out.Warnings[i] = warningJSON(w)
	}
	if e.Mistake != nil {
		wrong := mistakeJSON(*e.Mistake)
		out.Error = &wrong
	}
	return c.json(out)
}
