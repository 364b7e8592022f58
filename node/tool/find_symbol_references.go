package tool

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard"
)

func references(s symbols.Searcher, b browse.Reader) Tool {
	return Tool{
		Name: "find_symbol_references", Title: "Find references",
		About: "Finds where a name is used, below where it is defined. Shows `line in function: text` by file. Code comes first, comments and strings as `line~`. `calls` keeps only calls. Names are compared, not types.",
		Params: []Param{
			symbolParam, anyRepoParam,
			{Name: "calls", Kind: Boolean, Default: false},
			{Name: "tree", Kind: String, Words: []string{"callers", "callees"}, About: "calls of calls"},
			{Name: "depth", Kind: Integer, Min: 1, Max: 5, Default: 2},
			pathParam, includeParam, excludeParam, testsParam, refParam,
			{Name: "limit", Kind: Integer, Min: 1, Max: mostOfSymbol, Default: 200, About: "most lines"},
		},
		Run: ofEachName(func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
			return runReferences(ctx, v, s, b, a)
		}),
	}
}

// runReferences answers a call of find_symbol_references.
func runReferences(ctx context.Context, v catalog.Viewer, s symbols.Searcher, b browse.Reader, a *Args) (string, error) {
	l := &lookup{a, ctx, v, s, b}
	if a.Text("tree") != "" {
		if text, err := l.callTree(); err != nil || text != "" {
			return text, err
		}
		// It is not known, or nothing calls it: then its uses tell more, or names that are like it.
		l.drop("tree", "depth")
		text, err := runReferences(ctx, v, s, b, a)
		return "No calls of " + label(l.Text("symbol")) + " are known here; all uses:\n" + text, err
	}
	r, err := l.used()
	if err != nil {
		return "", err
	}

	if len(r.Files) == 0 {
		return l.unused(r)
	}
	o, err := l.owner()
	if err != nil {
		return "", err
	}
	return l.references(r, o), nil
}

// used is the references of the name.
func (l *lookup) used() (*symbols.SymbolResponse, error) {
	req := l.request()
	req.Symbol = l.name()
	r, err := l.search.References(l.ctx, l.viewer, req)

	// A revision that is not indexed is read in the repository that is named.
	if err == nil && !l.indexed(r) && l.Text("repo") != "" {
		return l.usedAt()
	}
	return r, err
}

// usedAt is the references at a revision that is not indexed: lines that have
// the name and do not define it.
func (l *lookup) usedAt() (*symbols.SymbolResponse, error) {
	// More than would be outlined: a use without its function is still a use.
	g, err := l.linesByWord(1000)
	if err != nil {
		return nil, err
	}

	out := &symbols.SymbolResponse{Coverage: g.Coverage, Commits: map[string]string{l.Text("repo"): l.Text("ref")}}

	var repos, names []string
	for _, f := range g.Files {
		repos = append(repos, f.Repo)
		names = append(names, f.Path)
	}
	outlines := l.outlines(repos, names, out.Commits)

	for _, f := range g.Files {
		file := symbols.SymbolFile{
			Repository: f.Repo,
			Path:       f.Path,
			Language:   shard.Language(f.Path, nil), // by name alone: the content is not at hand
		}

		o := outlines[[2]string{f.Repo, f.Path}]
		if o != nil {
			file.Matches = l.definedIn(f.Lines, o)
		}
		if file.Matches != nil {
			out.Defined = append(out.Defined, file)
		}

		// Lines that only define the name leave a file without uses, which is not shown.
		file.Matches = l.usedIn(f.Lines, file.Language, o)
		if file.Matches != nil {
			out.Files = append(out.Files, file)
			out.MatchCount += len(file.Matches)
		}
	}
	return out, nil
}

// usedIn is the uses of the name in a file, of which lines have it: code before
// comments and texts.
func (l *lookup) usedIn(lines []browse.Line, lang string, o *browse.OutlineFile) (uses []symbols.SymbolMatch) {
	for _, line := range lines {
		// Without an outline a definition cannot be told apart, and stands among the uses.
		if defines(o, l.name(), line.Number) {
			continue
		}

		m := symbols.SymbolMatch{
			Line:        line.Text,
			OutsideCode: symbols.OutsideCode(lang, line.Text, bytes.Index(line.Text, []byte(l.name()))),
		}
		m.Range.Start.Line = uint32(line.Number)
		uses = append(uses, m)
	}

	// Stable: within each half the lines keep their order.
	slices.SortStableFunc(uses, func(a, b symbols.SymbolMatch) int {
		switch {
		case a.OutsideCode == b.OutsideCode:
			return 0
		case a.OutsideCode:
			return 1
		}
		return -1
	})
	return uses
}

