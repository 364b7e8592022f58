package tool

import (
	"context"
	"fmt"
	"path"
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

// lookup is one call of a tool about a symbol.
type lookup struct {
	*Args
	ctx    context.Context
	viewer catalog.Viewer
	search symbols.Searcher
	browse browse.Reader
}

// name returns the symbol without its scope.
func (l *lookup) name() string {
	_, name := symbols.Qualified(l.Text("symbol"))
	return name
}

// request returns the symbol request of the call's arguments.
func (l *lookup) request() symbols.SymbolRequest {
	return symbols.SymbolRequest{
		Symbol:   l.Text("symbol"),
		Repo:     l.Text("repo"),
		Revision: l.Text("ref"),
		Paths:    pathsOf(l.Args),
		Kind:     l.Text("kind"),
	}
}

// asText returns the call that greps for the name as a word.
func (l *lookup) asText() string {
	// A name such as done? has no word boundary at its sign; RE2's \b only knows ASCII letters.
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

// filters names the given arguments that restrict kind or path; "" if there are none.
func (l *lookup) filters() string {
	var given []string
	for _, name := range []string{"kind", "path", "include", "exclude", "tests"} {
		if l.Has(name) {
			given = append(given, name)
		}
	}
	return strings.Join(given, " and ")
}

// drop removes arguments from the call.
func (l *lookup) drop(names ...string) {
	for _, name := range names {
		delete(l.values, name)
	}
	l.given = slices.DeleteFunc(l.given, func(name string) bool { return contains(names, name) })
}

// none writes the answer if the symbol was not found.
func (l *lookup) none(noun string, r *symbols.SymbolResponse) string {
	var e end
	e.lacks(l.Args, r.Coverage, "")

	text := fmt.Sprintf("No %s of %s found%s", noun, label(l.Text("symbol")), searched(r.Coverage))
	// Prefer names of similar symbols. Without them, suggest a text search.
	if len(r.Similar) > 0 {
		text += " Similar names: " + label(strings.Join(r.Similar, ", ")) + "."
	} else {
		text += " As text: " + l.asText() + "."
	}
	return text + "\n" + e.String()
}

// mostOfSymbol is the largest limit of an answer about a symbol.
const mostOfSymbol = 1000

// beyond says how to see the results beyond the limit.
func (l *lookup) beyond() string {
	if l.Number("limit") == mostOfSymbol {
		return narrower(l.tool) // a greater one is refused
	}

	// Four times as many: with small steps, each answer would mostly repeat the last one.
	return "continue with " + l.with("limit", min(mostOfSymbol, 4*l.Number("limit")))
}

// indexed reports whether the requested revision is in the index. Symbols of other revisions are
// unknown.
func (l *lookup) indexed(r *symbols.SymbolResponse) bool {
	if l.Text("ref") == "" || len(r.Files) > 0 {
		return true
	}

	// Without a file or commit of the repository, nothing was searched.
	known := r.Commit(l.Text("repo")) != ""
	return known && !r.Coverage.Has(coverage.NoRevision)
}

// mostOutlined is the largest number of files of an answer whose outlines are requested.
const mostOutlined = 20

// outlines returns the outlines of the first files of an answer, by repository and path. It leaves
// out files whose outline is unknown.
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
	// The calls run one after another. With at most five repositories the answer is still quick.
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

// enclosing returns the name of the innermost definition of several lines around a line; "" for
// none.
func enclosing(f *browse.OutlineFile, line int) string {
	if f == nil {
		return ""
	}
	best := -1
	for i, s := range f.Symbols {
		// A definition of one line, such as a variable, does not enclose its own use.
		around := s.First <= line && line <= s.Last
		if !around || s.Last == s.First {
			continue
		}
		// Of two equally long definitions the later one is the inner one.
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

// scopedName returns the name of a definition, preceded by its type or class.
func scopedName(name, parent, parentKind string) string {
	if scope := shortScope(parent, parentKind); scope != "" {
		return scope + "." + label(name)
	}
	return label(name)
}

// withinFile returns the name of a definition as the lines of a file tell it: without the type that
// the file is named after.
func withinFile(file, name string) string {
	stem, _, _ := strings.Cut(path.Base(file), ".")
	if rest, ok := strings.CutPrefix(name, label(stem)+"."); ok && rest != "" {
		return rest
	}
	return name
}

// shortScope returns the type or class of a definition, without the scopes around that; "" for
// none.
func shortScope(parent, kind string) string {
	switch kind {
	// The path already shows the package, namespace or file. Only types distinguish methods.
	case "", "package", "namespace", "module", "file", "function":
		return ""
	}
	name := label(parent)
	if i := strings.LastIndexAny(name, ".:"); i >= 0 {
		name = name[i+1:]
	}
	return name
}

// kindIn describes the kind of a definition in a file, and its scope unless the file is named after
// that.
func kindIn(file string, m *symbols.SymbolMatch) string {
	stem, _, _ := strings.Cut(path.Base(file), ".")
	if parent := label(m.ParentName); m.ParentKind != "unknown" && parent[strings.LastIndexAny(parent, ".:")+1:] == label(stem) {
		return m.Kind
	}
	return kindText(m)
}

// kindText describes the kind of a definition and its scope.
func kindText(m *symbols.SymbolMatch) string {
	kind, parent := m.Kind, label(m.ParentName)
	switch {
	case parent == "":
		return kind
	case m.ParentKind == "unknown" && kind == "function":
		// The type is defined in another file.
		return "method of " + parent
	case m.ParentKind == "unknown":
		return kind + " in " + parent
	}
	return kind + " in " + strings.TrimSpace(m.ParentKind+" "+parent)
}

// linesByWord greps for the name as a word. It replaces a reference search at an unindexed
// revision.
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
		Lexed:      true, // uses in comments are told apart
	})
}

// definedAt finds definitions at an unindexed revision by reading the files that contain the name.
func (l *lookup) definedAt() (*symbols.SymbolResponse, error) {
	// Read only as many files as are outlined below: without an outline, a line is not known as a
	// definition.
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

	// One request for outlines covers several files of a repository.
	outlines := l.outlines(repos, paths, out.Commits)

	for _, f := range g.Files {
		o := outlines[[2]string{f.Repo, f.Path}]
		// If the symbols of a file are unknown, no definition can be shown.
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

// definedIn returns the definitions of the name in a file. lines are the lines that contain the
// name.
func (l *lookup) definedIn(lines []browse.Line, o *browse.OutlineFile) (all []symbols.SymbolMatch) {
	name, kind := l.name(), l.Text("kind")
	for _, s := range o.Symbols {
		// Skip a definition whose line is not among lines, because its text is unknown.
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
