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
	mostSymbols = 250    // drawn beside a file; the filter finds the others
	mostKnown   = 20_000 // in the page's data, for the filter
	deepestRow  = 6      // level of the deepest rows
)

// outline has the definitions of a file, in the order of lines.
type outline struct {
	place
	Rows []outlineRow // the first mostSymbols
	All  string       // for a script, the first mostKnown: one a line with first, last, kind and name, separated by tabs
	More string       // a sentence if there are more symbols than rows, otherwise ""

	Unknown bool // the symbols could not be found
}

// outlineRow is a symbol with its nesting level; 1 is the top.
type outlineRow struct {
	browse.OutlineSymbol
	Level int
}

// outlineRows returns a row for each symbol, one level below the symbols whose lines include its own.
func outlineRows(symbols []browse.OutlineSymbol) []outlineRow {
	rows := make([]outlineRow, len(symbols))
	var ends []int // last lines of the enclosing symbols, the outermost first
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

// References returns the page with the references to a name in this repository.
func (o *outline) References(name string) string {
	return o.At("names", "") + "?" + namesQuery(name, false)
}

// outlineOf returns the outline of a file for its page.
func outlineOf(l place, f *browse.OutlineFile) *outline {
	symbols := f.Symbols

	// Not JSON, because each quote takes five bytes in an attribute.
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

// symbols draws the outline of a file; "" if the file has no symbols, or after an error.
func (p *sources) symbols(ctx context.Context, v *layout.Visit, l place) template.HTML {
	r, err := p.reader.Outline(ctx, v.Viewer, browse.OutlineRequest{Repo: l.Repo, Ref: l.Rev, Paths: []string{l.Path}})
	if err != nil || len(r.Files) != 1 || len(r.Files[0].Symbols) == 0 && !r.Files[0].Unknown {
		return ""
	}

	var b bytes.Buffer
	if err := fileTemplate.ExecuteTemplate(&b, "symbols", outlineOf(l, &r.Files[0])); err != nil {
		return ""
	}
	return template.HTML(b.String())
}
