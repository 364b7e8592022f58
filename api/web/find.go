package web

import (
	"context"
	"fmt"
	"html/template"
	"net/url"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/suggest"
)

var findTemplate = layout.Parse(templates, "templates/find.html", "templates/place.html")

// maxFoundSymbols limits the symbols that the page for finding them lists.
const maxFoundSymbols = 100

// finder is a page that finds a file or a symbol by a few letters. A script shows its list in a dialog
// of other pages.
type finder struct {
	place
	What, Letters string // Files by path, or Symbols by name
	Query, Said   string // Said says how many were found, or what to type
	Rows          []foundRow
	Similar       []foundRow // similar names, with the addresses that find them
}

// foundRow is one result: a path, or a name with its kind and location.
type foundRow struct {
	URL, Name, Kind, In, Where string
	Label                      template.HTML // a path with its matching letters marked
}

// show shows the page of a finder.
func (f *finder) show(v *layout.Visit, title string) error {
	return v.Show(layout.Head{Title: title + " of " + f.Repo, Page: "find", Scripts: []string{"js/file.js"}}, findTemplate, f)
}

// find shows the page that finds a file by some letters of its path.
func (p *reading) find(ctx context.Context, v *layout.Visit, l place) error {
	r, err := p.suggester.Files(ctx, v.Viewer, suggest.FilesRequest{Repo: l.Repo, Ref: l.Rev, Query: v.Query.Get("query")})
	if err != nil {
		return err
	}

	page := &finder{place: l, What: "Files", Letters: "path", Query: v.Query.Get("query"), Said: counted(r.Total, "file", "files")}
	if r.Cut {
		page.Said += "; the repository has more files than are looked at"
	}
	for _, f := range r.Paths {
		marks := make([]span, len(f.At))
		for i, at := range f.At {
			marks[i] = span{at, at + 1}
		}
		page.Rows = append(page.Rows, foundRow{URL: l.At("blob", f.Path), Label: template.HTML(appendPath(nil, f.Path, marks))})
	}
	return page.show(v, "Find a file")
}

// symbols shows the page that finds a symbol by some letters of its name.
func (p *reading) symbols(ctx context.Context, v *layout.Visit, l place) error {
	page := &finder{place: l, What: "Symbols", Letters: "name", Query: strings.TrimSpace(v.Query.Get("query"))}
	if err := p.findSymbols(ctx, v, page); err != nil {
		return err
	}
	return page.show(v, "Find a symbol")
}

// findSymbols adds to the page the symbols that its letters find, or a sentence that says why it finds
// none.
func (p *reading) findSymbols(ctx context.Context, v *layout.Visit, page *finder) error {
	switch {
	case !page.Indexed:
		page.Said = "The index does not have this revision: symbols are found by name where it is indexed. A file of any commit lists its own."
		return nil
	case page.Query == "":
		page.Said = "Letters of the name, in their order: hdlreq finds handleRequest."
		return nil
	case len(page.Query) > suggest.MaxName:
		page.Said = fmt.Sprintf("A name has at most %d bytes here.", suggest.MaxName)
		return nil
	}

	r, err := p.suggester.Symbols(ctx, v.Viewer, suggest.SymbolsRequest{Repo: page.Repo, Ref: page.Rev, Query: page.Query, Limit: maxFoundSymbols})
	if err != nil {
		return err
	}

	for _, x := range r.Symbols {
		row := foundRow{URL: lineOf(page.At("blob", x.Path), x.Path, x.Line), Name: x.Name, Kind: x.Kind, Where: fmt.Sprintf("%s:%d", x.Path, x.Line)}
		if x.ParentName != "" {
			row.In = " in " + x.ParentName
		}
		page.Rows = append(page.Rows, row)
	}
	for _, name := range r.Similar {
		page.Similar = append(page.Similar, foundRow{Name: name, URL: page.At("symbols", "") + "?" + url.Values{"query": {name}}.Encode()})
	}

	page.Said = counted(len(r.Symbols), "symbol", "symbols")
	if r.Cut {
		page.Said += "; there may be more: further letters leave fewer"
	}
	return nil
}
