package tool

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard"
)

func grep(s symbols.Searcher, b browse.Reader) Tool {
	return Tool{
		Name: "grep", Title: "Search file contents",
		About: "Finds lines that match a regular expression, by file, as `line: text`, few as `line in function: text`. A match, even of [^x] or \\s, spans lines only with \\n or (?s). `mode` and `groupBy` tell in few tokens where or what matches are.",
		Params: []Param{
			{Name: "pattern", Kind: String, Required: true, About: "RE2; escape ( ) [ ] { } . * + ? | to find them as they are"},
			anyRepoParam, pathParam, includeParam, excludeParam, testsParam, {Name: "ref", Kind: String, About: "branch, tag, commit, x@{date}; several as a,b"},
			{Name: "ignoreCase", Kind: Boolean, Default: false},
			{Name: "context", Kind: Integer, Min: 0, Max: 20, Default: 0, About: "lines before and after each match"},
			{Name: "codeOnly", Kind: Boolean, Default: false, About: "not in comments and prose"},
			{Name: "mode", Kind: String, Words: []string{"lines", "files", "count"}, Default: "lines"},
			{Name: "groupBy", Kind: String, Words: []string{"repo", "directory", "file", "match"}, About: "counts by this instead of lines; match: by the text that matched, or its first group"},
			{Name: "limit", Kind: Integer, Min: 1, Max: 10000, Default: 100, About: "most files, or groups"},
			{Name: "perFile", Kind: Integer, Min: 1, Max: 1000, About: "most lines of a file"},
			{Name: "offset", Kind: Integer, Min: 0, Max: 10000, Exact: true, Default: 0, About: "of them to pass over"},
		},
		Run: ofEachRef(func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
			return runGrep(ctx, v, s, b, a)
		}),
	}
}

// runGrep runs a call of grep.
func runGrep(ctx context.Context, v catalog.Viewer, s symbols.Searcher, b browse.Reader, a *Args) (string, error) {
	g := newGrepping(a)
	r, err := s.Grep(ctx, v, g.request())
	if err != nil {
		return "", err
	}

	// If nothing was found, the path may be wrong.
	if len(r.Files) == 0 {
		if err := pathIsThere(ctx, v, b, a); err != nil {
			return "", err
		}
	}
	if g.Flag("codeOnly") {
		g.onlyCode(r)
	}
	g.lost = g.overLines(ctx, v, s)
	return g.text(r), nil
}

// pathIsThere returns an error if the searched directory or file does not exist. "No match" would
// be true but misleading.
func pathIsThere(ctx context.Context, v catalog.Viewer, b browse.Reader, a *Args) error {
	dir := strings.Trim(strings.TrimPrefix(a.Text("path"), "./"), "/")
	// Without a single repository, the path may exist in some of them only.
	if dir == "" || dir == "." || a.Text("repo") == "" {
		return nil
	}
	one := browse.ListTreeRequest{Repo: a.Text("repo"), Ref: a.Text("ref"), Path: dir, MaxEntries: 1}
	_, err := b.ListTree(ctx, v, one)
	if err != nil && strings.HasSuffix(err.Error(), "is a file, not a directory") {
		return nil
	}
	return err
}

// grepping is one call of grep.
type grepping struct {
	*Args
	written string // the caller's pattern, with the flag for ignoreCase
	pattern string // the pattern that is searched: within a line
	over    bool   // the pattern may match over lines

	few    bool   // lines match: each is told with what it stands in
	lost   string // what matches over lines alone, with how to get it
	group  string // "" for none
	limit  int
	offset int // files
}

// newGrepping reads the arguments of a call.
func newGrepping(a *Args) *grepping {
	g := &grepping{
		Args:    a,
		pattern: a.Text("pattern"),
		group:   a.Text("groupBy"),
		limit:   a.Number("limit"),
		offset:  a.Number("offset"),
	}
	if a.Flag("ignoreCase") {
		g.pattern = "(?i)" + g.pattern
	}
	// Advised calls have the caller's pattern.
	g.written = g.pattern
	g.pattern, g.over = withinLine(g.written)

	// groupBy is more specific than mode=count, and wins.
	if g.group == "" && a.Text("mode") == "count" {
		g.group = "file"
	}
	return g
}

