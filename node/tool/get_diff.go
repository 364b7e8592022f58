package tool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/paths"
)

func getDiff(b browse.Reader) Tool {
	return Tool{
		Name: "get_diff", Title: "Compare two revisions",
		About: "Shows what differs between two revisions (two-dot). `symbols` names functions and types that came, went or changed. `auto` gives the patch if it fits, else symbols of one file or counts. `head` alone shows one commit, its message and first tag.",
		Params: []Param{
			repoParam,
			{Name: "base", Kind: String, About: "branch, tag or commit; else the one before head"},
			{Name: "head", Kind: String, Required: true},
			{Name: "path", Kind: String},
			{Name: "mode", Kind: String, Words: []string{"auto", "summary", "names", "stat", "symbols", "patch"}, Default: "auto"},
			{Name: "status", Kind: String, Words: []string{"added", "modified", "deleted", "renamed"}},
			includeParam, excludeParam,
			{Name: "context", Kind: Integer, Min: 0, Max: 20, Default: 3, About: "lines around a change"},
			{Name: "commits", Kind: Boolean, Default: false, About: "also list those that made it"},
			{Name: "page", Kind: Integer, Min: 1, Default: 1},
		},
		Run: func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
			return runGetDiff(ctx, v, b, a)
		},
	}
}

// runGetDiff runs a call of get_diff.
func runGetDiff(ctx context.Context, v catalog.Viewer, b browse.Reader, a *Args) (string, error) {
	if !a.Has("base") {
		a.values["base"] = a.Text("head") + "~1"
	}
	c := &comparison{Args: a, mode: a.Text("mode")}
	// Only a patch has further pages.
	if c.mode == "auto" && a.Number("page") > 1 {
		c.mode = "patch"
	}
	stat := c.mode == "summary" || c.mode == "names" || c.mode == "stat"
	if err := c.ask(ctx, v, b, stat); err != nil {
		return "", err
	}

	// List the commits on each page: only the first shows them, but they change how the patch is
	// divided.
	if c.Flag("commits") {
		if err := c.between(ctx, v, b); err != nil {
			return "", err
		}
	}

	if c.mode == "symbols" {
		if err := c.findSymbols(ctx, v, b); err != nil {
			return "", err
		}
	}

	if c.mode == "auto" || c.mode == "patch" {
		c.lessContext()
	}
	tooLarge := c.mode == "auto" && (c.r.Cut || len(c.message())+c.size > a.room())
	if !tooLarge {
		return c.text(), nil
	}

	// Counts say little about a single file. Show its changed definitions, or else begin its patch.
	// Both need the whole difference.
	if len(c.files) == 1 {
		c.mode = "patch"
		if c.r.Cut {
			if err := c.ask(ctx, v, b, false); err != nil {
				return "", err
			}
		}
		if err := c.findSymbols(ctx, v, b); err == nil && c.files[0].symbols != nil {
			c.mode = "symbols"
		}
		if len(c.files[0].lines) > 0 {
			return c.text(), nil
		}
	}

	// A patch of several files does not fit: ask again for counts of lines.
	c.mode = "stat"
	if err := c.ask(ctx, v, b, true); err != nil {
		return "", err
	}
	return c.text(), nil
}

// comparison is one call of get_diff.
type comparison struct {
	*Args
	mode    string
	r       *browse.DiffResponse
	files   []changed
	size    int      // bytes of files as a patch
	commits string   // those between the two, if they are wanted
	unknown []string // files whose symbols could not be found
}

// changed is a changed file, with the lines of its patch.
type changed struct {
	block
	path        string
	plus, minus int
	diff        *browse.DiffFile
	symbols     []string // what came, went and changed in it, where that is wanted and known
}

// enough is the number of bytes of a patch that are read to decide whether it fits. It is much more
// than an answer can have, because long lines are shortened.
const enough = 1 << 20

