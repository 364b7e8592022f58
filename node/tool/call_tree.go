package tool

import (
	"cmp"
	"fmt"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
)

// A tree of calls is found by names. A name with many definitions is not followed, because nearly
// all calls of the name would belong to other definitions.

const (
	mostNamesakes = 5  // definitions of a name that is followed
	mostLookups   = 60 // questions of one tree
	mostInBody    = 60 // names that are called in one definition
	mostNamed     = 12 // names that were not followed and are told
)

// callTree collects the lines of a tree of callers or callees, from one name on.
type callTree struct {
	*lookup
	up       bool // to the callers
	followed map[string]bool
	skipped  map[string]bool // names that were not followed
	others   int             // calls by receivers that are not named like the type
	lookups  int
	lines    []string
	coverage coverage.Coverage // of the first question
}

// caller is a definition that calls a name, with the lines of the calls.
type caller struct {
	repo, path string
	symbol     symbols.SymbolMatch // Around has the name
	lines      []string
}

// definedPlace is a definition of a name.
type definedPlace struct {
	repo, path, lang, kind, parent, parentKind string
	line                                       int
}

// callTree answers with a tree of callers or callees, up to the requested depth. It returns "" if
// no function has the name, or nothing calls it.
func (l *lookup) callTree() (string, error) {
	if repo := l.Text("repo"); repo != "" {
		if _, err := l.browse.Repo(l.ctx, l.viewer, repo); err != nil {
			return "", err
		}
	}
	t := &callTree{lookup: l, up: l.Text("tree") == "callers", followed: map[string]bool{}, skipped: map[string]bool{}}
	defined, err := t.define([]string{l.name()})
	if err != nil {
		return "", err
	}
	places := t.inScope(defined[l.name()])
	if t.up {
		err = t.callers(l.name(), defined[l.name()], places, 1)
	} else {
		for _, p := range places[:min(len(places), mostNamesakes)] {
			if err = t.callees(l.name(), p, 1); err != nil {
				break
			}
		}
	}
	if err != nil {
		return "", err
	}
	if len(t.lines) == 0 && (t.up || len(places) == 0) {
		return "", nil
	}
	return t.text(places), nil
}

// inScope keeps the definitions in the type that qualifies the requested name, as T in T.f.
func (t *callTree) inScope(places []definedPlace) []definedPlace {
	scope, _ := qualifiedName(t.Text("symbol"))
	return inType(places, scope[strings.LastIndexAny(scope, ".:#")+1:])
}

// inType keeps the definitions in a type. If name is "", it keeps all.
func inType(places []definedPlace, name string) (in []definedPlace) {
	for _, p := range places {
		if name == "" || shortScope(p.parent, p.parentKind) == name {
			in = append(in, p)
		}
	}
	return in
}

// define finds the callable definitions of some names.
func (t *callTree) define(names []string) (map[string][]definedPlace, error) {
	for i := range names {
		names[i] = strings.ReplaceAll(regexp.QuoteMeta(names[i]), `"`, `\"`)
	}
	query := `case:yes sym:"^(?:` + strings.Join(names, "|") + `)$"`
	if ref := t.Text("ref"); ref != "" {
		query += ` rev:"` + ref + `"`
	}
	repos := t.List("repo")
	if repo := t.Text("repo"); repo != "" {
		repos = []string{repo}
	}
	if repos != nil {
		query += ` reposet:"` + strings.Join(repos, ",") + `"`
	}

	t.lookups++
	r, err := t.search.Search(t.ctx, t.viewer, search.Request{Query: query, Matches: 2000})
	if err != nil {
		return nil, err
	}
	if t.lookups == 1 {
		t.coverage = r.Coverage.Without(coverage.NameOnly)
	}
	found := map[string][]definedPlace{}
	for i := range r.Files {
		f := &r.Files[i]
		for _, c := range f.Chunks {
			for k, s := range c.Symbols {
				if s.Name != "" && k < len(c.Ranges) && callable(s.Kind) {
					found[s.Name] = append(found[s.Name], definedPlace{f.Repository, f.Path, f.Language, s.Kind, s.ParentName, s.ParentKind, int(c.Ranges[k].Start.Line)})
				}
			}
		}
	}
	return found, nil
}