// defines reports whether a line of a file begins a definition of a name.
func defines(o *browse.OutlineFile, name string, line int) bool {
	return o != nil && slices.ContainsFunc(o.Symbols, func(s browse.OutlineSymbol) bool {
		return s.First == line && s.Name == name
	})
}

// unused is the answer where the name stands nowhere: the names that are like
// it are those of definitions.
func (l *lookup) unused(r *symbols.SymbolResponse) (string, error) {
	if err := pathIsThere(l.ctx, l.viewer, l.browse, l.Args); err != nil {
		return "", err
	}

	// Somewhere else it may be used: that is told before similar names are.
	if filters := l.filters(); filters != "" {
		all := symbols.SymbolRequest{Symbol: l.name(), Repo: l.Text("repo"), Revision: l.Text("ref"), Paths: paths.Filter{Repos: l.List("repo")}}
		elsewhere, err := l.search.References(l.ctx, l.viewer, all)
		if err == nil && elsewhere.MatchCount > 0 {
			var e end
			// Before the filters are dropped: the end speaks of the call that was made.
			e.lacks(l.Args, elsewhere.Coverage, "")
			l.drop("path", "include", "exclude", "tests")
			return fmt.Sprintf("No reference of %s with this %s; without there are %d in %s: %s.\n%s", label(l.name()), filters,
				elsewhere.MatchCount, count(len(elsewhere.Files), "file"), l.render(l.tool.Name), e.String()), nil
		}
	}

	// A name that is defined has no use: names that are like it would not help.
	if defined := l.definedText(r.Defined); defined != "" {
		var e end
		e.lacks(l.Args, r.Coverage, "")
		return fmt.Sprintf("%sNo reference of %s found.\n%s", defined, label(l.Text("symbol")), e.String()), nil
	}

	// References have no list of similar names; definitions do.
	near := symbols.SymbolRequest{Symbol: l.name(), Repo: l.Text("repo"), Revision: l.Text("ref"), Paths: paths.Filter{Repos: l.List("repo")}}
	d, err := l.search.Definitions(l.ctx, l.viewer, near)
	if err == nil {
		r.Similar = d.Similar
	}
	return l.none("reference", r), nil
}

// usages tells what lines do with a name.
type usages struct {
	name             string
	label, prototype *regexp.Regexp
}

func usagesOf(name string) usages {
	quoted := regexp.QuoteMeta(name)
	return usages{
		name:      name,
		label:     regexp.MustCompile(`\bgoto\s+` + quoted + `(?:[^\pL\pM\pN_]|$)|^\s*` + quoted + `\s*:(?:[^:]|$)`),
		prototype: regexp.MustCompile(`^[A-Za-z_][\w\s*&:<>,]*[\s*&]` + quoted + `\s*\([^=]*$`),
	}
}

// labels reports whether the name is a label of C in a line, or a jump to it.
func (u usages) labels(lang string, line []byte) bool {
	// Few lines have either, and of a common name there are ten thousand to be matched.
	if !likeC(lang) || bytes.IndexByte(line, ':') < 0 && !bytes.Contains(line, []byte("goto")) {
		return false
	}
	return u.label.Match(line)
}

// declares reports whether a line is a prototype of the name. A return with a call
// looks like one whose type is called return.
func (u usages) declares(lang string, line []byte) bool {
	return likeC(lang) && !bytes.HasPrefix(line, []byte("return")) && u.prototype.Match(line)
}

// likeC reports whether a language has labels and prototypes: elsewhere the same form
// is a key or a call.
func likeC(lang string) bool {
	return lang == "C" || lang == "C++" || lang == "Objective-C" || lang == "Cuda"
}

