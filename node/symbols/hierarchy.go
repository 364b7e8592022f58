package symbols

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// HierarchyRequest asks which types extend or implement a type. Prefix, Letters, Kind and Revision
// are ignored.
type HierarchyRequest struct {
	SymbolRequest

	Up         bool // ask for the types that it extends instead
	Transitive bool // and those of these
}

// The limits of a hierarchy.
const (
	headLines   = 6    // around what was found of a head
	mostLevels  = 20   // of types that extend each other
	mostTypes   = 400  // of a level whose own are looked for
	mostOfHeads = 4000 // places of one level
)

// Hierarchy finds the types that extend or implement a type, by the names in heads of types. Go
// types implement interfaces by their methods. In the response, Of is the type that a result
// extends, and Defined is the requested type. For a method such as Type.method, it finds the
// methods that override it.
func (s *Finder) Hierarchy(ctx context.Context, v catalog.Viewer, req HierarchyRequest) (*SymbolResponse, error) {
	req.Prefix, req.Letters, req.Kind, req.Revision = false, false, "", ""
	h := &hierarchy{s: s, ctx: ctx, v: v, req: req, known: map[string]bool{}, out: &SymbolResponse{}}
	if err := h.begin(req.Symbol); err != nil {
		return nil, err
	}

	// If no type has the whole name but its scope is a type, the name means a method.
	scope, name := Qualified(req.Symbol)
	member := len(h.out.Defined) == 0 && scope != ""
	if member {
		if err := h.begin(scope); err != nil {
			return nil, err
		}
		if member = len(h.out.Defined) > 0; member {
			h.req.Transitive = true
		} else if err := h.begin(req.Symbol); err != nil { // a type that is defined elsewhere
			return nil, err
		}
	}

	asked := req.Symbol
	if member {
		asked = scope
	}
	var err error
	if h.namesakes, err = h.namesakesOf(asked); err != nil {
		return nil, err
	}
	if err := h.levels(); err != nil {
		return nil, err
	}
	h.arrange()
	if member {
		return h.members(name)
	}
	could := func(path string) bool { return HasHierarchy(shard.Language(path, nil)) }
	return h.out, s.addKept(ctx, v, req.SymbolRequest, h.out, could)
}

// HasHierarchy reports whether hierarchies can be found in a language.
func HasHierarchy(lang string) bool {
	return styles[lang] != nil || includes[lang] != nil || lang == "Go"
}

// hierarchy is a running request.
type hierarchy struct {
	s     *Finder
	ctx   context.Context
	v     catalog.Viewer
	req   HierarchyRequest
	names []string        // of the level that comes next
	known map[string]bool // names of all levels
	langs []string        // in which the type is defined
	out   *SymbolResponse

	namesakes *namesakes // nil if the request has no qualifier
}

// typeKinds lists ctags' kinds for types.
var typeKinds = []string{"class", "interface", "struct", "enum", "trait", "protocol", "object", "record", "module", "union", "type", "typedef", "mixin", "contract", "annotation", "talias", "alias"}

// keepTypes removes what is no type. In PHP an alias is an import: use A\B as C.
func keepTypes(r *SymbolResponse) {
	for i := range r.Files {
		f := &r.Files[i]
		f.Matches = slices.DeleteFunc(f.Matches, func(m SymbolMatch) bool {
			return !slices.Contains(typeKinds, m.Kind) || m.Kind == "alias" && f.Language == "PHP"
		})
	}
	r.dropEmpty()
}

// begin finds the definitions of the requested type, which may have a qualified name.
func (h *hierarchy) begin(symbol string) error {
	req := h.req.SymbolRequest
	req.Symbol = symbol
	req.Paths.Tests = "" // tests extend what is defined elsewhere
	defined, name, err := h.s.defined(h.ctx, h.v, req)
	if err != nil {
		return err
	}
	scope, _ := Qualified(symbol)
	if len(defined.Files) == 0 && scope != "" {
		if defined, err = h.s.definitions(h.ctx, h.v, req, name); err != nil {
			return err
		}
		defined.Files = slices.DeleteFunc(defined.Files, func(f SymbolFile) bool { return !inModule(f.Path, scope) })
	}
	keepTypes(defined)

	h.out = &SymbolResponse{Defined: defined.Files, Coverage: defined.Coverage}
	h.names, h.known, h.langs = []string{name}, map[string]bool{name: true}, nil
	for _, f := range defined.Files {
		h.langs = append(h.langs, f.Language)
	}
	places := placesOf(h.out.Defined)
	slices.SortStableFunc(h.out.Defined, func(a, b SymbolFile) int { return places[keyOf(&a)] - places[keyOf(&b)] })
	return nil
}