// ask requests the difference. With stat it has counts of lines instead of patches.
func (c *comparison) ask(ctx context.Context, v catalog.Viewer, b browse.Reader, stat bool) error {
	req := browse.DiffRequest{
		Repo:    c.Text("repo"),
		Base:    c.Text("base"),
		Head:    c.Text("head"),
		Path:    c.Text("path"),
		Stat:    stat,
		Context: c.Number("context"),
		Message: c.r == nil, // asked again for counts, it is known
	}
	if req.Context == 0 || c.mode == "symbols" {
		// 0 would mean the default number.
		req.Context = -1
	}
	if c.mode == "auto" && !c.Has("include") && !c.Has("exclude") && !c.Has("status") {
		req.MaxBytes = enough // with a filter, what is kept may stand behind that
	}

	r, err := b.Diff(ctx, v, req)
	if err != nil {
		return err
	}

	// Filter here instead of in git: a renamed file matches by either name.
	filter := paths.Filter{Include: c.List("include"), Exclude: c.List("exclude")}
	keeps, err := filter.Keeps()
	if err != nil {
		return err
	}

	if c.r != nil {
		r.Commit, r.FirstTag = c.r.Commit, c.r.FirstTag
	}
	c.r, c.files, c.size = r, nil, 0
	for i := range r.Files {
		f := &r.Files[i]
		kept := f.OldPath != "" && keeps(f.OldPath) || f.NewPath != "" && keeps(f.NewPath)
		if !kept || c.Has("status") && statusOf(f) != c.Text("status") {
			continue
		}

		file := diffBlock(f)
		// Without patches, use git's counts.
		if stat {
			file.plus, file.minus = f.Added, f.Removed
		}
		c.files = append(c.files, file)
		c.size += file.size()

		// Stop early, because two releases can differ by megabytes. A difference that does not fit
		// is requested again as counts, except if it has a single file; so read at least two.
		if c.mode == "auto" && len(c.files) > 1 && c.size > c.room() {
			break
		}
	}
	return nil
}

// mostBetween is the largest number of commits that a comparison lists.
const mostBetween = 30

// between lists the commits that are in head but not in base, restricted to the path.
func (c *comparison) between(ctx context.Context, v catalog.Viewer, b browse.Reader) error {
	r, err := b.Commits(ctx, v, browse.CommitsRequest{
		Repo:    c.Text("repo"),
		Ref:     c.r.BaseCommit + ".." + c.r.HeadCommit,
		Path:    c.Text("path"),
		Page:    1,
		PerPage: mostBetween,
	})
	if err != nil {
		return err
	}

	var out strings.Builder
	if r.AtLeast {
		out.WriteString("At least ")
	}
	fmt.Fprintf(&out, "%s that head has and base has not, newest first\n", count(r.Total, "commit"))
	for i := range r.Commits {
		// The commits get at most a third of the room, because the difference matters more.
		line := listedCommit(&r.Commits[i], nil)
		if i > 0 && out.Len()+len(line) > c.room()/3 || i == mostBetween {
			break
		}
		out.WriteString(line + "\n")
		r.Total--
	}

	if r.Total > 0 {
		fmt.Fprintf(&out, "… %d more: %s\n", r.Total, callOf("list_commits", "repo", c.Text("repo"), "path", c.Text("path"), "ref", c.Text("base")+".."+c.Text("head")))
	}
	c.commits = out.String() + "\n"
	return nil
}

// text writes the answer in the chosen mode.
func (c *comparison) text() string {
	if len(c.files) == 0 {
		return c.message() + c.same()
	}

	// Count the files that pass the filters, because those follow.
	plus, minus := 0, 0
	for i := range c.files {
		plus += c.files[i].plus
		minus += c.files[i].minus
	}
	base, head := label(c.Text("base")), label(c.Text("head"))
	files := count(len(c.files), "file")

	var out strings.Builder
	// The first page has the message already.
	if c.Number("page") <= 1 {
		out.WriteString(c.message())
	}

	// Branches move, so name the commits.
	fmt.Fprintf(&out, "%s (%.8s) .. %s (%.8s): %s, +%d -%d", base, c.r.BaseCommit, head, c.r.HeadCommit, files, plus, minus)

	e := c.ending()
	switch c.mode {
	case "summary":
		out.WriteByte('\n')
		c.sum(&out, &e)
	case "names", "stat":
		out.WriteByte('\n')
		c.list(&out, &e)
	case "symbols":
		c.bySymbols(&out, &e)
	case "auto":
		out.WriteByte('\n')
		if c.size > c.bound()-out.Len() {
			c.brief(&out, &e)
		} else {
			c.patch(&out, &e)
		}
	default:
		out.WriteByte('\n')
		c.patch(&out, &e)
	}

	return out.String() + e.String()
}

// ending begins the last line of an answer. It says so if the difference was cut, because the
// counts are then too small.
func (c *comparison) ending() (e end) {
	e.covers(c.Args, c.r.Coverage(), words{coverage.Limit: "the difference is larger than can be read at once, and numbers are too small; narrow it with path"})
	return e
}