// references writes uses by file, with the definitions around them. o is nil where
// the name is asked for without a type.
func (l *lookup) references(r *symbols.SymbolResponse, o *owner) string {
	w := &usesWriter{lookup: l, usages: usagesOf(l.name()), left: l.Number("limit"), owner: o}
	if o != nil {
		w.separate(r)
	}

	var repos, paths []string
	// One use with its function is enough: the index either keeps them or does not.
	known := false // to the index: what the uses stand in
	for i := range r.Files {
		f := &r.Files[i]
		repos = append(repos, f.Repository)
		paths = append(paths, f.Path)
		known = known || slices.ContainsFunc(f.Matches, func(m symbols.SymbolMatch) bool { return m.Around.Name != "" })
	}

	var outlines map[[2]string]*browse.OutlineFile
	if !known {
		outlines = l.outlines(repos, paths, r.Commits)
	}

	for i := range r.Files {
		f := &r.Files[i]
		w.file(f, outlines[[2]string{f.Repository, f.Path}])
	}

	// A name may be passed, or called in a way that one line does not show.
	if w.lines == 0 && w.uncalled > 0 {
		plain := &lookup{l.about("symbol", l.Text("symbol"), l.Number("maxTokens")), l.ctx, l.viewer, l.search, l.browse}
		plain.drop("calls")
		return fmt.Sprintf("No use of %s is a plain call; all uses:\n", label(l.name())) + plain.references(r, o)
	}
	return w.text(r, paths)
}

// separate tells whether the uses of a method are shown apart by their receivers.
func (w *usesWriter) separate(r *symbols.SymbolResponse) {
	// Two passes: whether receivers tell the uses apart is known only after all were seen.
	if by := w.lookup.receivers(w.owner); by.tellApart(r, w.counts, fewOthers) {
		w.receivers = by
	}

	// The lines are counted again.
	w.declared, w.labelled, w.onlyMention, w.mentions = 0, 0, 0, 0
	w.uncalled, w.unruled = 0, 0
}

// usesWriter gathers the lines of an answer and counts what it leaves out.
type usesWriter struct {
	*lookup
	usages                          usages
	owner                           *owner     // nil where the name is asked for without a type
	receivers                       *receivers // nil where all lines are shown alike
	others                          others     // the lines whose receiver is named otherwise
	blocks                          []block
	of                              []int  // number of each block's file
	goOn                            string // the call for the block behind those of files
	seen, files                     int    // files; those of them with lines that count
	lines, mentions                 int
	declared, labelled, onlyMention int // not shown
	uncalled                        int // uses that are no call, not shown
	unruled                         int // uses in languages whose calls are not known
	left, over                      int
	last                            string
}

func (w *usesWriter) file(f *symbols.SymbolFile, o *browse.OutlineFile) {
	b := block{head: fileLabel(f.Path) + "\n"}
	if w.Text("repo") == "" && f.Repository != w.last {
		b.head = "[" + f.Repository + "]\n" + b.head
	}

	number, before := w.seen, w.lines
	w.seen++
	var others []*symbols.SymbolMatch

	for m := range lines(f) {
		if !w.counts(m, f.Language) {
			continue
		}

		w.lines++
		if w.receivers != nil && !w.receivers.fits(m) {
			others = append(others, m)
			continue
		}

		if w.left == 0 {
			w.over++
			continue
		}
		w.left--
		b.lines = append(b.lines, w.line(m, o))
	}

	// Counted before the limit cuts: the first line tells of all files with uses.
	if w.lines > before {
		w.files++
	}
	if others != nil {
		w.others.add(w.receivers, w.where(f), others)
	}
	if b.lines != nil {
		w.blocks = append(w.blocks, b)
		w.of = append(w.of, number)
		w.last = f.Repository
	}
}

// lines are the uses of a file, of those in one line the first: a line is shown once.
func lines(f *symbols.SymbolFile) iter.Seq[*symbols.SymbolMatch] {
	return func(yield func(*symbols.SymbolMatch) bool) {
		last := uint32(0)
		for k := range f.Matches {
			m := &f.Matches[k]
			if m.Range.Start.Line == last {
				continue
			}
			last = m.Range.Start.Line

			if !yield(m) {
				return
			}
		}
	}
}

// where names a file in a line with its uses.
func (w *usesWriter) where(f *symbols.SymbolFile) string {
	if w.Text("repo") == "" {
		return f.Repository + " " + fileLabel(f.Path)
	}
	return fileLabel(f.Path)
}

// line is a use: its number, where it stands, and its text.
func (w *usesWriter) line(m *symbols.SymbolMatch, o *browse.OutlineFile) string {
	text := strings.TrimSpace(clean(bytes.TrimSpace(m.Line)))
	mark := ""
	if m.OutsideCode {
		mark = "~"
	} else if name := around(m, o); name != "" {
		mark = " in " + name
	}

	from := max(strings.Index(text, w.name()), 0)
	to := min(len(text), from+len(w.name()))
	return fmt.Sprintf("%d%s: %s\n", m.Range.Start.Line, mark, cut(text, from, to))
}

