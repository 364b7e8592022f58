package tool

import (
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/node/symbols"
)

// owner is the type in the name of a requested method, such as Store in Store.Close.
type owner struct {
	name    string
	defined *symbols.SymbolResponse // where the method is defined in it
}

// owner returns the type in the requested name, or nil if it has none.
func (l *lookup) owner() (*owner, error) {
	scope, _ := symbols.Qualified(l.Text("symbol"))
	if scope == "" {
		return nil, nil
	}

	// The type may be defined outside the searched paths.
	req := symbols.SymbolRequest{Symbol: l.Text("symbol"), Repo: l.Text("repo"), Revision: l.Text("ref"), Paths: paths.Filter{Repos: l.List("repo")}}
	defined, err := l.search.Definitions(l.ctx, l.viewer, req)
	if err != nil {
		return nil, err
	}
	return &owner{name: scope[strings.LastIndexAny(scope, ".:#")+1:], defined: defined}, nil
}

// mostOwned is the largest number of definitions shown above the uses. More are one call away.
const mostOwned = 5

// text returns a line for each definition of the method; "" if there are none.
func (o *owner) text(l *lookup) string {
	var out strings.Builder
	shown := 0
	for i := range o.defined.Files {
		f := &o.defined.Files[i]
		for k := range f.Matches {
			if shown == mostOwned {
				fmt.Fprintf(&out, "Defined at %s: see find_symbol_definitions\n", count(o.defined.MatchCount-shown, "more place"))
				return out.String()
			}
			shown++
			out.WriteString(l.definedAtLine(f, &f.Matches[k]))
		}
	}
	return out.String()
}

// definedAtLine describes one definition, above the uses.
func (l *lookup) definedAtLine(f *symbols.SymbolFile, m *symbols.SymbolMatch) string {
	where := fileLabel(f.Path)
	if l.Text("repo") == "" {
		where = f.Repository + " " + where
	}
	return fmt.Sprintf("Defined at %s:%d [%s]: %s\n", where, m.Range.Start.Line, kindIn(f.Path, m), headOf(m))
}

// longestHead is the number of bytes of the line of a definition that is shown where the definition is not
// what was asked for.
const longestHead = 120

// headOf returns the line of a definition, shortened at its end.
func headOf(m *symbols.SymbolMatch) string {
	text := strings.TrimSpace(clean(m.Line))
	if len(text) > longestHead {
		return cutEnd(text, longestHead)
	}
	return text
}

// definedText describes the definitions of a name without a type, in the searched files; "" if
// there are none.
func (l *lookup) definedText(files []symbols.SymbolFile) string {
	var out strings.Builder
	places := 0
	for i := range files {
		for k := range files[i].Matches {
			// Skip package clauses: every file of a package has one.
			m := &files[i].Matches[k]
			if m.Kind == "package" {
				continue
			}
			if places++; places <= mostOwned {
				out.WriteString(l.definedAtLine(&files[i], m))
			}
		}
	}

	if places > mostOwned {
		fmt.Fprintf(&out, "Defined at %s: see find_symbol_definitions\n", count(places-mostOwned, "more place"))
	}
	return out.String()
}