// message describes the commit, or lists the commits of the comparison if requested. It is "" for a
// comparison without them.
func (c *comparison) message() string {
	if c.commits != "" || c.r.Commit.Hash == "" {
		return c.commits
	}
	// At least half of the room is for the patch.
	body := bodyText(c.r.Commit.Body, min(maxMessage, c.room()/2))
	commit := c.r.Commit
	if c.r.FirstTag != nil {
		commit.Refs = withoutTag(commit.Refs, c.r.FirstTag.Name)
	}
	return commitLine(&commit) + "\n" + body + firstTagText(c.r.FirstTag, pathsOfDiff(c.Args, c.r))
}

// firstTagText names the first release that contains the commit, on a line of its own.
func firstTagText(t *browse.FirstTag, paths []string) string {
	switch release := firstRelease(t, paths); {
	case t != nil && t.Late && t.Name == "":
		return "Its first tag was not found within 2 seconds.\n"
	case release == "no tag":
		return "No tag has it.\n"
	case release != "":
		return "First in " + release + ".\n"
	}
	return ""
}

// same answers if nothing differs.
func (c *comparison) same() string {
	base, head := label(c.Text("base")), label(c.Text("head"))
	e := c.ending()
	if c.Has("path") || c.Has("include") || c.Has("exclude") || c.Has("status") {
		return fmt.Sprintf("%s and %s do not differ there. All that differs: %s.\n%s",
			base, head, c.with("path", nil, "include", nil, "exclude", nil, "status", nil), e.String())
	}
	return fmt.Sprintf("%s and %s do not differ.\n%s", base, head, e.String())
}

// list writes the names of files, with or without counts. If that is too long, it writes totals of
// directories.
func (c *comparison) list(out *strings.Builder, e *end) {
	// Measure first: half a list would hide the other half.
	write := counted
	if c.mode == "names" {
		write = named
	}
	lines := write(c.files)
	size := 0
	for _, l := range lines {
		size += len(l)
	}

	if size > c.room()-out.Len() {
		c.sum(out, e)
		return
	}

	for _, l := range lines {
		out.WriteString(l)
	}

	// The patch is missing only if the caller did not choose this mode.
	if c.Text("mode") == "auto" {
		e.left = append(e.left, "the patch, which does not fit; continue with "+c.with("mode", "patch")+", or with path")
	}
}

// patch writes one page of the patch.
func (c *comparison) patch(out *strings.Builder, e *end) {
	// Divide the whole patch each time: the same commits and room give the same pages.
	page := c.Number("page")
	room, message := c.room()-out.Len(), len(c.message())
	if page <= 1 {
		room += message // which stands on the first page alone
	}
	pages := c.pages(room, message)
	if page > len(pages) {
		e.left = append(e.left, fmt.Sprintf("everything: there is no page %d, the last is %s", page, c.with("page", len(pages))))
		return
	}
	out.WriteString(pages[page-1])
	if page < len(pages) {
		e.left = append(e.left, fmt.Sprintf("pages %d-%d of the patch; continue with %s", page+1, len(pages), c.with("mode", "patch", "page", page+1)))
	}
}

// pages divides the patch into pages of room bytes. On the first page, taken bytes are used
// already. A file that continues on another page is named there again.
func (c *comparison) pages(room, taken int) (pages []string) {
	var page strings.Builder
	free := room - taken
	next := func() {
		pages = append(pages, page.String())
		page.Reset()
		free = room
	}

	for i := range c.files {
		f := &c.files[i]

		// Begin a file on a page only if some of its lines fit there.
		if page.Len() > 0 && page.Len()+len(f.line())+leastShare > free {
			next()
		}

		page.WriteString(f.line())
		for k, l := range f.lines {
			if page.Len()+len(l) > free && k > 0 {
				next()
				page.WriteString("… " + f.head)
			}
			page.WriteString(l)
		}
	}
	next()
	return pages
}

// size returns the number of bytes of a file in a patch.
func (c *changed) size() int {
	n := len(c.line())
	for _, l := range c.lines {
		n += len(l)
	}
	return n
}

// line returns the line of a file in a list.
func (c *changed) line() string {
	return fmt.Sprintf("%s+%d -%d\n", c.head[:len(c.head)-1]+" ", c.plus, c.minus)
}

