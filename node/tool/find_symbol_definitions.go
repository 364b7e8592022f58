package tool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/symbols"
)

func definitions(s symbols.Searcher, b browse.Reader) Tool {
	return Tool{
		Name: "find_symbol_definitions", Title: "Find definitions",
		About: "Finds where a function, type, variable or other symbol is defined, better than grep. Shows `line [kind in parent]: text` by file, the product's own source first. `body` adds its lines, if known.",
		Params: []Param{
			symbolParam, anyRepoParam,
			{Name: "match", Kind: String, Words: []string{"exact", "prefix", "part", "fuzzy"}, Default: "exact"},
			{Name: "kind", Kind: String, About: "function, method, struct, class, macro, ..."},
			pathParam, includeParam, refParam,
			{Name: "limit", Kind: Integer, Min: 1, Max: mostOfSymbol, Default: 50, About: "most definitions"},
			{Name: "body", Kind: Boolean, Default: false},
		},
		Run: ofEachName(func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
			return runDefinitions(ctx, v, s, b, a)
		}),
	}
}

// runDefinitions runs a call of find_symbol_definitions.
func runDefinitions(ctx context.Context, v catalog.Viewer, s symbols.Searcher, b browse.Reader, a *Args) (string, error) {
	l := &lookup{a, ctx, v, s, b}
	r, err := l.define()
	if err != nil {
		return "", err
	}

	if len(r.Files) == 0 {
		return l.undefined(r)
	}
	return l.definitions(r), nil
}

// define finds the definitions of the requested name. If nothing has the name and match is fuzzy,
// it finds those of the most similar one.
func (l *lookup) define() (*symbols.SymbolResponse, error) {
	req := l.request()
	// Even fuzzy starts with the exact name, because most requested names exist.
	req.Prefix = l.Text("match") == "prefix"
	if l.Text("match") == "part" {
		req.Symbol = "*" + req.Symbol + "*"
	}
	r, err := l.search.Definitions(l.ctx, l.viewer, req)
	if err != nil {
		return nil, err
	}
	// An unindexed revision is read from the mirror, if the call names one repository.
	if !l.indexed(r) && l.Text("repo") != "" {
		return l.definedAt()
	}

	none := len(r.Files) == 0
	if none && l.Text("match") == "fuzzy" && len(r.Similar) > 0 {
		// The most similar name comes first.
		req.Symbol = r.Similar[0]
		return l.search.Definitions(l.ctx, l.viewer, req)
	}
	return r, nil
}

// undefined answers if no definition matches. It shows inherited members, definitions excluded by
// the filters, or similar names instead.
func (l *lookup) undefined(r *symbols.SymbolResponse) (string, error) {
	// If the path does not exist, no other explanation is right.
	if err := pathIsThere(l.ctx, l.viewer, l.browse, l.Args); err != nil {
		return "", err
	}

	if text, err := l.inherited(); text != "" || err != nil {
		return text, err
	}

	if filters := l.filters(); filters != "" && l.Text("match") != "prefix" {
		// A wrong filter is the usual cause. Show the unfiltered result at once, which saves a
		// call. Drop fuzzy, which would show a similar name.
		l.drop("kind", "path", "include")
		l.set("match", "exact")
		all, err := l.define()
		if err != nil {
			return "", err
		}

		// The first line says that the filters were dropped.
		if len(all.Files) > 0 {
			return fmt.Sprintf("No definition of %s with this %s; without:\n", label(l.Text("symbol")), filters) + l.definitions(all), nil
		}
	}
	return l.nearest(r)
}

// inherited answers for a member that the type only inherits; "" if it does not.
func (l *lookup) inherited() (string, error) {
	scope, name := symbols.Qualified(l.Text("symbol"))
	if scope == "" || l.Has("kind") || l.Text("match") != "exact" {
		return "", nil
	}
	r, err := l.search.Hierarchy(l.ctx, l.viewer, symbols.HierarchyRequest{SymbolRequest: l.request(), Up: true})
	if err != nil || len(r.Files) == 0 {
		return "", err
	}
	l.set("symbol", name)
	return fmt.Sprintf("%s defines no %s; it inherits:\n", label(scope), label(name)) + l.definitions(r), nil
}

// nearest answers if nothing has the name. If the name is probably mistyped, it shows the
// definitions of the most similar name, and lists other similar names.
func (l *lookup) nearest(r *symbols.SymbolResponse) (string, error) {
	if !r.Mistyped || l.Text("match") == "prefix" {
		return l.none("definition", r), nil
	}

	// From here on the answer is about the similar name, also in the calls that it advises.
	wrong := l.Text("symbol")
	l.set("symbol", r.Similar[0])

	found, err := l.define()
	if err != nil {
		return "", err
	}
	if len(found.Files) == 0 { // of another kind
		l.set("symbol", wrong)
		return l.none("definition", r), nil
	}

	others := ""
	if further := r.Similar[1:]; len(further) > 0 {
		others = " (others: " + label(strings.Join(further, ", ")) + ")"
	}
	return fmt.Sprintf("No definition of %s found. The nearest name%s:\n", label(wrong), others) + l.definitions(found), nil
}