// request returns the search of the call.
func (g *grepping) request() search.GrepRequest {
	req := search.GrepRequest{
		Pattern: g.pattern,
		Paths:   pathsOf(g.Args),
		Repo:    g.Text("repo"),
		Ref:     g.Text("ref"),
		Limit:   min(g.limit+g.offset, 10000),
		Context: g.Number("context"),
		Lexed:   g.Flag("codeOnly"),
	}
	// Do not read lines that are not shown; the counts of each file are enough. Grouping by match
	// needs the lines.
	if g.group != "" || g.Text("mode") == "files" {
		req.Counts, req.Context = g.group != "match" && !g.Flag("codeOnly"), 0
	}

	// Count as many files as possible: with groups, limit is a number of groups.
	if g.group != "" {
		req.Limit = 10000
	}

	return req
}

// onlyCode removes the lines whose match is in a comment or in prose. A match in code that continues
// on another line is kept.
func (g *grepping) onlyCode(r *search.GrepResponse) {
	expr, err := regexp.Compile("(?m)" + g.pattern)
	if err != nil {
		return // the search has said what is wrong
	}
	outside := func(lang string, line browse.Line) bool {
		if line.Around {
			return false
		}
		for _, m := range expr.FindAllIndex(line.Text, -1) {
			if !symbols.InComment(lang, line.Text, line.Open, m[0]) {
				return false
			}
		}
		return expr.Match(line.Text)
	}

	r.Matches = 0
	for i := range r.Files {
		f := &r.Files[i]
		lang, before := shard.Language(f.Path, nil), len(f.Lines)
		f.Lines = slices.DeleteFunc(f.Lines, func(line browse.Line) bool { return outside(lang, line) })
		f.Matches -= before - len(f.Lines)
		f.Ranges = max(0, f.Ranges-(before-len(f.Lines)))
		r.Matches += f.Matches
	}
	r.Files = slices.DeleteFunc(r.Files, func(f search.GrepFile) bool { return f.Matches <= 0 })
}

// text writes the answer.
func (g *grepping) text(r *search.GrepResponse) string {
	switch {
	case len(r.Files) == 0:
		return g.nothing(r)
	case g.group != "":
		return g.groups(r)
	}

	g.few = r.Matches <= fewMatches
	// The search runs again from the start, because ranks need all files.
	files := r.Files[min(g.offset, len(r.Files)):]
	if len(files) == 0 {
		var e end
		e.lacks(g.Args, r.Coverage, "")
		return fmt.Sprintf("Only %s: no file is left behind offset %d.\n%s", count(len(r.Files), "file"), g.offset, e.String())
	}

	var out strings.Builder
	// An incomplete search knows only a lower bound.
	if r.Coverage.Worst() != "" {
		out.WriteString("At least ")
	}
	fmt.Fprintf(&out, "%s %s", g.found(r), count(len(r.Files), "file"))
	if g.Text("repo") == "" {
		fmt.Fprintf(&out, " of %s", count(reposOf(r.Files), "repository"))
	}
	if g.offset > 0 {
		fmt.Fprintf(&out, "; from file %d on", g.offset+1)
	}

	e := g.ending(true)

	// Reorder only the files that fit: the advised call skips files by rank.
	_, fitting := share(g.blocks(files), g.room()-out.Len())
	files = together(files, fitting)

	// The path is enough to select the rest of a file; filters could only exclude it.
	blocks := g.blocks(files)
	shown := writeBlocks(g.Args, &out, blocks, &e, func(i int) string {
		// The same call would show the same again, so read the rest of the file.
		f := &files[i]
		if g.Text("path") == f.Path && len(blocks[i].lines) <= len(f.Lines) {
			next := f.Lines[len(blocks[i].lines)-blocks[i].left].Number
			return callOf("read_file", "repo", f.Repo, "path", f.Path, "ref", g.Text("ref"), "offset", next)
		}
		return g.with("repo", files[i].Repo, "path", files[i].Path, "include", nil, "exclude", nil, "limit", nil, "offset", nil)
	})
	if left := len(files) - shown; left > 0 {
		e.left = append(e.left, fmt.Sprintf("%s; continue with %s", count(left, "file"), g.with("offset", g.offset+shown)))
	}

	// Add this after the files that had no room, which are the better next step.
	e.lacks(g.Args, r.Coverage, g.more(len(r.Files)))
	if r.Matches > mostRead && g.Text("mode") == "lines" {
		e.hint = "How many where: " + g.with("groupBy", "directory", "context", nil, "perFile", nil, "limit", nil, "offset", nil) + "."
	}
	return out.String() + e.String()
}

