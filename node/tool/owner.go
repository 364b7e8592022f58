package tool

import (
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/node/symbols"
)

// owner is the type that a method is asked for with, as Store in Store.Close.
type owner struct {
	name    string
	defined *symbols.SymbolResponse // where the method is defined in it
}

// owner is nil where the name is asked for without a type.
func (l *lookup) owner() (*owner, error) {
	scope, _ := qualifiedName(l.Text("symbol"))
	if scope == "" {
		return nil, nil
	}

	// The type may be defined outside of what the uses are looked for in.
	req := symbols.SymbolRequest{Symbol: l.Text("symbol"), Repo: l.Text("repo"), Revision: l.Text("ref"), Paths: paths.Filter{Repos: l.List("repo")}}
	defined, err := l.search.Definitions(l.ctx, l.viewer, req)
	if err != nil {
		return nil, err
	}
	return &owner{name: scope[strings.LastIndexAny(scope, ".:#")+1:], defined: defined}, nil
}

// mostOwned is how many definitions stand above uses: such a line says less than the call
// that asks for it costs.
const mostOwned = 5

// text tells where the method is defined, with a line for each place; "" for
// nowhere.
func (o *owner) text(l *lookup) string {
	var out strings.Builder
	shown := 0
	for i := range o.defined.Files {
		f := &o.defined.Files[i]
		for k := range f.Matches {
			if shown == mostOwned {
				fmt.Fprintf(&out, "Defined at %d more places: %s\n", o.defined.MatchCount-shown, callOf("find_symbol_definitions", "symbol", l.Text("symbol"), "repo", l.values["repo"], "ref", l.Text("ref")))
				return out.String()
			}
			shown++
			out.WriteString(l.definedAtLine(f, &f.Matches[k]))
		}
	}
	return out.String()
}

// definedAtLine tells of one definition, above the uses.
func (l *lookup) definedAtLine(f *symbols.SymbolFile, m *symbols.SymbolMatch) string {
	where := fileLabel(f.Path)
	if l.Text("repo") == "" {
		where = f.Repository + " " + where
	}
	return fmt.Sprintf("Defined at %s:%d [%s]: %s\n", where, m.Range.Start.Line, kindText(m), cut(strings.TrimSpace(clean(m.Line)), 0, 0))
}

// definedText tells where a name that is asked for without a type is defined, of
// what its uses were looked for in; "" for nowhere.
func (l *lookup) definedText(files []symbols.SymbolFile) string {
	var out strings.Builder
	places := 0
	for i := range files {
		for k := range files[i].Matches {
			// Each file of a package names it: that tells nothing of its uses.
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
		fmt.Fprintf(&out, "Defined at %s: %s\n", count(places-mostOwned, "more place"), callOf("find_symbol_definitions", "symbol", l.Text("symbol"),
			"repo", l.values["repo"], "path", l.Text("path"), "ref", l.Text("ref")))
	}
	return out.String()
}