// callable reports whether a definition of a kind can be called.
func callable(kind string) bool {
	switch kind {
	case "variable", "field", "constant", "package", "namespace", "module", "local", "label", "import", "unknown", "parameter", "property", "enumerator", "prototype":
		return false
	}
	return true
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

// follow calls on to descend into a name, unless the tree has it already, it has too many
// definitions, or the budget of lookups is used up.
func (t *callTree) follow(name string, defined map[string][]definedPlace, on func() error) error {
	n := len(defined[name])
	last := len(t.lines) - 1
	switch {
	case n == 0:
		return nil
	case t.followed[name]:
		t.lines[last] += " (see above)"
	case n > mostNamesakes:
		t.skipped[name] = true
		t.lines[last] += fmt.Sprintf(" (not followed: %d definitions)", n)
	case t.lookups >= mostLookups || t.ctx.Err() != nil:
		t.skipped[name] = true
	default:
		return on()
	}
	return nil
}

// add appends a line, indented by its level in the tree.
func (t *callTree) add(level int, name, repo, path, lines string) {
	where := fileLabel(path)
	if t.Text("repo") == "" {
		where = repo + " " + where
	}
	t.lines = append(t.lines, fmt.Sprintf("%s%s %s:%s", strings.Repeat("  ", level), name, where, lines))
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
			case fits != nil && !fits(m):
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
func (t *callTree) fitting(name string, places []definedPlace, r *symbols.SymbolResponse, counts func(*symbols.SymbolMatch, string) bool, least int) func(*symbols.SymbolMatch) bool {
	types, packages := map[string]bool{}, map[string]bool{}
	for _, p := range places {
		types[shortScope(p.parent, p.parentKind)] = true
		packages[path.Base(path.Dir(p.path))] = p.lang == "Go"
	}
	of := &lookup{t.about("symbol", name, t.Number("maxTokens")), t.ctx, t.viewer, t.search, t.browse}
	switch {
	case len(types) == 1 && !types[""]:
		by := of.receivers(&owner{name: shortScope(places[0].parent, places[0].parentKind)})
		if by.tellApart(r, counts, least) {
			return by.fits
		}
	case len(types) == 1 && len(packages) == 1 && places[0].lang == "Go":
		by := of.receivers(nil)
		return func(m *symbols.SymbolMatch) bool { receiver := by.of(m); return receiver == "" || packages[receiver] }
	}
	return nil
}

var calledName = regexp.MustCompile(`[\pL_$][\pL\pN_$]*[!?]?`)

// callees adds the functions that a definition calls, and those that these call.
func (t *callTree) callees(name string, in definedPlace, level int) error {
	t.followed[name] = true
	names, at, err := t.calledIn(name, in)
	if err != nil || len(names) == 0 {
		return err
	}
	defined, err := t.define(slices.Clone(names))
	if err != nil {
		return err
	}
	for _, called := range names {
		// Ignore definitions in languages that this one cannot call.
		places := slices.DeleteFunc(defined[called], func(p definedPlace) bool { return !symbols.Mixed(p.lang, in.lang) })
		if defined[called] = places; len(places) == 0 {
			continue
		}
		// Prefer the same file, then the same repository.
		near := func(p definedPlace) int {
			switch {
			case p.repo != in.repo:
				return 2
			case p.path != in.path:
				return 1
			}
			return 0
		}
		slices.SortStableFunc(places, func(a, b definedPlace) int { return near(a) - near(b) })
		first := places[0]
		t.add(level, scopedName(called, first.parent, first.parentKind), first.repo, first.path, fmt.Sprintf("%d, called at %s", first.line, strings.Join(at[called], ",")))
		if len(places) > 1 && len(places) <= mostNamesakes {
			t.lines[len(t.lines)-1] += fmt.Sprintf(" (1 of %d definitions)", len(places))
		}
		if level >= t.Number("depth") {
			continue
		}
		if err := t.follow(called, defined, func() error { return t.callees(called, first, level+1) }); err != nil {
			return err
		}
	}
	return nil
}

// calledIn lists the names that a definition calls, each with the line numbers.
func (t *callTree) calledIn(name string, in definedPlace) (names []string, at map[string][]string, err error) {
	t.lookups++
	o, err := t.browse.Outline(t.ctx, t.viewer, browse.OutlineRequest{Repo: in.repo, Ref: t.Text("ref"), Paths: []string{in.path}})
	if err != nil || len(o.Files) == 0 {
		return nil, nil, err
	}
	last := in.line
	for _, s := range o.Files[0].Symbols {
		if s.First == in.line && s.Name == name {
			last = max(last, s.Last)
		}
	}
	r, err := t.browse.ReadFile(t.ctx, t.viewer, browse.ReadFileRequest{Repo: in.repo, Path: in.path, Ref: o.Commit, Offset: in.line, Limit: min(last-in.line+1, mostBody)})
	if err != nil {
		return nil, nil, err
	}

	at = map[string][]string{}
	for i, line := range r.Lines {
		for _, m := range calledName.FindAllIndex(line, -1) {
			word := string(line[m[0]:m[1]])
			called, _ := calls(in.lang, word, line)
			if !called || word == name && i == 0 || symbols.OutsideCode(in.lang, line, m[0]) {
				continue
			}
			if at[word] == nil && len(names) == mostInBody {
				continue
			}
			if at[word] == nil {
				names = append(names, word)
			}
			if number := fmt.Sprint(in.line + i); !contains(at[word], number) {
				at[word] = append(at[word], number)
			}
		}
	}
	return names, at, nil
}

// text writes the definitions of the name, then the tree.
func (t *callTree) text(places []definedPlace) string {
	var out strings.Builder
	noun := "callee"
	if t.up {
		noun = "caller"
	}
	fmt.Fprintf(&out, "%s of %s, %d deep", count(len(t.lines), noun), label(t.Text("symbol")), t.Number("depth"))
	b := block{}
	for _, p := range places[:min(len(places), mostNamesakes)] {
		where := fmt.Sprintf("%s:%d", fileLabel(p.path), p.line)
		if t.Text("repo") == "" {
			where = p.repo + " " + where
		}
		b.head += fmt.Sprintf("%s %s\n", scopedName(t.name(), p.parent, p.parentKind), where)
	}
	limit := t.Number("limit")
	for _, line := range t.lines[:min(len(t.lines), limit)] {
		b.lines = append(b.lines, line+"\n")
	}

	e := end{found: len(t.lines) > 0}
	writeBlocks(t.Args, &out, []block{b}, &e, func(int) string { return t.with("depth", max(1, t.Number("depth")-1)) })
	if more := len(t.lines) - limit; more > 0 {
		e.leaves(fmt.Sprintf("%s; %s", count(more, noun), t.beyond()))
	}
	if len(t.skipped) > 0 {
		names := slices.Sorted(maps.Keys(t.skipped))
		e.leaves("calls of names that were not followed: " + label(strings.Join(names[:min(mostNamed, len(names))], ", ")) + moreThan(mostNamed, len(names)))
	}
	if t.others > 0 {
		e.leaves(count(t.others, "call") + " by receivers that are not named like the type")
	}
	e.unlooked = append(e.unlooked, "calls through interfaces, variables and reflection: names are compared")
	e.lacks(t.Args, t.coverage, "")
	return out.String() + e.String()
}
