package tool

import (
	"cmp"
	"fmt"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard"
)

// caller is a definition that calls a name, with the lines of the calls.
type caller struct {
	repo, path string
	symbol     symbols.SymbolMatch // Around has the name
	lines      []string
}

// callers adds the definitions that call a name, and their callers in turn. all has every
// definition of the name; places has those that the caller wants.
func (t *callTree) callers(name string, all, places []definedPlace, level int) error {
	t.followed[name] = true
	found, err := t.callersOf(name, places, len(all) > len(places))
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, c := range found {
		if around := c.symbol.Around; around.Name != "" && callable(around.Kind) {
			names[around.Name] = true
		}
	}
	var defined map[string][]definedPlace
	if level < t.Number("depth") && len(names) > 0 && t.lookups < mostLookups {
		if defined, err = t.define(slices.Sorted(maps.Keys(names))); err != nil {
			return err
		}
	}

	for _, c := range found {
		// Tests call nearly everything, and nobody calls a test.
		if level > 1 && !t.Has("tests") && shard.PathRank(c.path) == shard.RankTests {
			t.tested++
			continue
		}
		around := c.symbol.Around
		text := cmp.Or(scopedName(around.Name, around.ParentName, around.ParentKind), "(in no definition)")
		t.add(level, text, c.repo, c.path, strings.Join(c.lines, ","))
		on := func() error {
			all := defined[around.Name]
			return t.callers(around.Name, all, inType(all, shortScope(around.ParentName, around.ParentKind)), level+1)
		}
		if err := t.follow(around.Name, defined, on); err != nil {
			return err
		}
	}
	return nil
}

// callersOf returns the definitions that call a name, in the order of the reference search.
// namesakes means that other definitions have the same name.
func (t *callTree) callersOf(name string, places []definedPlace, namesakes bool) (found []*caller, err error) {
	t.lookups++
	req := t.request()
	req.Symbol = name
	r, err := t.search.References(t.ctx, t.viewer, req)
	if err != nil {
		return nil, err
	}
	u := usagesOf(name)
	counts := func(m *symbols.SymbolMatch, lang string) bool {
		called, known := calls(lang, name, m.Line)
		return !m.OutsideCode && (called || !known) && !u.labels(lang, m.Line) && !u.declares(lang, m.Line)
	}
	r.Files = slices.DeleteFunc(r.Files, func(f symbols.SymbolFile) bool { return !reaches(&f, name, places) })
	least := fewOthers
	if namesakes {
		least = 1
	}
	fits := t.fitting(name, places, r, counts, least)

	for i := range r.Files {
		f := &r.Files[i]
		in := map[string]*caller{}
		for m := range lines(f) {
			switch {
			case !counts(m, f.Language):
				continue
			case fits != nil && !fits(f, m):
				t.others++
				continue
			}
			key := m.Around.ParentName + "." + m.Around.Name
			if in[key] == nil {
				in[key] = &caller{repo: f.Repository, path: f.Path, symbol: *m}
				found = append(found, in[key])
			}
			in[key].lines = append(in[key].lines, fmt.Sprint(m.Range.Start.Line))
		}
	}
	return found, nil
}

// reaches reports whether code in a file can call one of the definitions: its language can call
// theirs, and an unexported name of Go is only called in its own directory.
func reaches(f *symbols.SymbolFile, name string, places []definedPlace) bool {
	return len(places) == 0 || slices.ContainsFunc(places, func(p definedPlace) bool {
		private := p.lang == "Go" && !token.IsExported(name)
		return symbols.Mixed(p.lang, f.Language) && (!private || path.Dir(p.path) == path.Dir(f.Path))
	})
}

// fitting returns a function that decides by its receiver whether a use may belong to one of the
// definitions; nil if receivers do not tell. A method's receiver is named like its type; a Go
// function's is its package.
func (t *callTree) fitting(name string, places []definedPlace, r *symbols.SymbolResponse, counts func(*symbols.SymbolMatch, string) bool, least int) func(*symbols.SymbolFile, *symbols.SymbolMatch) bool {
	types, packages := map[string]bool{}, map[string]bool{}
	for _, p := range places {
		types[shortScope(p.parent, p.parentKind)] = true
		packages[p.parent] = true
	}
	of := &lookup{t.about("symbol", name, t.Number("maxTokens")), t.ctx, t.viewer, t.search, t.browse}
	switch {
	case len(types) == 1 && !types[""]:
		by := of.receivers(&owner{name: shortScope(places[0].parent, places[0].parentKind)})
		if by.tellApart(r, counts, least) {
			return by.fits
		}
	case len(packages) == 1 && packagesOf(places) != nil:
		return of.receivers(&owner{name: places[0].parent, packages: packagesOf(places)}).fits
	}
	return nil
}
