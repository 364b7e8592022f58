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

// A tree of calls is found by names: a name with many definitions is not followed, for nearly
// all of its calls would be of another one.

const (
	mostNamesakes = 5  // definitions of a name that is followed
	mostLookups   = 60 // questions of one tree
	mostInBody    = 60 // names that are called in one definition
	mostNamed     = 12 // names that were not followed and are told
)

// callTree gathers the lines of a tree of calls, from the name that is asked for on.
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

// caller is a definition with the lines in which it calls a name.
type caller struct {
	repo, path string
	symbol     symbols.SymbolMatch // Around has the name
	lines      []string
}

// definedPlace is where a name is defined.
type definedPlace struct {
	repo, path, lang, kind, parent, parentKind string
	line                                       int
}

// callTree answers with the calls of calls, as deep as depth says; "" where the name is not
// defined as anything that calls, or nothing calls it.
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

// inScope keeps the definitions in the type that the name was written with.
func (t *callTree) inScope(places []definedPlace) []definedPlace {
	scope, _ := qualifiedName(t.Text("symbol"))
	return inType(places, scope[strings.LastIndexAny(scope, ".:#")+1:])
}

// inType keeps the definitions in a type; all of them for none.
func inType(places []definedPlace, name string) (in []definedPlace) {
	for _, p := range places {
		if name == "" || shortScope(p.parent, p.parentKind) == name {
			in = append(in, p)
		}
	}
	return in
}

// define finds where each of some names is defined as something that can be called.
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

// callable reports whether what is of a kind may be called, and calls.
func callable(kind string) bool {
	switch kind {
	case "variable", "field", "constant", "package", "namespace", "module", "local", "label", "import", "unknown", "parameter", "property", "enumerator", "prototype":
		return false
	}
	return true
}

// callers adds those who call what is defined at some of all places of a name, and theirs.
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

// follow goes on with a name, unless that was done or is of no use.
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

// add adds a line, indented by its level.
func (t *callTree) add(level int, name, repo, path, lines string) {
	where := fileLabel(path)
	if t.Text("repo") == "" {
		where = repo + " " + where
	}
	t.lines = append(t.lines, fmt.Sprintf("%s%s %s:%s", strings.Repeat("  ", level), name, where, lines))
}

// callersOf lists the definitions that call a name, in the order of references. namesakes
// says that it is defined elsewhere, too.
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

// reaches reports whether code of a file may call what is defined at some places: it is of a
// language of theirs, and names of Go in small letters are those of a directory.
func reaches(f *symbols.SymbolFile, name string, places []definedPlace) bool {
	return len(places) == 0 || slices.ContainsFunc(places, func(p definedPlace) bool {
		private := p.lang == "Go" && !token.IsExported(name)
		return symbols.Mixed(p.lang, f.Language) && (!private || path.Dir(p.path) == path.Dir(f.Path))
	})
}

// fitting tells by its receiver whether a use may be one of what is defined at some places; nil
// where receivers say nothing. Methods have receivers that are named like their type, functions
// of Go the name of their package.
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

// callees adds what a definition calls, and what that calls.
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
		// Names of other languages are others.
		places := slices.DeleteFunc(defined[called], func(p definedPlace) bool { return !symbols.Mixed(p.lang, in.lang) })
		if defined[called] = places; len(places) == 0 {
			continue
		}
		// In the same file first, then in the same repository.
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

// calledIn lists the names that are called in a definition, each with its lines.
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

// text writes the tree below where the name is defined.
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