// counts tells whether a line is one that is asked for, and counts those that
// are not.
func (w *usesWriter) counts(m *symbols.SymbolMatch, lang string) bool {
	onlyCalls := w.Flag("calls")
	switch {
	// In prose a name with a parenthesis behind it is no call.
	case m.OutsideCode && onlyCalls:
		w.onlyMention++
		return false
	case m.OutsideCode:
		w.mentions++

	// A label only has the same letters, whatever is asked for.
	case w.usages.labels(lang, m.Line):
		w.labelled++
		return false
	}

	// Looked at only where it is asked for: of a common name there are ten thousand lines.
	if !onlyCalls {
		return true
	}

	// A prototype looks like a call, and is none of the places that call.
	if w.usages.declares(lang, m.Line) {
		w.declared++
		return false
	}
	called, known := calls(lang, w.usages.name, m.Line)
	switch {
	// Nothing is known of calls in this language: each use may be one.
	case !known:
		w.unruled++
	case !called:
		w.uncalled++
		return false
	}
	return true
}

// around is the name of what a use stands in: as the index knows it, else as the
// outline of its file, where there is one.
func around(m *symbols.SymbolMatch, o *browse.OutlineFile) string {
	if m.Around.Name != "" {
		return scopedName(m.Around.Name, m.Around.ParentName, m.Around.ParentKind)
	}
	return enclosing(o, int(m.Range.Start.Line))
}

// noun is what a line is called. With calls no other one counts: it says which
// question was answered.
func (w *usesWriter) noun() string {
	if w.Flag("calls") {
		return "call"
	}
	return "reference"
}

func (w *usesWriter) text(r *symbols.SymbolResponse, paths []string) string {
	noun := w.noun()

	var out strings.Builder
	if w.owner != nil {
		out.WriteString(w.owner.text(w.lookup))
	} else {
		out.WriteString(w.definedText(r.Defined))
	}
	fmt.Fprintf(&out, "%s of %s in %s", count(w.lines, noun), label(w.name()), count(w.files, "file"))
	if notes := w.notes(); notes != "" {
		out.WriteString(" (" + notes + ")")
	}

	// The caller gave a type; that it was not used has to be said where it is read first.
	if w.name() != w.Text("symbol") {
		fmt.Fprintf(&out, "; %s of any type: the receiver is not resolved", label(w.name()))
	}
	if w.receivers != nil {
		fmt.Fprintf(&out, ", those named like %s come first", label(w.owner.name))
	}

	e := end{found: w.lines > 0}
	w.sumUp(&e)
	shown := writeBlocks(w.Args, &out, w.blocks, &e, func(i int) string {
		if i >= len(w.of) {
			return w.goOn
		}
		return w.with("path", paths[w.of[i]], "include", nil)
	})

	// Neither reason excludes the other: files without room, and lines beyond the limit.
	if hidden := len(w.blocks) - shown; hidden > 0 {
		e.left = append(e.left, fmt.Sprintf("%s; %s", count(hidden, "file"), narrower(w.tool)))
	}
	if w.over > 0 {
		e.left = append(e.left, fmt.Sprintf("%s; %s", count(w.over, noun), w.beyond()))
	}
	if w.uncalled > 0 {
		e.leaves(count(w.uncalled, "use") + " that are no plain call; leave calls out")
	}
	e.lacks(w.Args, r.Coverage, "")
	return out.String() + e.String()
}

// sumUp adds the uses by receivers of other names behind the files: where room is short the
// last block is left out first. Where they are only counted, the lines are one call away.
func (w *usesWriter) sumUp(e *end) {
	if w.receivers == nil {
		return
	}
	w.blocks, w.goOn = append(w.blocks, w.others.block()), w.with("symbol", w.name())
	if !w.others.byLine() {
		e.left = append(e.left, fmt.Sprintf("lines of %s by receivers of other names; continue with %s", count(w.others.lines, w.noun()), w.goOn))
	}
}

// notes says what is not shown, or shown in another way.
func (w *usesWriter) notes() string {
	var notes []string
	// What is not shown first: it explains why the numbers do not add up.
	for _, n := range []struct {
		n    int
		text string
	}{
		{w.declared, "declarations %d not shown"},
		{w.labelled, "labels %d not shown"},
		{w.onlyMention, "comments and strings %d not shown"},
		{w.mentions, "%d in comments or strings (~)"},
		{w.unruled, "%d uses in languages whose calls are not known"},
	} {
		if n.n > 0 {
			notes = append(notes, fmt.Sprintf(n.text, n.n))
		}
	}

	return strings.Join(notes, ", ")
}
