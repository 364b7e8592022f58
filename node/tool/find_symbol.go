package tool

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
)

var symbolParam = Param{Name: "symbol", Kind: String, Required: true, About: "name, as NewServer; several as a,b; in its type Store.Close or Store::Close"}

// lookup is one call of a tool that is about a symbol.
type lookup struct {
	*Args
	ctx    context.Context
	viewer catalog.Viewer
	search symbols.Searcher
	browse browse.Reader
}

// name is the symbol without what it is defined in.
func (l *lookup) name() string {
	_, name := qualifiedName(l.Text("symbol"))
	return name
}

// qualifiedName splits a name from what it is defined in; scope is "" for none.
func qualifiedName(symbol string) (scope, name string) {
	// C++ and Rust, most others, Ruby and documentation of Java.
	for _, sep := range []string{"::", ".", "#"} {
		// Neither at the start nor at the end: on both sides of it has to be a name.
		if i := strings.LastIndex(symbol, sep); i > 0 && i+len(sep) < len(symbol) {
			return symbol[:i], symbol[i+len(sep):]
		}
	}
	return "", symbol
}

func (l *lookup) request() symbols.SymbolRequest {
	return symbols.SymbolRequest{
		Symbol:   l.Text("symbol"),
		Repo:     l.Text("repo"),
		Revision: l.Text("ref"),
		Paths:    pathsOf(l.Args),
		Kind:     l.Text("kind"),
	}
}

// asText is the call that finds the name as a word.
func (l *lookup) asText() string {
	// Beside a sign, as in done?, no word begins or ends; RE2's \b knows letters of ASCII alone.
	name := l.name()
	word := regexp.QuoteMeta(name)
	if c := name[0]; c < utf8.RuneSelf && isNameByte(c) {
		word = `\b` + word
	}
	if c := name[len(name)-1]; c < utf8.RuneSelf && isNameByte(c) {
		word += `\b`
	}
	return callOf("grep", "pattern", word, "repo", l.values["repo"], "path", l.Text("path"), "ref", l.Text("ref"))
}

// filters names the arguments given that say where or what a symbol has to be;
// "" for none.
func (l *lookup) filters() string {
	var given []string
	for _, name := range []string{"kind", "path", "include", "exclude", "tests"} {
		if l.Has(name) {
			given = append(given, name)
		}
	}
	return strings.Join(given, " and ")
}

// drop makes the call one without some arguments.
func (l *lookup) drop(names ...string) {
	for _, name := range names {
		delete(l.values, name)
	}
	l.given = slices.DeleteFunc(l.given, func(name string) bool { return contains(names, name) })
}

// none is the answer where the symbol was not found.
func (l *lookup) none(noun string, r *symbols.SymbolResponse) string {
	var e end
	e.lacks(l.Args, r.Coverage, "")

	text := fmt.Sprintf("No %s of %s found%s", noun, label(l.Text("symbol")), searched(r.Coverage))
	// Names of definitions are the better hint; without one the word may still stand somewhere.
	if len(r.Similar) > 0 {
		text += " Similar names: " + label(strings.Join(r.Similar, ", ")) + "."
	} else {
		text += " As text: " + l.asText() + "."
	}
	return text + "\n" + e.String()
}

// mostOfSymbol is the largest limit of an answer about a symbol.
const mostOfSymbol = 1000

// beyond tells how to see what a limit has left out.
func (l *lookup) beyond() string {
	if l.Number("limit") == mostOfSymbol {
		return narrower(l.tool) // a greater one is refused
	}

	// Four times as many: with small steps each would show again what was seen.
	return "continue with " + l.with("limit", min(mostOfSymbol, 4*l.Number("limit")))
}

// indexed tells whether the revision that is asked about is in the index: of
// any other one nothing is known of symbols.
func (l *lookup) indexed(r *symbols.SymbolResponse) bool {
	if l.Text("ref") == "" || len(r.Files) > 0 {
		return true
	}

	// No file and no commit of the repository means that nobody looked, not that nothing is there.
	known := r.Commit(l.Text("repo")) != ""
	return known && !r.Coverage.Has(coverage.NoRevision)
}

// mostOutlined is how many files of an answer are asked for their definitions.
const mostOutlined = 20

// outlines gives the definitions in the first files of an answer, by
// repository and path. It is an addition: what is not known is left out.
func (l *lookup) outlines(repos, paths []string, commits map[string]string) map[[2]string]*browse.OutlineFile {
	// One call for each repository, in the order of the answer.
	byRepo := map[string][]string{}
	var order []string
	for i := range paths[:min(len(paths), mostOutlined)] {
		if byRepo[repos[i]] == nil {
			order = append(order, repos[i])
		}
		byRepo[repos[i]] = append(byRepo[repos[i]], paths[i])
	}

	found := map[[2]string]*browse.OutlineFile{}
	// One call after another: with names of functions from few repositories the answer still comes
	// soon.
	for _, repo := range order[:min(len(order), 5)] {
		req := browse.OutlineRequest{Repo: repo, Ref: commits[repo], Paths: byRepo[repo]}
		r, err := l.browse.Outline(l.ctx, l.viewer, req)
		if err != nil {
			continue
		}
		for i := range r.Files {
			found[[2]string{repo, r.Files[i].Path}] = &r.Files[i]
		}
	}
	return found
}