// levels finds the types of each level from those of the previous one.
func (h *hierarchy) levels() error {
	for level := 0; len(h.names) > 0; level++ {
		if level == mostLevels || len(h.names) > mostTypes {
			h.out.Coverage = h.out.Coverage.With(coverage.Gap{Kind: coverage.Limit})
			return nil
		}

		found, err := h.level(level)
		if err != nil {
			return err
		}
		h.add(found)

		if !h.req.Transitive {
			return nil
		}
		h.names = nil
		for _, f := range found.Files {
			for _, m := range f.Matches {
				if m.Name != "" && !h.known[m.Name] {
					h.known[m.Name] = true
					h.names = append(h.names, m.Name)
				}
			}
		}
	}
	return nil
}

// level finds the types one step away from the current names.
func (h *hierarchy) level(level int) (*SymbolResponse, error) {
	var found *SymbolResponse
	var err error
	if h.req.Up {
		found, err = h.above()
	} else {
		found, err = h.find(h.below(), h.extends)
	}
	if err == nil && level == 0 && !h.req.Up {
		err = h.settle(found)
	}

	// Match methods of Go types only for the requested type. A type with the methods of an
	// implementer also has those of the interface.
	if err == nil && level == 0 && !h.req.Up && (len(h.langs) == 0 || slices.Contains(h.langs, "Go")) {
		err = h.implement(found)
	}
	return found, err
}

// add adds the matches of a level to the answer.
func (h *hierarchy) add(found *SymbolResponse) {
	at := map[fileOf]int{}
	for i := range h.out.Files {
		at[keyOf(&h.out.Files[i])] = i
	}
	for _, f := range found.Files {
		i, ok := at[keyOf(&f)]
		if !ok {
			h.out.Files = append(h.out.Files, f)
			continue
		}
		h.out.Files[i].Matches = append(h.out.Files[i].Matches, f.Matches...)
	}
}

// arrange sorts the answer, removes duplicates and counts the matches.
func (h *hierarchy) arrange() {
	slices.Sort(h.out.Undefined)
	h.out.Undefined = slices.Compact(h.out.Undefined)
	h.out.MatchCount = 0
	for i := range h.out.Files {
		f := &h.out.Files[i]
		slices.SortStableFunc(f.Matches, func(a, b SymbolMatch) int { return int(a.Range.Start.Offset) - int(b.Range.Start.Offset) })
		f.Matches = slices.CompactFunc(f.Matches, func(a, b SymbolMatch) bool { return a.Range == b.Range && a.Name == b.Name && a.Of == b.Of })
		h.out.MatchCount += len(f.Matches)
	}
	places := placesOf(h.out.Files)
	slices.SortStableFunc(h.out.Files, func(a, b SymbolFile) int {
		return cmp.Or(places[keyOf(&a)]-places[keyOf(&b)], cmp.Compare(a.Repository, b.Repository), cmp.Compare(a.Path, b.Path))
	})
}

// members finds the methods with a name in the types of the hierarchy.
func (h *hierarchy) members(name string) (*SymbolResponse, error) {
	of, at := map[string]string{}, map[fileOf]bool{}
	for i := range h.out.Files {
		for _, m := range h.out.Files[i].Matches {
			of[m.Name] = m.Of
			at[keyOf(&h.out.Files[i])] = true
		}
	}

	// The method of the requested type is none of the answer. A namesake of it is in another file.
	own := map[fileOf]string{}
	for i := range h.out.Defined {
		f := &h.out.Defined[i]
		for _, m := range f.Matches {
			if of[m.Name] != m.Name || !at[keyOf(f)] {
				own[keyOf(f)] = m.Name
			}
		}
	}

	req := h.req.SymbolRequest
	req.Symbol = name
	found, err := h.s.definitions(h.ctx, h.v, req, name)
	if err != nil {
		return nil, err
	}
	found.Keep(func(m SymbolMatch) bool { _, ok := of[lastPart(m.ParentName)]; return ok })
	for i := range found.Files {
		f := &found.Files[i]
		f.Matches = slices.DeleteFunc(f.Matches, func(m SymbolMatch) bool { return own[keyOf(f)] == lastPart(m.ParentName) })
	}
	found.dropEmpty()
	for i := range found.Files {
		for k := range found.Files[i].Matches {
			m := &found.Files[i].Matches[k]
			m.Of = of[lastPart(m.ParentName)]
		}
	}
	found.Coverage = found.Coverage.And(h.out.Coverage)
	found.Defined = h.out.Defined
	h.out = found
	h.arrange()
	return h.out, nil
}

