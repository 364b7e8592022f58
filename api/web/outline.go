package web

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/browse"
)

const (
	mostSymbols = 250   // that stand beside a file from the start; the filter finds the others
	mostKnown   = 2_000 // that a page has in all
	deepestRow  = 6     // level of a row
)

// outline is the definitions of a file, in the order of their lines.
type outline struct {
	place
	Rows []outlineRow // the first mostSymbols
	All  string       // for a script, the first mostKnown: a line of first, last, kind, name each, with tabs between
	More string       // says that there are more than the rows; "" where there are not

	Unknown bool // the symbols could not be found
}

// outlineRow is a symbol, and how deep it stands in others: 1 is in none.
type outlineRow struct {
	browse.OutlineSymbol
	Level int
}

// outlineRows puts symbols below those whose lines they are among.
func outlineRows(symbols []browse.OutlineSymbol) []outlineRow {
	rows := make([]outlineRow, len(symbols))
	var ends []int // last lines of what the symbol is in, the outermost first
	for i, s := range symbols {
		for len(ends) > 0 && ends[len(ends)-1] < max(s.First, s.Last) {
			ends = ends[:len(ends)-1]
		}
		rows[i] = outlineRow{s, min(len(ends)+1, deepestRow)}
		if s.Last > s.First {
			ends = append(ends, s.Last)
		}
	}
	return rows
}

// References is the address of the references of a name, in this repository.
func (o *outline) References(name string) string {
	return o.At("names", "") + "?" + namesQuery(name, false)
}

// outlineOf is the definitions of a file as a page has them.
func outlineOf(l place, f *browse.OutlineFile) *outline {
	symbols := f.Symbols

	// No quotes, each of which would be five bytes in an attribute.
	var all strings.Builder
	for _, s := range symbols[:min(len(symbols), mostKnown)] {
		fmt.Fprintf(&all, "%d\t%d\t%s\t%s\n", s.First, s.Last, s.Kind, layout.Plain(s.Name))
	}
	o := &outline{place: l, Rows: outlineRows(symbols[:min(len(symbols), mostSymbols)]), All: all.String(), Unknown: f.Unknown}

	if n := len(symbols); n > mostSymbols {
		o.More = "The first " + grouping(mostSymbols) + " of " + grouping(n) + "."
		if n > mostKnown {
			o.More += " The filter looks through " + grouping(mostKnown) + "."
		}
	}
	return o
}

// symbols is the outline of a file, empty where there is none to be had.
func (p *sources) symbols(ctx context.Context, v *layout.Visit, l place) template.HTML {
	r, err := p.reader.Outline(ctx, v.Viewer, browse.OutlineRequest{Repo: l.Repo, Ref: l.Rev, Paths: []string{l.Path}})
	// A file has lines without it, so that what fails here is no failure of the page.
	if err != nil || len(r.Files) != 1 || len(r.Files[0].Symbols) == 0 && !r.Files[0].Unknown {
		return ""
	}

	var b bytes.Buffer
	if err := fileTemplate.ExecuteTemplate(&b, "symbols", outlineOf(l, &r.Files[0])); err != nil {
		return ""
	}
	return template.HTML(b.String())
}
