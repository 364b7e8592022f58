package web

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	"slices"
	"unicode"
	"unicode/utf8"

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
	File, URL, Kind string
	Line            int
	Code            template.HTML
	outside         bool // in a comment or a text
}

// Where is the line for display.
func (l namedLine) Where() string { return fmt.Sprintf("%s:%d", l.File, l.Line) }

// byFile splits lines by their files, which keep their order.
func byFile(lines []namedLine) (out [][]namedLine) {
	for _, l := range lines {
		i := slices.IndexFunc(out, func(of []namedLine) bool { return of[0].File == l.File })
		if i < 0 {
			i, out = len(out), append(out, nil)
		}
		out[i] = append(out[i], l)
	}
	return out
}

// namesPage is what the page, the panel and the card of a name show.
type namesPage struct {
	place
	Name, Whole, Other      string
	All, Found              bool
	Defined, Used, Said     [][]namedLine // by file; Said in comments and texts
	Definitions, References string
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

	data := namesPage{
		place: l, Name: name, All: all, Whole: l.At("names", "") + "?" + namesQuery(name, all), Other: l.At("names", "") + "?" + namesQuery(name, !all),
		Definitions: atLeast(definitions, "definition", "definitions"), References: atLeast(references, "reference", "references"),
	}
	defined := p.namedLines(definitions, name, l)

	used := p.namedLines(references, name, l)

	// A card only has room for a few lines.
	if v.Part == "card" {
		data.Found = len(defined)+len(used) > 0
		data.Defined = byFile(defined[:min(len(defined), cardLines)])
		return v.Show(layout.Head{}, cardTemplate, data)
	}
	said := slices.DeleteFunc(slices.Clone(used), func(l namedLine) bool { return !l.outside })
	data.Defined, data.Said = byFile(defined), byFile(said)
	data.Used = byFile(slices.DeleteFunc(used, func(l namedLine) bool { return l.outside }))
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
func (p *reading) namedLines(r *symbols.SymbolResponse, name string, l place) []namedLine {
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
			line := bytes.TrimLeft(m.Line[:min(len(m.Line), longestLine)], " \t")
			row := namedLine{File: f.Path, Line: int(m.Range.Start.Line), Kind: m.Kind, outside: m.OutsideCode}
			row.URL = lineOf(address(f.Repository, rev, "blob", f.Path), f.Path, row.Line)

			// A use says what it stands in.
			if m.Around.Name != "" {
				row.Kind = "in " + layout.Plain(m.Around.Name)
			}

			if f.Repository != l.Repo {
				row.File = f.Repository + " › " + f.Path
			}

			// A name may stand twice in a line.
			paint := newPainter(f.Language, m.Open)
			row.Code = template.HTML(appendCode(nil, line, paint.colours(line), spansOf(line, name)))
			if !slices.Contains(out, row) {
				out = append(out, row)
			}
		}
	}
	return out
}

// spansOf returns where a line has a name that is no part of a longer one.
func spansOf(line []byte, name string) (out []span) {
	for at := 0; ; {
		i := bytes.Index(line[at:], []byte(name))
		if i < 0 {
			return out
		}
		from := at + i
		at = from + len(name)
		before, _ := utf8.DecodeLastRune(line[:from])
		after, _ := utf8.DecodeRune(line[at:])
		if !isNameRune(before) && !isNameRune(after) {
			out = append(out, span{from, at})
		}
	}
}

func isNameRune(r rune) bool {
	return r == '_' || unicode.IsDigit(r) || unicode.IsLetter(r)
}