// alternatives returns an expression for any of the names, and anyOf one for any of them as a word.
func alternatives(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = nameExpr(name)
	}
	return strings.Join(quoted, "|")
}

func anyOf(names []string) string { return `\b(?:` + alternatives(names) + `)\b` }

// spoken reports whether types of a language can be in the hierarchy. If the language of the
// requested type is unknown, all can.
func (h *hierarchy) spoken(lang string) bool {
	return len(h.langs) == 0 || slices.ContainsFunc(h.langs, func(l string) bool {
		return l == lang || slices.ContainsFunc(related, func(g []string) bool { return slices.Contains(g, l) && slices.Contains(g, lang) })
	})
}

// related lists groups of languages whose types can extend each other.
var related = [][]string{
	{"Java", "Kotlin", "Scala", "Groovy"}, {"C", "C++", "Cuda", "Objective-C", "Objective-C++"}, {"Swift", "Objective-C", "Objective-C++"},
	{"TypeScript", "TSX", "JavaScript", "JSX", "Vue", "Svelte"}, {"Python", "Cython"},
}

// byStyle returns a query for each style that the hierarchy may have: the languages of the style,
// and the expression that text makes of it.
func (h *hierarchy) byStyle(text func(*style) string) (arms []query.Q) {
	langs := map[*style]*query.Or{}
	for _, lang := range slices.Sorted(maps.Keys(styles)) {
		if h.spoken(lang) {
			s := styles[lang]
			if langs[s] == nil {
				langs[s] = &query.Or{}
				arms = append(arms, &query.And{Subs: []query.Q{langs[s], &query.Text{Pattern: text(s), Regexp: true}}})
			}
			langs[s].Subs = append(langs[s].Subs, &query.Lang{Name: lang})
		}
	}
	return arms
}

// written inserts names into an expression of a style, which may have several places for them.
func written(expr, names string) string {
	if strings.Contains(expr, "%[1]s") {
		return fmt.Sprintf(expr, names)
	}
	return strings.Replace(expr, "%s", names, 1)
}

// includeExpr returns an expression for lines that add supertypes to the enclosing type.
func includeExpr(lang, names string) string {
	return `^[ \t]*(?:` + strings.Join(includes[lang], "|") + `)\b[^\n#]*` + names
}

// below returns a query for heads that may extend one of the names.
func (h *hierarchy) below() query.Q {
	names := anyOf(h.names)
	arms := h.byStyle(func(s *style) string { return written(s.expr, names) })
	for _, lang := range slices.Sorted(maps.Keys(includes)) {
		if h.spoken(lang) {
			text := &query.Text{Pattern: includeExpr(lang, names), Regexp: true}
			arms = append(arms, &query.And{Subs: []query.Q{&query.Lang{Name: lang}, text}})
		}
	}
	if h.spoken("Go") {
		text := &query.Text{Pattern: embedExpr(names), Regexp: true}
		arms = append(arms, &query.And{Subs: []query.Q{&query.Lang{Name: "Go"}, text}})
	}
	return &query.Or{Subs: arms}
}

// named returns a query for the heads that define the types with h.names.
func (h *hierarchy) named() query.Q {
	names := anyOf(h.names)
	arms := h.byStyle(func(s *style) string { return written(s.named, names) })
	for _, lang := range slices.Sorted(maps.Keys(includes)) {
		if h.spoken(lang) {
			head := &query.Text{Pattern: `\b(?:class|module|trait|defmodule)\s+` + scopes + names, Regexp: true}
			lines := &query.Or{Subs: []query.Q{head, &query.Text{Pattern: includeExpr(lang, `\w`), Regexp: true}}}
			arms = append(arms, &query.And{Subs: []query.Q{&query.Lang{Name: lang}, head, lines}})
		}
	}
	return &query.Or{Subs: arms}
}