// enclosing is the name of the innermost definition around a line that is more
// than that line: a function before a type before nothing.
func enclosing(f *browse.OutlineFile, line int) string {
	if f == nil {
		return ""
	}
	best := -1
	for i, s := range f.Symbols {
		// What is one line long has nothing in it: a variable does not enclose its own use.
		around := s.First <= line && line <= s.Last
		if !around || s.Last == s.First {
			continue
		}
		// Of two of the same size the later one is the inner one.
		if best < 0 || s.Last-s.First <= f.Symbols[best].Last-f.Symbols[best].First {
			best = i
		}
	}
	if best < 0 {
		return ""
	}

	s := &f.Symbols[best]
	return scopedName(s.Name, s.ParentName, s.ParentKind)
}

// scopedName is the name of a definition, with the type or class that it belongs
// to in front.
func scopedName(name, parent, parentKind string) string {
	if scope := shortScope(parent, parentKind); scope != "" {
		return scope + "." + label(name)
	}
	return label(name)
}

// shortScope is the type or class that a definition belongs to, without what that
// belongs to; "" for none.
func shortScope(parent, kind string) string {
	switch kind {
	// A package, a namespace or a file stands in the path already; types are what tells methods
	// apart.
	case "", "package", "namespace", "module", "file", "function":
		return ""
	}
	name := label(parent)
	if i := strings.LastIndexAny(name, ".:"); i >= 0 {
		name = name[i+1:]
	}
	return name
}

// kindText tells what a definition is, and of what.
func kindText(m *symbols.SymbolMatch) string {
	kind, parent := m.Kind, label(m.ParentName)
	switch {
	case parent == "":
		return kind
	case m.ParentKind == "unknown" && kind == "function":
		// The type is in another file.
		return "method of " + parent
	case m.ParentKind == "unknown":
		return kind + " in " + parent
	}
	return kind + " in " + strings.TrimSpace(m.ParentKind+" "+parent)
}

// linesByWord gives what stands for references at a revision that is not
// indexed: the lines that have the name as a word.
func (l *lookup) linesByWord(limit int) (*search.GrepResponse, error) {
	begins, ends := symbols.WordEdges(l.name())
	return l.search.Grep(l.ctx, l.viewer, search.GrepRequest{
		Pattern:    regexp.QuoteMeta(l.name()),
		WordBegins: begins,
		WordEnds:   ends,
		Repo:       l.Text("repo"),
		Ref:        l.Text("ref"),
		Paths:      pathsOf(l.Args),
		Limit:      limit,
	})
}

// definedAt finds definitions at a revision that is not indexed: it reads the
// files that have the name.
func (l *lookup) definedAt() (*symbols.SymbolResponse, error) {
	// No more files than are outlined below: without an outline a line is no definition.
	g, err := l.linesByWord(mostOutlined)
	if err != nil {
		return nil, err
	}

	out := &symbols.SymbolResponse{
		Coverage: g.Coverage,                                       // lines not seen may define it
		Commits:  map[string]string{l.Text("repo"): l.Text("ref")}, // the outlines are of the ref that was searched
	}

	var paths, repos []string
	for _, f := range g.Files {
		paths = append(paths, f.Path)
		repos = append(repos, f.Repo)
	}

	// All at once: each call for outlines is made for a whole repository.
	outlines := l.outlines(repos, paths, out.Commits)

	for _, f := range g.Files {
		o := outlines[[2]string{f.Repo, f.Path}]
		// A file whose symbols are not known has no definition to show.
		if o == nil {
			continue
		}

		file := symbols.SymbolFile{
			Repository: f.Repo,
			Path:       f.Path,
			Language:   o.Language,
			Matches:    l.definedIn(f.Lines, o),
		}

		if file.Matches != nil {
			out.Files = append(out.Files, file)
			out.MatchCount += len(file.Matches)
		}
	}
	return out, nil
}

// definedIn is the definitions of the name in a file, of which lines have it.
func (l *lookup) definedIn(lines []browse.Line, o *browse.OutlineFile) (all []symbols.SymbolMatch) {
	name, kind := l.name(), l.Text("kind")
	for _, s := range o.Symbols {
		// A definition without its line in the answer is not shown: its text is the line's.
		wanted := s.Name == name && (kind == "" || s.Kind == kind)
		at := slices.IndexFunc(lines, func(line browse.Line) bool { return line.Number == s.First })
		if !wanted || at < 0 {
			continue
		}

		m := symbols.SymbolMatch{
			Line:       lines[at].Text,
			Name:       s.Name,
			Kind:       s.Kind,
			ParentName: s.ParentName,
			ParentKind: s.ParentKind,
		}
		m.Range.Start.Line, m.Range.End.Line = uint32(s.First), uint32(s.First)
		all = append(all, m)
	}
	return all
}
