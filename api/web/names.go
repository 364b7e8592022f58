package web

import (
	"context"
	"fmt"
	"html/template"
	"slices"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/symbols"
)

var (
	namesTemplate = layout.Parse(templates, "templates/names.html", "templates/place.html")
	cardTemplate  = namesTemplate.Lookup("card")
)

// Limits of the page of a name.
const (
	namedFiles  = 30  // of each list
	mostNamed   = 100 // of each list
	longestName = 200
	cardLines   = 3 // definitions on a card
)

// namedLine is a line with the name.
type namedLine struct {
	Where, URL, Kind string
	Code             template.HTML
}

// names shows where a name is defined and used: in this repository, or in all with scope=all.
// Places are found by name, not by a compiler, and the page says so. Scripts show it in a panel
// next to a file, and the first definitions on a card at the name.
func (p *reading) names(ctx context.Context, v *layout.Visit, l place) error {
	name := v.Query.Get("name")
	if name == "" || len(name) > longestName {
		return call.Fail(call.ErrInvalid, "name is what to look for: 1 to %d bytes.", longestName)
	}

	req := symbols.SymbolRequest{Symbol: name, Repo: l.Repo, Revision: l.Rev, Limit: namedFiles}

	all := v.Query.Get("scope") == "all"
	// Other repositories do not have this revision.
	if all {
		req.Repo, req.Revision = "", ""
	}

	definitions, err := p.searcher.Definitions(ctx, v.Viewer, req)
	if err != nil {
		return err
	}

	references, err := p.searcher.References(ctx, v.Viewer, req)
	if err != nil {
		return err
	}

	data := struct {
		place
		Name, Whole, Other      string
		All                     bool
		Defined, Used           []namedLine
		Definitions, References string
	}{
		place: l, Name: name, All: all, Defined: p.namedLines(definitions, l), Used: p.namedLines(references, l),
		Definitions: atLeast(definitions, "definition", "definitions"), References: atLeast(references, "reference", "references"),
	}

	data.Whole, data.Other = l.At("names", "")+"?"+namesQuery(name, all), l.At("names", "")+"?"+namesQuery(name, !all)

	// A card only has room for a few lines.
	if v.Part == "card" {
		data.Defined = data.Defined[:min(len(data.Defined), cardLines)]
		return v.Show(layout.Head{}, cardTemplate, data)
	}
	return v.Show(layout.Head{Title: name, Page: "names", Scripts: []string{"js/file.js"}}, namesTemplate, data)
}

func namesQuery(name string, all bool) string {
	v := "name=" + template.URLQueryEscaper(name)
	if all {
		v += "&scope=all"
	}
	return v
}

// atLeast returns the number of found places, with a plus if there may be more.
func atLeast(r *symbols.SymbolResponse, one, many string) string {
	text := counted(r.MatchCount, one, many)
	if !r.Coverage.Exhaustive() {
		text = "≥ " + text
	}
	return text
}

// namedLines turns the symbols of an answer into rows with links. Rows of the page's repository
// link to the page's revision.
func (p *reading) namedLines(r *symbols.SymbolResponse, l place) []namedLine {
	var out []namedLine
	for i := range r.Files {
		f := &r.Files[i]
		// The revision may not exist in other repositories.
		rev := ""
		if f.Repository == l.Repo {
			rev = l.Rev
		}

		for k := range f.Matches {
			if len(out) == mostNamed {
				return out
			}

			m := &f.Matches[k]
			// A line may be a whole file, so show its beginning.
			line := m.Line[:min(len(m.Line), longestLine)]
			row := namedLine{Where: f.Path, URL: lineOf(address(f.Repository, rev, "blob", f.Path), f.Path, int(m.Range.Start.Line)), Kind: m.Kind}

			// A use says what it stands in.
			switch {
			case m.OutsideCode:
				row.Kind = "comment or text"
			case m.Around.Name != "":
				row.Kind = "in " + layout.Plain(m.Around.Name)
			}

			if f.Repository != l.Repo {
				row.Where = f.Repository + " › " + f.Path
			}
			row.Where += fmt.Sprintf(":%d", m.Range.Start.Line)

			// A name may stand twice in a line.
			paint := newPainter(f.Language, m.Open)
			row.Code = template.HTML(appendCode(nil, line, paint.colours(line), nil))
			if !slices.Contains(out, row) {
				out = append(out, row)
			}
		}
	}
	return out
}
