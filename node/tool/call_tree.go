package tool

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

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
	tested   int             // callers of callers in tests, which are not told
	at       [2]string       // repository and path of the last line
	lookups  int
	lines    []string
	coverage coverage.Coverage // of the first question
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
	scope, _ := symbols.Qualified(t.Text("symbol"))
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
	where := ""
	// The same file as on the line above is not named again.
	if at := [2]string{repo, path}; at != t.at {
		t.at, where = at, fileLabel(path)
		if t.Text("repo") == "" {
			where = repo + " " + where
		}
	}
	t.lines = append(t.lines, fmt.Sprintf("%s%s %s:%s", strings.Repeat("  ", level), name, where, lines))
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
	if t.tested > 0 {
		e.leaves(count(t.tested, "caller") + " in tests below the first level; continue with " + t.with("tests", "include"))
	}
	e.unlooked = append(e.unlooked, "calls through interfaces and variables")
	e.lacks(t.Args, t.coverage, "")
	return out.String() + e.String()
}