// together moves the files of one repository, among the first n, next to the best of them.
func together(files []search.GrepFile, n int) []search.GrepFile {
	place := map[string]int{}
	for i := range files[:n] {
		if _, ok := place[files[i].Repo]; !ok {
			place[files[i].Repo] = i
		}
	}

	// Stable, so that the files of a repository keep their rank.
	files = slices.Clone(files)
	slices.SortStableFunc(files[:n], func(x, y search.GrepFile) int { return place[x.Repo] - place[y.Repo] })
	return files
}

// ending begins the last line of an answer. It mentions matches over several lines that the search
// left out.
func (g *grepping) ending(found bool) end {
	e := end{found: found}
	e.leaves(g.lost)
	return e
}

// fewMatches is the largest number of matching lines that are shown with their enclosing
// definitions. With more, these would take a tenth of the room.
const fewMatches = 30

// mostRead is the number of matching lines above which an answer suggests grouping.
const mostRead = 500

// found says how much matches, up to the word before the number of files.
func (g *grepping) found(r *search.GrepResponse) string {
	ranges := rangesOf(r.Files)
	switch {
	case g.Text("mode") == "files":
		return count(r.Matches, "match") + " in"
	// A match over several lines counts once, so name both numbers.
	case g.over && ranges != r.Matches:
		return fmt.Sprintf("%s on %s in", count(ranges, "match"), count(r.Matches, "line"))
	}
	return count(r.Matches, "matching line") + " in"
}

// more returns the call for the files after those of an answer.
func (g *grepping) more(seen int) string {
	if seen >= 10000 {
		return "" // offset goes no further
	}
	return g.with("offset", seen)
}

// rangesOf counts the matches in files. A match may span several lines.
func rangesOf(files []search.GrepFile) (n int) {
	for i := range files {
		n += files[i].Ranges
	}
	return n
}

func reposOf(files []search.GrepFile) int {
	repos := map[string]bool{}
	for i := range files {
		repos[files[i].Repo] = true
	}
	return len(repos)
}

// blocks makes a block of each file: a line with the path, then its lines.
func (g *grepping) blocks(files []search.GrepFile) []block {
	// If the pattern does not compile, expr is nil, and lines are shown from their start.
	expr, _ := regexp.Compile("(?m)" + g.pattern)

	blocks := make([]block, len(files))
	last := ""
	for i := range files {
		f := &files[i]
		b := &blocks[i]
		b.head = fileLabel(f.Path) + "\n"
		if g.Text("repo") == "" && f.Repo != last {
			b.head = "[" + f.Repo + "]\n" + b.head
		}
		last = f.Repo
		b.lines = g.fileLines(f, expr)
	}
	return blocks
}

