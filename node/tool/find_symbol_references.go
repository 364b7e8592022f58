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
		About: "Finds where a name is used, below where it is defined. Shows `line in function: text` by file, strings as `line~`; comments only where nothing else is found. `calls` keeps only calls. Names are compared, not types.",
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

// runReferences runs a call of find_symbol_references.
func runReferences(ctx context.Context, v catalog.Viewer, s symbols.Searcher, b browse.Reader, a *Args) (string, error) {
	l := &lookup{a, ctx, v, s, b}
	if a.Text("tree") != "" {
		if text, err := l.callTree(); err != nil || text != "" {
			return text, err
		}
		// The function is unknown or nothing calls it. All uses, or similar names, are more
		// helpful.
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

// used finds the references of the name.
func (l *lookup) used() (*symbols.SymbolResponse, error) {
	req := l.request()
	req.Symbol = l.name()
	r, err := l.search.References(l.ctx, l.viewer, req)

	// An unindexed revision is read from the mirror of the named repository.
	if err == nil && !l.indexed(r) && l.Text("repo") != "" {
		return l.usedAt()
	}
	return r, err
}

// usedAt finds references at an unindexed revision: lines that contain the name and do not define
// it.
func (l *lookup) usedAt() (*symbols.SymbolResponse, error) {
	// Read more files than are outlined: a use matters even if its function is unknown.
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

		// Skip files that only define the name.
		file.Matches = l.usedIn(f.Lines, file.Language, o)
		if file.Matches != nil {
			out.Files = append(out.Files, file)
			out.MatchCount += len(file.Matches)
		}
	}
	return out, nil
}

// usedIn returns the uses of the name in a file, code before comments and strings. lines are the
// lines that contain the name.
func (l *lookup) usedIn(lines []browse.Line, lang string, o *browse.OutlineFile) (uses []symbols.SymbolMatch) {
	for _, line := range lines {
		// Without an outline, definitions cannot be told from uses.
		if defines(o, l.name(), line.Number) {
			continue
		}

		m := symbols.SymbolMatch{
			Line:        line.Text,
			Open:        line.Open,
			OutsideCode: symbols.OutsideCode(lang, line.Text, line.Open, bytes.Index(line.Text, []byte(l.name()))),
		}
		m.Range.Start.Line = uint32(line.Number)
		uses = append(uses, m)
	}

	// Stable, so that lines keep their order within code and within comments.
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

// defines reports whether a definition of a name begins on a line.
func defines(o *browse.OutlineFile, name string, line int) bool {
	return o != nil && slices.ContainsFunc(o.Symbols, func(s browse.OutlineSymbol) bool {
		return s.First == line && s.Name == name
	})
}

// unused answers if there are no uses. It suggests similar names of definitions.
func (l *lookup) unused(r *symbols.SymbolResponse) (string, error) {
	if err := pathIsThere(l.ctx, l.viewer, l.browse, l.Args); err != nil {
		return "", err
	}

	// Uses outside the filters are a better hint than similar names.
	if filters := l.filters(); filters != "" {
		all := symbols.SymbolRequest{Symbol: l.name(), Repo: l.Text("repo"), Revision: l.Text("ref"), Paths: paths.Filter{Repos: l.List("repo")}}
		elsewhere, err := l.search.References(l.ctx, l.viewer, all)
		if err == nil && elsewhere.MatchCount > 0 {
			var e end
			// Describe the end before the filters are dropped: it is about the original call.
			e.lacks(l.Args, elsewhere.Coverage, "")
			l.drop("path", "include", "exclude", "tests")
			return fmt.Sprintf("No reference of %s with this %s; without there are %d in %s: %s.\n%s", label(l.name()), filters,
				elsewhere.MatchCount, count(len(elsewhere.Files), "file"), l.render(l.tool.Name), e.String()), nil
		}
	}

	// The name is defined but not used; similar names would not help.
	if defined := l.definedText(r.Defined); defined != "" {
		var e end
		e.lacks(l.Args, r.Coverage, "")
		return fmt.Sprintf("%sNo reference of %s found.\n%s", defined, label(l.Text("symbol")), e.String()), nil
	}

	// A reference search returns no similar names, but a definition search does.
	near := symbols.SymbolRequest{Symbol: l.name(), Repo: l.Text("repo"), Revision: l.Text("ref"), Paths: paths.Filter{Repos: l.List("repo")}}
	d, err := l.search.Definitions(l.ctx, l.viewer, near)
	if err == nil {
		r.Similar = d.Similar
	}
	return l.none("reference", r), nil
}

// usages recognizes labels and prototypes of a name.
type usages struct {
	name             string
	label, prototype *regexp.Regexp
}

// usagesOf returns the usages of a name.
func usagesOf(name string) usages {
	quoted := regexp.QuoteMeta(name)
	return usages{
		name:      name,
		label:     regexp.MustCompile(`\bgoto\s+` + quoted + `(?:[^\pL\pM\pN_]|$)|^\s*` + quoted + `\s*:(?:[^:]|$)`),
		prototype: regexp.MustCompile(`^[A-Za-z_][\w\s*&:<>,]*[\s*&]` + quoted + `\s*\([^=]*$`),
	}
}

// labels reports whether the name is a C label on a line, or the target of a goto.
func (u usages) labels(lang string, line []byte) bool {
	// Check this first, because it is cheap: a common name has thousands of lines.
	if !likeC(lang) || bytes.IndexByte(line, ':') < 0 && !bytes.Contains(line, []byte("goto")) {
		return false
	}
	return u.label.Match(line)
}

// declares reports whether a line is a prototype of the function. A return statement with a call
// looks like a prototype too.
func (u usages) declares(lang string, line []byte) bool {
	return likeC(lang) && !bytes.HasPrefix(line, []byte("return")) && u.prototype.Match(line)
}

// likeC reports whether a language has labels and prototypes. In others the same text is a key or a
// call.
func likeC(lang string) bool {
	return lang == "C" || lang == "C++" || lang == "Objective-C" || lang == "Cuda"
}

// references writes uses by file, with the function around each. o is nil if the request names no
// type.
func (l *lookup) references(r *symbols.SymbolResponse, o *owner) string {
	w := &usesWriter{lookup: l, usages: usagesOf(l.name()), left: l.Number("limit"), owner: o}
	w.onlyCode = slices.ContainsFunc(r.Files, func(f symbols.SymbolFile) bool {
		return slices.ContainsFunc(f.Matches, func(m symbols.SymbolMatch) bool { return !w.inComment(&m, f.Language) })
	})
	if w.Flag("calls") {
		w.bare = bareCallsOf(w.name(), r)
	}
	if o != nil {
		w.separate(r)
	}

	var repos, paths []string
	// If the index knows the enclosing function of one use, it knows those of all.
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
		w.file(r, f, outlines[[2]string{f.Repository, f.Path}])
	}

	// The function may be passed as a value, or called in a way that one line does not show.
	if w.lines == 0 && w.uncalled > 0 {
		plain := &lookup{l.about("symbol", l.Text("symbol"), l.Number("maxTokens")), l.ctx, l.viewer, l.search, l.browse}
		plain.drop("calls")
		return fmt.Sprintf("No use of %s is a plain call; all uses:\n", label(l.name())) + plain.references(r, o)
	}
	return w.text(r, paths)
}

// separate decides whether uses of a method are grouped by their receivers.
func (w *usesWriter) separate(r *symbols.SymbolResponse) {
	// Two passes are needed: only all uses together show whether receivers help.
	if by := w.lookup.receivers(w.owner); by.tellApart(r, w.counts, fewOthers) {
		w.receivers = by
	}

	// The second pass counts again.
	w.declared, w.labelled, w.onlyMention, w.mentions, w.commented = 0, 0, 0, 0, 0
	w.uncalled, w.unruled = 0, 0
}

// usesWriter collects the lines of an answer, and counts what it leaves out.
type usesWriter struct {
	*lookup
	usages                          usages
	bare                            *bareCalls // nil where the name cannot be called alone
	owner                           *owner     // nil where the name is asked for without a type
	receivers                       *receivers // nil where all lines are shown alike
	others                          others     // the lines whose receiver is named otherwise
	blocks                          []block
	of                              []int  // number of each block's file
	goOn                            string // the call for the block behind those of files
	seen, files                     int    // files; those of them with lines that count
	lines, mentions                 int
	declared, labelled, onlyMention int  // not shown
	commented                       int  // not shown, unless all are in comments
	uncalled                        int  // uses that are no call, not shown
	unruled                         int  // uses in languages whose calls are not known
	onlyCode                        bool // comments are counted and not shown: there is something else
	left, over                      int
	last                            string
	in                              string // what the line before is in
}

// fewCalls is the number of calls up to which each is shown with its text.
const fewCalls = 8

// asideUse is the number of bytes of a long line on each side of a use.
const asideUse = 80

// inComment reports whether a use is in a comment or in prose, as a change log without an extension is.
func (w *usesWriter) inComment(m *symbols.SymbolMatch, lang string) bool {
	return lang == "" || m.OutsideCode && symbols.InComment(lang, m.Line, m.Open, max(bytes.Index(m.Line, []byte(w.name())), 0))
}

// file adds the uses in one file, up to the limit.
func (w *usesWriter) file(r *symbols.SymbolResponse, f *symbols.SymbolFile, o *browse.OutlineFile) {
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
		if w.receivers != nil && !w.receivers.fits(f, m) {
			others = append(others, m)
			continue
		}

		if w.left == 0 {
			w.over++
			continue
		}
		w.left--
		in := around(m, o)
		if n := len(b.lines); w.Flag("calls") && r.MatchCount > fewCalls && n > 0 && in != "" && in == w.in {
			// Of many calls in one function, the first is shown.
			numbers, rest, _ := strings.Cut(b.lines[n-1], " ")
			b.lines[n-1] = fmt.Sprintf("%s,%d %s", numbers, m.Range.Start.Line, rest)
			continue
		}
		w.in = in
		b.lines = append(b.lines, w.line(f, m, o))
	}

	// Count before the limit: the first line of the answer has the number of all files with uses.
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

// lines iterates over the uses in a file, one for each line.
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

// where returns the path of a file, with its repository unless the call names one.
func (w *usesWriter) where(f *symbols.SymbolFile) string {
	if w.Text("repo") == "" {
		return f.Repository + " " + fileLabel(f.Path)
	}
	return fileLabel(f.Path)
}

// line writes one use: its line number, enclosing function and text.
func (w *usesWriter) line(f *symbols.SymbolFile, m *symbols.SymbolMatch, o *browse.OutlineFile) string {
	text := strings.TrimSpace(clean(bytes.TrimSpace(m.Line)))
	mark := ""
	if m.OutsideCode {
		mark = "~"
	} else if name := around(m, o); name != "" {
		mark = " in " + withinFile(f.Path, name)
	}

	from := max(strings.Index(text, w.name()), 0)
	to := min(len(text), from+len(w.name()))
	return fmt.Sprintf("%d%s: %s\n", m.Range.Start.Line, mark, cutAround(text, from, to, asideUse))
}

// counts reports whether a line is wanted, and counts the others by reason.
func (w *usesWriter) counts(m *symbols.SymbolMatch, lang string) bool {
	onlyCalls := w.Flag("calls")
	switch {
	// In a comment, a name before a parenthesis is not a call.
	case m.OutsideCode && onlyCalls:
		w.onlyMention++
		return false
	case w.onlyCode && w.inComment(m, lang):
		w.commented++
		return false
	case m.OutsideCode:
		w.mentions++

	// A label is another thing with the same name.
	case w.usages.labels(lang, m.Line):
		w.labelled++
		return false
	}

	// Examine lines only if calls are requested: a common name has thousands of lines.
	if !onlyCalls {
		return true
	}

	// A prototype looks like a call, but is none.
	if w.usages.declares(lang, m.Line) {
		w.declared++
		return false
	}
	called, known := calls(lang, w.usages.name, m.Line)
	switch {
	// The calls of this language are not known, so each use may be one.
	case !known:
		w.unruled++
	case !called && !w.bare.calls(m, lang):
		w.uncalled++
		return false
	}
	return true
}

// around returns the name of the definition around a use, from the index or else from the outline.
func around(m *symbols.SymbolMatch, o *browse.OutlineFile) string {
	if m.Around.Name != "" {
		return scopedName(m.Around.Name, m.Around.ParentName, m.Around.ParentKind)
	}
	return enclosing(o, int(m.Range.Start.Line))
}

// noun returns "call" if only calls are counted, else "reference".
func (w *usesWriter) noun() string {
	if w.Flag("calls") {
		return "call"
	}
	return "reference"
}

// text writes the answer.
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

	// The type in the request was not used, so the first line says so.
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

	// Files may be missing for lack of room, and lines because of the limit.
	if hidden := len(w.blocks) - shown; hidden > 0 {
		e.left = append(e.left, fmt.Sprintf("%s; %s", count(hidden, "file"), narrower(w.tool)))
	}
	if w.over > 0 {
		e.left = append(e.left, fmt.Sprintf("%s; %s", count(w.over, noun), w.beyond()))
	}
	if w.uncalled > 0 {
		e.leaves(count(w.uncalled, "use") + " other than a plain call; leave calls out")
	}
	e.lacks(w.Args, r.Coverage, "")
	return out.String() + e.String()
}