// find searches for heads of types, and returns the matches that read finds in each file.
func (h *hierarchy) find(q query.Q, read func(f *search.File) []SymbolMatch) (*SymbolResponse, error) {
	l, err := h.req.lookup(wordOf(h.names[0]), mostOfHeads)
	if err != nil {
		return nil, err
	}
	if or, ok := q.(*query.Or); ok && len(or.Subs) == 0 {
		return &SymbolResponse{}, nil // nothing can extend it
	}
	l.Atoms[0], l.Lines, l.Scopes, l.Lexed = q, headLines, true, true
	found, err := h.s.Find(h.ctx, h.v, l)
	if err != nil {
		return nil, err
	}

	h.out.Coverage = h.out.Coverage.And(found.Coverage)
	out := &SymbolResponse{}
	for i := range found.Files {
		f := &found.Files[i]
		if matches := read(f); matches != nil {
			out.Files = append(out.Files, SymbolFile{RepoID: f.RepoID, Repository: f.Repository, Path: f.Path, WebURL: f.WebURL, Language: f.Language, Matches: matches})
		}
	}
	return out, nil
}

// heads calls use for each head in a file, with the types that it names. If scoped, each head has
// the scope around it.
func heads(f *search.File, scoped bool, use func(m SymbolMatch, supers []super)) {
	for i := range f.Chunks {
		c := &f.Chunks[i]
		for _, one := range headsOf(f.Language, c.Content, c.Open) {
			m := SymbolMatch{Name: one.name, Kind: one.kind, Range: rangeIn(c, one.at, one.end(c.Content))}
			m.Line, m.at = lineOf(*c, m.Range)
			if slices.Contains(includes[f.Language], one.kind) {
				around := aroundLine(c, m.Range.Start.Line)
				if imports(f.Language, around.Kind, m.Line) {
					continue
				}
				m.Name, m.Kind, m.ParentName = around.Name, cmp.Or(around.Kind, one.kind), around.ParentName
				one.name, one.written = m.Name, m.Name
			}

			// Of a type and its namesake, the scope tells which one it is.
			supers := slices.DeleteFunc(one.supers, one.itself)
			if scoped {
				if around := aroundLine(c, m.Range.Start.Line); around.Name == m.Name {
					m.scope = around.ParentName
				}
			}
			if slices.ContainsFunc(supers, one.namesake) {
				if around := aroundLine(c, m.Range.Start.Line); around.Name == m.Name {
					m.ParentName, m.ParentKind = around.ParentName, around.ParentKind
				}
			}
			use(m, supers)
		}
	}
}

// end returns the offset of the last type that a head names.
func (h *head) end(text []byte) int {
	if len(h.supers) == 0 {
		return h.at
	}
	return min(max(h.at, h.supers[len(h.supers)-1].at), len(text))
}

// rangeIn converts offsets in a chunk to a range of the file.
func rangeIn(c *shard.Chunk, from, to int) shard.Range {
	position := func(at int) shard.Position {
		return shard.Position{Offset: c.Start.Offset + uint32(at), Line: c.Start.Line + uint32(bytes.Count(c.Content[:at], []byte("\n")))}
	}
	return shard.Range{Start: position(from), End: position(max(from, to))}
}

// aroundLine returns the definition around a line.
func aroundLine(c *shard.Chunk, line uint32) shard.Symbol {
	for i, r := range c.Ranges {
		if r.Start.Line <= line && line <= r.End.Line && i < len(c.Around) {
			return c.Around[i]
		}
	}
	return shard.Symbol{}
}

// extends returns the heads in a file that extend one of the names.
func (h *hierarchy) extends(f *search.File) (matches []SymbolMatch) {
	if f.Language == "Go" {
		return h.embeds(f)
	}
	heads(f, h.namesakes != nil, func(m SymbolMatch, supers []super) {
		for _, s := range supers {
			if of := lastPart(s.name); slices.Contains(h.names, of) {
				m.Of, m.by = of, s.name
				matches = append(matches, m)
				return
			}
		}
	})
	return matches
}

// mention is a type that some head names as extended.
type mention struct {
	by     string          // the type that extends it
	as     string          // how a head writes its name
	repos  map[string]bool // where that is said
	scopes map[string]bool // of a namesake of by: the qualifiers that heads write before it
	heads  map[place]bool  // where these heads are
	others bool            // a type with another name extends it, too
}