// definitions writes definitions by file.
func (l *lookup) definitions(r *symbols.SymbolResponse) string {
	packages := 0
	if !l.Has("kind") {
		packages = dropPackages(r)
	}

	var repos, paths []string
	for i := range r.Files {
		repos = append(repos, r.Files[i].Repository)
		paths = append(paths, r.Files[i].Path)
	}

	// Only outlines know where definitions end; the index knows where they begin.
	var bodies map[[2]string]*browse.OutlineFile
	if l.Flag("body") {
		bodies = l.outlines(repos, paths, r.Commits)
	}

	// The files are sorted by relevance, so the limit drops the least relevant.
	w := &definitionsWriter{lookup: l, left: l.Number("limit")}
	for i := range r.Files {
		f := &r.Files[i]
		w.file(f, bodies[[2]string{f.Repository, f.Path}], r.Commits[f.Repository])
	}

	// Count everything that was found; the last line says how much of it is not shown.
	var out strings.Builder
	of := "of"
	if l.Text("match") != "exact" || strings.Contains(l.Text("symbol"), "*") {
		of = "like"
	}
	found, in := count(r.MatchCount, "definition"), count(len(r.Files), "file")
	fmt.Fprintf(&out, "%s %s %s in %s", found, of, label(l.Text("symbol")), in)
	if packages > 0 {
		fmt.Fprintf(&out, " (%s not shown)", count(packages, "package clause"))
	}

	e := end{found: true}
	whole := writeBlocks(l.Args, &out, w.blocks, &e, func(i int) string { return l.with("path", paths[i], "include", nil) })
	// Definitions can be missing for two reasons: no room, or the limit.
	if hidden := len(w.blocks) - whole; hidden > 0 {
		e.left = append(e.left, fmt.Sprintf("%s; %s", count(hidden, "file"), narrower(l.tool)))
	}
	if more := r.MatchCount - w.shown; more > 0 {
		e.left = append(e.left, fmt.Sprintf("%s; %s", count(more, "definition"), l.beyond()))
	}
	e.lacks(l.Args, r.Coverage, "")
	return out.String() + e.String()
}

// dropPackages removes package clauses if something else has the name too. Each file of a package
// has such a clause. It returns the number of removed ones.
func dropPackages(r *symbols.SymbolResponse) (dropped int) {
	other := func(m symbols.SymbolMatch) bool { return m.Kind != "package" }

	// If only packages have the name, a package is meant.
	if !slices.ContainsFunc(r.Files, func(f symbols.SymbolFile) bool { return slices.ContainsFunc(f.Matches, other) }) {
		return 0
	}

	before := r.MatchCount
	r.Keep(other)
	return before - r.MatchCount
}

// definitionsWriter collects the lines of an answer.
type definitionsWriter struct {
	*lookup
	blocks      []block
	left, shown int    // definitions
	last        string // repository that was named
}

// file adds the definitions in a file, up to the limit.
func (w *definitionsWriter) file(f *symbols.SymbolFile, o *browse.OutlineFile, commit string) {
	b := block{head: fileLabel(f.Path) + "\n"}
	// The repository is named once for consecutive files.
	if w.Text("repo") == "" && f.Repository != w.last {
		b.head = "[" + f.Repository + "]\n" + b.head
	}
	w.last = f.Repository

	for k := range f.Matches {
		// A file without shown lines is dropped below, together with its heading.
		if w.left == 0 {
			break
		}
		w.left--
		w.shown++

		m := &f.Matches[k]

		// Remove the indentation, which means nothing on a single line.
		text := cut(strings.TrimSpace(clean(m.Line)), 0, 0)
		b.lines = append(b.lines, fmt.Sprintf("%d [%s]: %s\n", m.Range.Start.Line, kindIn(f.Path, m), text))
		b.lines = append(b.lines, w.body(f, m, o, commit)...)
	}
	if b.lines != nil {
		w.blocks = append(w.blocks, b)
	}
}

// mostBody is the largest number of lines shown of one definition.
const mostBody = 200

// body returns the lines of a definition after its first.
func (l *lookup) body(f *symbols.SymbolFile, m *symbols.SymbolMatch, o *browse.OutlineFile, commit string) []string {
	if o == nil {
		return nil // the definition itself is there without it
	}

	// Compare the name too: several definitions may begin on one line.
	first, last := int(m.Range.Start.Line), 0
	for _, s := range o.Symbols {
		if s.First == first && s.Name == m.Name {
			last = s.Last
		}
	}
	// The first line is already shown, and an unknown end is not guessed.
	if last <= first {
		return nil
	}

	// Read the commit that was searched; elsewhere the line numbers differ.
	if commit == "" {
		commit = l.Text("ref")
	}
	r, err := l.browse.ReadFile(l.ctx, l.viewer, browse.ReadFileRequest{
		Repo:   f.Repository,
		Path:   f.Path,
		Ref:    commit,
		Offset: first + 1,
		Limit:  min(last-first, mostBody),
	})
	if err != nil {
		return nil
	}

	var lines []string
	for i, line := range r.Lines {
		lines = append(lines, numbered(first+1+i, false, shownLine(line)))
	}

	// Without a mark, the cut would look like the end of the function.
	if last-first > mostBody {
		lines = append(lines, fmt.Sprintf("… to line %d\n", last))
	}
	return lines
}