// sumUp adds the uses with other receivers after the files, because the last block is dropped first
// if room is short. If only their number is shown, it adds the call that shows the lines.
func (w *usesWriter) sumUp(e *end) {
	if w.receivers == nil {
		return
	}
	w.blocks, w.goOn = append(w.blocks, w.others.block()), w.with("symbol", w.name())
	if !w.others.byLine() {
		e.left = append(e.left, fmt.Sprintf("lines of %s by receivers of other names; continue with %s", count(w.others.lines, w.noun()), w.goOn))
	}
}

// notes describes lines that are not shown, or are marked.
func (w *usesWriter) notes() string {
	var notes []string
	mentions := "%d in comments or strings (~)"
	if w.onlyCode {
		mentions = "%d in strings (~)"
	}
	// Begin with the lines that are not shown: they explain the totals.
	for _, n := range []struct {
		n    int
		text string
	}{
		{w.declared, "declarations %d not shown"},
		{w.labelled, "labels %d not shown"},
		{w.onlyMention, "comments and strings %d not shown"},
		{w.commented, "%d in comments and prose not shown"},
		{w.mentions, mentions},
		{w.unruled, "%d uses in languages whose calls are not known"},
	} {
		if n.n > 0 {
			notes = append(notes, fmt.Sprintf(n.text, n.n))
		}
	}

	return strings.Join(notes, ", ")
}