// place is a line of a file.
type place struct {
	fileOf
	line uint32
}

// means reports whether a definition can be the mentioned type. A namesake is told from the type
// that extends it by the scope around it, or by the name of its file or directory. No type extends
// itself, even if both have a scope of the same name: module Devise::Strategies has class Base <
// Warden::Strategies::Base.
func (m *mention) means(f *SymbolFile, d *SymbolMatch) bool {
	if !m.others && m.heads[place{keyOf(f), d.Range.Start.Line}] {
		return false
	}
	dir, file := path.Split(f.Path)
	file, _, _ = strings.Cut(file, ".")
	return m.others || m.scopes[lastPart(d.ParentName)] || d.ParentName == "" && (m.scopes[file] || m.scopes[path.Base(dir)])
}

// qualifierOf returns the last part of the qualifier of a name; "" for none.
func qualifierOf(name string) string {
	return lastPart(strings.TrimRight(strings.TrimSuffix(name, lastPart(name)), `.:\`))
}

// mentioned returns the types that the heads of the names extend.
func (h *hierarchy) mentioned() (map[string]*mention, error) {
	types := map[string]*mention{}
	add := func(written, by, repo string) {
		name := lastPart(written)
		if types[name] == nil {
			types[name] = &mention{by: by, as: written, repos: map[string]bool{}, scopes: map[string]bool{}, heads: map[place]bool{}}
		}
		types[name].by = min(types[name].by, by)
		types[name].repos[repo] = true
		types[name].scopes[qualifierOf(written)] = true
		types[name].others = types[name].others || name != by
	}

	_, err := h.find(h.named(), func(f *search.File) []SymbolMatch {
		heads(f, h.namesakes != nil, func(m SymbolMatch, supers []super) {
			for _, s := range supers {
				if slices.Contains(h.names, m.Name) && !h.ofNamesake(f, &m) {
					add(s.name, m.Name, f.Repository)
					types[lastPart(s.name)].heads[place{fileOf{f.Repository, f.Path}, m.Range.Start.Line}] = true
				}
			}
		})
		return nil
	})
	if err == nil && h.spoken("Go") {
		err = h.embedded(add)
	}
	return types, err
}

// above finds the definitions of the types that the names extend.
func (h *hierarchy) above() (*SymbolResponse, error) {
	types, err := h.mentioned()
	if err != nil || len(types) == 0 {
		return &SymbolResponse{}, err
	}

	out, err := h.defining(slices.Sorted(maps.Keys(types)))
	if err != nil {
		return nil, err
	}

	// A type in the same repository is preferred.
	near, anywhere := map[string]bool{}, map[string]bool{}
	for i := range out.Files {
		f := &out.Files[i]
		f.Matches = slices.DeleteFunc(f.Matches, func(m SymbolMatch) bool { return !types[m.Name].means(f, &m) })
		for _, m := range f.Matches {
			anywhere[m.Name] = true
			near[m.Name] = near[m.Name] || types[m.Name].repos[f.Repository]
		}
	}
	for i := range out.Files {
		f := &out.Files[i]
		f.Matches = slices.DeleteFunc(f.Matches, func(m SymbolMatch) bool { return near[m.Name] && !types[m.Name].repos[f.Repository] })
		for k := range f.Matches {
			f.Matches[k].Of = types[f.Matches[k].Name].by
		}
	}
	out.dropEmpty()
	for _, name := range slices.Sorted(maps.Keys(types)) {
		if !anywhere[name] {
			if types[name].by == name {
				name = types[name].as // which tells it from its namesake
			}
			h.out.Undefined = append(h.out.Undefined, name)
		}
	}
	return out, nil
}

// defining finds the definitions of types.
func (h *hierarchy) defining(names []string) (*SymbolResponse, error) {
	req := h.req.SymbolRequest
	req.Paths = paths.Filter{Repos: req.Paths.Repos}
	named := &query.Text{Pattern: "^(?:" + alternatives(names) + ")$", Regexp: true, Field: query.Symbol}
	out, err := h.s.symbols(h.ctx, h.v, req, named, maxSymbolMatches)
	if err == nil {
		h.out.Coverage = h.out.Coverage.And(out.Coverage)
		keepTypes(out)
	}
	return out, err
}
