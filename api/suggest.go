package api

import (
	"context"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/web"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/suggest"
)

// suggestRoutes handles the completion of queries, paths and symbols, and explains queries.
type suggestRoutes struct {
	suggester web.Suggester
	outliner  browse.Files
}

func (a *suggestRoutes) routes() []route {
	return []route{
		newRoute("GET", "/api/suggest", accessRead, quickTimeout, a.suggest),
		newRoute("GET", "/api/query", accessRead, quickTimeout, a.query),
		newRoute("GET", "/api/files", accessRead, browseTimeout, a.files),
		newRoute("GET", "/api/symbols", accessRead, browseTimeout, a.symbols),
	}
}

// newSuggester makes the suggester of a node. It spends at most the time within on one completion.
func newSuggester(n *node.Node, within time.Duration) web.Suggester {
	return suggest.New(suggest.Deps{Search: n.Search, Browse: n.Browse, Within: within, Contexts: func(ctx context.Context, v catalog.Viewer) ([]suggest.Context, error) {
		all, err := n.Config.Contexts(ctx, v)
		out := make([]suggest.Context, len(all))
		for i, c := range all {
			out[i] = suggest.Context{Name: c.Name, Description: c.Description}
		}
		return out, err
	}})
}

// suggest handles GET /api/suggest.
func (a *suggestRoutes) suggest(ctx context.Context, c *call) error {
	p := c.params()
	text := p.text("query")
	cursor := p.integer("cursor", len(text), 0, suggest.MaxQuery)
	if err := p.err(); err != nil {
		return err
	}

	return c.answer(a.suggester.Complete(ctx, c.viewer, text, cursor))
}

// files handles GET /api/files: the paths of a repository that match a query.
func (a *suggestRoutes) files(ctx context.Context, c *call) error {
	p := c.params()
	req := suggest.FilesRequest{Repo: p.required("repo"), Ref: p.text("ref"), Query: p.text("query"), Limit: p.integer("limit", 50, 1, suggest.MaxPaths)}
	if err := p.err(); err != nil {
		return err
	}
	return c.answer(a.suggester.Files(ctx, c.viewer, req))
}

// symbols handles GET /api/symbols: the definitions in a file or directory, or with the parameter
// query the symbols with a name.
func (a *suggestRoutes) symbols(ctx context.Context, c *call) error {
	p := c.params()
	if _, byName := c.arg("query"); byName {
		return a.namedSymbols(ctx, c, p)
	}

	// Refuse parameters that have no effect without a query.
	if _, limited := c.arg("limit"); limited {
		p.wrong("limit", "only beside query; of a file all symbols are listed")
	}
	if _, signed := c.arg("signature"); signed {
		p.wrong("signature", "only beside query; of a file the parameters of functions are told in any case")
	}
	req := browse.OutlineRequest{Repo: p.required("repo"), Ref: p.text("ref"), Paths: []string{p.required("path")}}
	if err := p.err(); err != nil {
		return err
	}
	r, err := a.outliner.Outline(ctx, c.viewer, req)
	if err != nil {
		return err
	}

	// The path may be a directory: join the symbols of all its files.
	out := suggest.SymbolsResponse{Commit: r.Commit, Cut: r.Cut}
	for _, f := range r.Files {
		if f.Unknown {
			out.Unknown = append(out.Unknown, f.Path)
		}
		for _, x := range f.Symbols {
			out.Symbols = append(out.Symbols, suggest.FoundSymbol{
				Name: x.Name, Kind: x.Kind, ParentName: x.ParentName, ParentKind: x.ParentKind, Signature: x.Signature, Line: x.First, Last: x.Last,
			})
		}
	}
	return c.json(out)
}

// namedSymbols handles GET /api/symbols with the parameter query.
func (a *suggestRoutes) namedSymbols(ctx context.Context, c *call, p *params) error {
	req := suggest.SymbolsRequest{Repo: p.required("repo"), Ref: p.text("ref"), Query: p.required("query"), Limit: p.integer("limit", 50, 1, suggest.MaxSymbols), Signature: p.flag("signature", false)}

	// Refuse a path together with a query, and queries that no name can match.
	switch _, inFile := c.arg("path"); {
	case inFile:
		p.wrong("path", "give path for the symbols of a file, or query for those of a name, not both")
	case len(req.Query) > suggest.MaxName || strings.Contains(req.Query, "\n") || req.Query != "" && strings.TrimSpace(req.Query) == "":
		p.wrong("query", "expected a name of 1 to %d bytes on one line", suggest.MaxName)
	}
	if err := p.err(); err != nil {
		return err
	}

	return c.answer(a.suggester.Symbols(ctx, c.viewer, req))
}
