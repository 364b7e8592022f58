package tool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/symbols"
)

// owner is the type that a method is asked for with, as Store in Store.Close.
type owner struct {
	name    string
	defined *symbols.SymbolResponse // where the method is defined in it
	rivals  []string                // plain letters of the other types that have a method of the name
}

// owner is nil where the name is asked for without a type.
func (l *lookup) owner() (*owner, error) {
	scope, _ := qualifiedName(l.Text("symbol"))
	if scope == "" {
		return nil, nil
	}

	// The type may be defined outside of what the uses are looked for in.
	req := symbols.SymbolRequest{Symbol: l.Text("symbol"), Repo: l.Text("repo"), Revision: l.Text("ref")}
	defined, err := l.search.Definitions(l.ctx, l.viewer, req)
	if err != nil {
		return nil, err
	}
	return newOwner(scope, defined), nil
}

// newOwner is the last name of a scope, as Store of store.Store.
func newOwner(scope string, defined *symbols.SymbolResponse) *owner {
	o := &owner{name: scope[strings.LastIndexAny(scope, ".:#")+1:], defined: defined}
	for _, other := range defined.OtherScopes {
		name := plainLetters(other[strings.LastIndexAny(other, ".:#")+1:])
		if name != "" && name != plainLetters(o.name) && !slices.Contains(o.rivals, name) {
			o.rivals = append(o.rivals, name)
		}
	}
	return o
}

// mostOwned is how many definitions of a method stand above its uses.
const mostOwned = 3

// text tells where the method is defined, with a line for each place; "" for
// nowhere.
func (o *owner) text(l *lookup) string {
	var out strings.Builder
	shown := 0
	for i := range o.defined.Files {
		f := &o.defined.Files[i]
		for k := range f.Matches {
			if shown == mostOwned {
				fmt.Fprintf(&out, "Defined at %d more places: %s\n", o.defined.MatchCount-shown, callOf("find_symbol_definitions", "symbol", l.Text("symbol"), "repo", l.Text("repo"), "ref", l.Text("ref")))
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

	// Of many the first are no better than the others.
	if places > mostOwned {
		return fmt.Sprintf("Defined at %d places: %s\n", places, callOf("find_symbol_definitions", "symbol", l.Text("symbol"),
			"repo", l.Text("repo"), "path", l.Text("path"), "ref", l.Text("ref")))
	}
	return out.String()
}

// nearDefinition puts the uses of the method in order where all repositories were
// asked: first those in a repository that defines it, then those in its language.
// A method of the same name in another language is another method.
func (o *owner) nearDefinition(r *symbols.SymbolResponse) {
	repos, languages := map[string]bool{}, map[string]bool{}
	for i := range o.defined.Files {
		repos[o.defined.Files[i].Repository] = true
		languages[o.defined.Files[i].Language] = true
	}

	// Stable, so that the order by relevance holds within each of the three.
	distance := func(f symbols.SymbolFile) int {
		switch {
		case !languages[f.Language]:
			return 2
		case !repos[f.Repository]:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(r.Files, func(a, b symbols.SymbolFile) int { return distance(a) - distance(b) })
}

// How likely a use is one of the owner, by the name of its receiver.
const (
	likeOwner   = iota // that of the type, or letters of it
	withOwner          // that of the type, with further words
	unlikeOwner        // another one, or that of another type with the method
)

// likeness judges the name of a receiver.
func (o *owner) likeness(receiver string) int {
	v, t := plainLetters(receiver), plainLetters(o.name)
	switch {
	case v == t:
		return likeOwner
	case o.isRival(v, t), !namedLike(receiver, o.name):
		return unlikeOwner
	case strings.Contains(v, t):
		return withOwner
	}
	return likeOwner
}

// isRival reports whether more of the name of a receiver is that of another type:
// boltStore is a BoltStore before it is a Store.
func (o *owner) isRival(v, t string) bool {
	own := 0
	if strings.Contains(v, t) {
		own = len(t)
	}
	return slices.ContainsFunc(o.rivals, func(rival string) bool {
		// Names of a letter or two are in most others.
		return len(rival) > own && (v == rival || len(rival) > 2 && strings.Contains(v, rival))
	})
}