// fileLines writes the lines of a file, with at most perFile matching ones.
func (g *grepping) fileLines(f *search.GrepFile, expr *regexp.Regexp) (lines []string) {
	around, most := g.Number("context") > 0, g.Number("perFile")
	matches, before, last := 0, 0, ""
	var indents map[int]string
	if around {
		f.Lines = withoutBlankEnds(f.Lines)
		indents = commonIndents(f.Lines)
	}
	for _, line := range f.Lines {
		if !line.Around {
			matches++
		}
		// Only matching lines count, not those around them.
		if !line.Around && most > 0 && matches > most {
			return append(lines, fmt.Sprintf("… %d more\n", f.Matches-most))
		}

		// Consecutive lines in one definition name it once, unless a line shows the name itself.
		in := ""
		if s := f.In[line.Number]; s.Name != "" && !line.Around && g.few {
			if name := scopedName(s.Name, s.ParentName, s.ParentKind); name != last {
				if last = name; !bytes.Contains(line.Text, []byte(s.Name)) {
					in = " in " + withinFile(f.Path, name)
				}
			}
		}
		shown := visible(line.Text)
		// The indentation of a single line says nothing, nor does that of all lines.
		if around {
			shown = strings.TrimPrefix(shown, indents[line.Number])
		} else {
			shown = strings.TrimLeft(shown, " \t")
		}
		if line.Around && len(shown) > longestAround {
			shown = cutEnd(shown, longestAround)
		}
		next := before > 0 && line.Number == before+1
		text := ""
		switch {
		case !line.Around:
			text = fmt.Sprintf("%d%s: %s\n", line.Number, in, aroundMatch(shown, expr))
		case next:
			text = strings.TrimRight(" "+shown, " ") + "\n"
		default:
			text = fmt.Sprintf("%d- %s\n", line.Number, shown)
		}
		// As in grep's output, -- separates lines that are not consecutive.
		if around && before > 0 && !next {
			text = "--\n" + text
		}
		before = line.Number
		lines = append(lines, text)
	}
	return lines
}

// longestAround is the number of bytes of a line around a match that is shown.
const longestAround = 160

// asideMatch is the number of bytes of a long line on each side of its first match.
const asideMatch = 140

// withoutBlankEnds removes empty lines at the ends of what is shown around matches.
func withoutBlankEnds(lines []browse.Line) []browse.Line {
	blank := func(i int) bool { return lines[i].Around && len(bytes.TrimSpace(lines[i].Text)) == 0 }
	drop := make([]bool, len(lines))
	for i := range lines {
		begins := i == 0 || lines[i-1].Number != lines[i].Number-1 || drop[i-1]
		drop[i] = begins && blank(i)
	}
	for i := len(lines) - 1; i >= 0; i-- {
		ends := i == len(lines)-1 || lines[i+1].Number != lines[i].Number+1 || drop[i+1]
		drop[i] = drop[i] || ends && blank(i)
	}
	kept := lines[:0:0]
	for i := range lines {
		if !drop[i] {
			kept = append(kept, lines[i])
		}
	}
	return kept
}

// commonIndents returns, by line number, the white space that each line of a run of lines begins with.
func commonIndents(lines []browse.Line) map[int]string {
	indents := map[int]string{}
	for from := 0; from < len(lines); {
		to, common := from, ""
		for found := false; to < len(lines) && (to == from || lines[to].Number == lines[to-1].Number+1); to++ {
			text := visible(lines[to].Text)
			indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
			switch {
			case indent == text:
			case !found:
				common, found = indent, true
			default:
				n := 0
				for n < min(len(common), len(indent)) && common[n] == indent[n] {
					n++
				}
				common = common[:n]
			}
		}
		for ; from < to; from++ {
			indents[lines[from].Number] = common
		}
	}
	return indents
}

// aroundMatch shortens a line around its first match.
func aroundMatch(line string, expr *regexp.Regexp) string {
	from, to := 0, 0
	// Run the expression again only for long lines.
	if expr != nil && len(line) > 2*asideMatch {
		if m := expr.FindStringIndex(line); m != nil {
			from, to = m[0], m[1]
		}
	}
	return cutAround(line, from, to, asideMatch)
}

// nothing answers if no line matches, with a suggestion.
func (g *grepping) nothing(r *search.GrepResponse) string {
	e := g.ending(false)
	e.lacks(g.Args, r.Coverage, "")

	// Give one hint: about filters first, then about case. If the revision was not searched, the
	// end of the answer says so instead.
	filtered := g.List("include") != nil || g.List("exclude") != nil || g.Text("tests") != "include" || g.Flag("codeOnly")
	hint := ""
	switch {
	case r.Coverage.Has(coverage.NoRevision):
	case filtered:
		hint = " In all files: " + g.with("include", nil, "exclude", nil, "tests", nil, "codeOnly", nil) + "."
	case !g.Flag("ignoreCase") && !strings.HasPrefix(g.Text("pattern"), "(?i)"):
		hint = " To ignore case: " + g.with("ignoreCase", true) + "."
	}
	return "No line matches" + searched(r.Coverage) + hint + "\n" + e.String()
}
