package tool

import (
	"fmt"
	"path"
	"strings"

	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/node/symbols"
)

// owner is the type in the name of a requested method, such as Store in Store.Close, or the package of
// a function of Go.
type owner struct {
	name     string
	defined  *symbols.SymbolResponse // where the method is defined in it
	packages map[[2]string]bool      // directories of the packages of a function of Go, by repository; nil for a method
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
	o := &owner{name: scope[strings.LastIndexAny(scope, ".:#")+1:], defined: defined}
	var places []definedPlace
	for i := range defined.Files {
		f := &defined.Files[i]
		for k := range f.Matches {
			m := &f.Matches[k]
			places = append(places, definedPlace{repo: f.Repository, path: f.Path, lang: f.Language, parentKind: m.ParentKind})
		}
	}
	o.packages = packagesOf(places)
	return o, nil
}

// packagesOf returns the directories of the packages that define a function of Go, by repository; nil if
// something else has the name too.
func packagesOf(places []definedPlace) map[[2]string]bool {
	dirs := map[[2]string]bool{}
	for _, p := range places {
		if p.lang != "Go" || p.parentKind != "package" {
			return nil
		}
		dirs[packageDir(p.repo, p.path)] = true
	}
	if len(dirs) == 0 {
		return nil
	}
	return dirs
}

// packageDir identifies the package of Go that a file is in: its repository and its directory.
func packageDir(repo, file string) [2]string { return [2]string{repo, path.Dir(file)} }

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
