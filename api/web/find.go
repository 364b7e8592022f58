package web

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/suggest"
)

var (
	findTemplate    = layout.Parse(templates, "templates/find.html", "templates/place.html")
	symbolsTemplate = layout.Parse(templates, "templates/symbols.html", "templates/place.html")
)

// symbolsFound is how many symbols the page of them lists.
const symbolsFound = 100

// find is the page on which a file is found by a few letters of its path. A
// script shows its list in a dialog of other pages.
func (p *reading) find(ctx context.Context, v *layout.Visit, l place) error {
	r, err := p.suggester.Files(ctx, v.Viewer, suggest.FilesRequest{Repo: l.Repo, Ref: l.Rev, Query: v.Query.Get("query")})
	if err != nil {
		return err
	}

	type found struct {
		URL   string
		Shown string
	}
	data := struct {
		place
		Query, Total string
		Cut          bool
		Rows         []found
	}{place: l, Query: v.Query.Get("query"), Total: counted(r.Total, "file", "files"), Cut: r.Cut}

	for _, f := range r.Paths {
		data.Rows = append(data.Rows, found{l.At("blob", f.Path), f.Path})
	}
	return v.Show(layout.Head{Title: "Find a file of " + l.Repo, Page: "find", Scripts: []string{"js/file.js"}}, findTemplate, data)
}

// symbolList is the page on which a symbol of a repository is found.
type symbolList struct {
	place
	Query, Said string
	Rows        []symbolRow
	Similar     []similarName
}

// symbolRow is a definition with its place.
type symbolRow struct{ Name, Kind, In, Where, URL string }

// similarName is a name that may be meant, with the page that looks for it.
type similarName struct{ Name, URL string }

// symbols is the page on which a symbol is found by a few letters of its name. A script
// shows its list in a dialog of other pages.
func (p *reading) symbols(ctx context.Context, v *layout.Visit, l place) error {
	data := &symbolList{place: l, Query: strings.TrimSpace(v.Query.Get("query"))}
	if err := p.findSymbols(ctx, v, data); err != nil {
		return err
	}
	return v.Show(layout.Head{Title: "Find a symbol of " + l.Repo, Page: "find", Scripts: []string{"js/file.js"}}, symbolsTemplate, data)
}

// findSymbols fills the page with what its letters find.
func (p *reading) findSymbols(ctx context.Context, v *layout.Visit, data *symbolList) error {
	switch {
	case !data.Indexed:
		data.Said = "The index does not have this revision: symbols are found by name where it is indexed. A file of any commit lists its own."
		return nil
	case data.Query == "":
		data.Said = "Letters of the name, in their order: hdlreq finds handleRequest."
		return nil
	case len(data.Query) > suggest.MaxName:
		data.Said = fmt.Sprintf("A name has at most %d bytes here.", suggest.MaxName)
		return nil
	}

	r, err := p.suggester.Symbols(ctx, v.Viewer, suggest.SymbolsRequest{Repo: data.Repo, Ref: data.Rev, Query: data.Query, Limit: symbolsFound})
	if err != nil {
		return err
	}

	for _, x := range r.Symbols {
		row := symbolRow{Name: x.Name, Kind: x.Kind, Where: fmt.Sprintf("%s:%d", x.Path, x.Line)}
		if x.ParentName != "" {
			row.In = " in " + x.ParentName
		}
		row.URL = fmt.Sprintf("%s#L%d", lines(data.At("blob", x.Path), x.Path), x.Line)
		data.Rows = append(data.Rows, row)
	}
	for _, name := range r.Similar {
		data.Similar = append(data.Similar, similarName{name, data.At("symbols", "") + "?" + url.Values{"query": {name}}.Encode()})
	}

	data.Said = counted(len(r.Symbols), "symbol", "symbols")
	if r.Cut {
		data.Said += "; there may be more: further letters leave fewer"
	}
	return nil
}