// mostGroups is the largest number of directories with totals.
const mostGroups = 120

// fewGroups is the same for a summary.
const fewGroups = 15

// sum writes totals of changed lines by directory, as deep as there is room.
func (c *comparison) sum(out *strings.Builder, e *end) {
	most := mostGroups
	if c.mode == "summary" {
		most = fewGroups
	}
	var best []changed
	// Go deeper while there are few enough directories.
	for depth := 1; depth < 10; depth++ {
		groups := grouped(c.files, depth)
		if best != nil && len(groups) > most {
			break
		}
		best = groups
	}

	slices.SortStableFunc(best, func(x, y changed) int { return cmp.Compare(len(y.lines), len(x.lines)) })

	// The directories with most files come first.
	shown := 0
	for _, g := range best[:min(len(best), mostGroups)] {
		line := fmt.Sprintf("%s: %s, +%d -%d\n", g.path, count(len(g.lines), "file"), g.plus, g.minus)
		if out.Len()+len(line) > c.room() {
			break
		}
		out.WriteString(line)
		shown++
	}

	// A summary was asked for. Else suggest the directory with the most files.
	if c.mode == "summary" && shown == len(best) {
		return
	}
	largest := strings.TrimSuffix(best[0].path, "/")
	e.left = append(e.left, "the names of all files; continue with "+c.with("path", largest)+" or another path")
	if shown < len(best) {
		e.left = append(e.left, count(len(best)-shown, "directory"))
	}
}

// grouped sums up files by the first elements of their paths. lines of a group are its files.
func grouped(files []changed, depth int) []changed {
	var groups []changed
	at := map[string]int{}

	for _, f := range files {
		// Keep the slashes, so that a directory looks like one.
		parts := strings.SplitAfterN(f.path, "/", depth+1)
		name := strings.Join(parts[:min(len(parts), depth)], "")

		// Groups are in the order of their first file.
		i, ok := at[name]
		if !ok {
			i = len(groups)
			at[name] = i
			groups = append(groups, changed{path: name})
		}

		g := &groups[i]
		g.plus += f.plus
		g.minus += f.minus
		g.lines = append(g.lines, f.path)
	}
	return groups
}

// diffBlock makes the block of a changed file: a line that says what happened, then its hunks.
func diffBlock(f *browse.DiffFile) changed {
	from, to := fileLabel(f.OldPath), fileLabel(f.NewPath)
	c := changed{path: cmp.Or(to, from), diff: f}
	c.head = changeOf(from, to)
	// A change of mode has no lines, and would look like no change.
	if f.OldMode != f.NewMode && from != "" && to != "" {
		c.head += fmt.Sprintf(" (mode %s -> %s)", f.OldMode, f.NewMode)
	}
	c.head += "\n"

	// The words are git's.
	if f.Binary {
		c.lines = append(c.lines, "Binary files differ\n")
	}
	for _, h := range f.Hunks {
		c.hunk(&h)
	}
	return c
}

// statusOf returns what happened to a file, as the parameter status names it.
func statusOf(f *browse.DiffFile) string {
	switch {
	case f.OldPath == "":
		return "added"
	case f.NewPath == "":
		return "deleted"
	case f.OldPath != f.NewPath:
		return "renamed"
	}
	return "modified"
}

// changeOf returns the kind of change as git's letter: A added, D deleted, R renamed, M modified.
func changeOf(from, to string) string {
	switch {
	case from == "":
		return "A " + to
	case to == "":
		return "D " + from
	case from != to:
		return "R " + from + " -> " + to
	}
	return "M " + to
}

// hunk adds the lines of a hunk, and counts the added and removed ones.
func (c *changed) hunk(h *browse.DiffHunk) {
	head := fmt.Sprintf("@@ -%d,%d +%d,%d @@", h.OldStart, h.OldLines, h.NewStart, h.NewLines)
	// The function around the hunk, as git guesses it.
	if h.Heading != "" {
		head += " " + cut(label(h.Heading), 0, 0)
	}
	c.lines = append(c.lines, head+"\n")

	// The first character of each line is the sign of the change.
	for line := range strings.Lines(h.Body) {
		text := shownLine([]byte(strings.TrimSuffix(line, "\n")))
		switch {
		case strings.HasPrefix(text, "+"):
			c.plus++
		case strings.HasPrefix(text, "-"):
			c.minus++
		}
		c.lines = append(c.lines, text+"\n")
	}
}
