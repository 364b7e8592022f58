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
		About: "Shows what differs between two revisions (two-dot). `symbols` names functions and types that came, went or changed. `auto` gives the patch if it fits, else symbols of one file or counts of lines. `patch` comes in pages. `head` alone shows one commit, its message and first tag.",
		Params: []Param{
			repoParam,
			{Name: "base", Kind: String, About: "branch, tag or commit; else the one before head"},
			{Name: "head", Kind: String, Required: true, About: "the same"},
			{Name: "path", Kind: String, About: "only this file or directory"},
			{Name: "mode", Kind: String, Words: []string{"auto", "names", "stat", "symbols", "patch"}, Default: "auto"},
			includeParam, excludeParam,
			{Name: "context", Kind: Integer, Min: 0, Max: 20, Default: 3, About: "lines around a change"},
			{Name: "commits", Kind: Boolean, Default: false, About: "also list those that made it"},
			{Name: "page", Kind: Integer, Min: 1, Default: 1, About: "page of the patch"},
		},
		Run: func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
			return runGetDiff(ctx, v, b, a)
		},
	}
}

// runGetDiff answers a call of get_diff.
func runGetDiff(ctx context.Context, v catalog.Viewer, b browse.Reader, a *Args) (string, error) {
	if !a.Has("base") {
		a.values["base"] = a.Text("head") + "~1"
	}
	c := &comparison{Args: a, mode: a.Text("mode")}
	// Who asks for a further page has seen the first one, which only a patch has.
	if c.mode == "auto" && a.Number("page") > 1 {
		c.mode = "patch"
	}
	stat := c.mode == "names" || c.mode == "stat"
	if err := c.ask(ctx, v, b, stat); err != nil {
		return "", err
	}

	// On each page, though the first alone shows them: they take of its room.
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

	tooLarge := c.mode == "auto" && (c.r.Cut || len(c.message())+c.size > a.room())
	if !tooLarge {
		return c.text(), nil
	}

	// Of a single file counts tell next to nothing: it is summed up by what is defined in it,
	// or else its patch begins here. Both have to know it to its end.
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

	// A patch of several files that does not fit is asked for again as counts.
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

// changed is one file of a difference, ready to be written.
type changed struct {
	block
	path        string
	plus, minus int
	diff        *browse.DiffFile
	symbols     []string // what came, went and changed in it, where that is wanted and known
}

// enough is how many bytes of a patch are looked at to find out whether it fits. It is
// far more than any room: long lines are shown in part.
const enough = 1 << 20

// ask compares; stat counts lines and leaves out the patches.
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
		// 0 would mean the usual number.
		req.Context = -1
	}
	if c.mode == "auto" && !c.Has("include") && !c.Has("exclude") {
		req.MaxBytes = enough // with a filter, what is kept may stand behind that
	}

	r, err := b.Diff(ctx, v, req)
	if err != nil {
		return err
	}

	// Filtered here and not by git: a renamed file counts under either of its names.
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
		if !kept {
			continue
		}

		file := diffBlock(f)
		// Without patches the lines cannot be counted here; git has.
		if stat {
			file.plus, file.minus = f.Added, f.Removed
		}
		c.files = append(c.files, file)
		c.size += file.size()

		// Two releases differ by megabytes. What does not fit is asked for again as counts,
		// but of a single file, so that a second one has to be seen.
		if c.mode == "auto" && len(c.files) > 1 && c.size > c.room() {
			break
		}
	}
	return nil
}

// mostBetween is how many commits a comparison lists.
const mostBetween = 30

// between lists the commits that head has and base has not, of the path that is
// compared.
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
		// The difference is what was asked for first: at most a third of the room is for these.
		line := commitLine(&r.Commits[i])
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

func (c *comparison) text() string {
	if len(c.files) == 0 {
		return c.message() + c.same()
	}

	// Of the files that are kept: the numbers belong to what follows.
	plus, minus := 0, 0
	for i := range c.files {
		plus += c.files[i].plus
		minus += c.files[i].minus
	}
	base, head := label(c.Text("base")), label(c.Text("head"))
	files := count(len(c.files), "file")

	var out strings.Builder
	// Who goes on with a further page has read it on the first.
	if c.Number("page") <= 1 {
		out.WriteString(c.message())
	}

	// Names move, so the commits they stood for are told.
	fmt.Fprintf(&out, "%s (%.8s) .. %s (%.8s): %s, +%d -%d", base, c.r.BaseCommit, head, c.r.HeadCommit, files, plus, minus)

	e := c.ending()
	switch c.mode {
	case "names", "stat":
		out.WriteByte('\n')
		c.list(&out, &e)
	case "symbols":
		c.bySymbols(&out, &e)
	default:
		out.WriteByte('\n')
		c.patch(&out, &e)
	}

	return out.String() + e.String()
}

// ending is the end of an answer. Of a difference that was cut the numbers are wrong, and
// that has to be said with them.
func (c *comparison) ending() (e end) {
	e.covers(c.Args, c.r.Coverage(), words{coverage.Limit: "the difference is larger than can be read at once, and numbers are too small; narrow it with path"})
	return e
}

// message tells of the commit whose change this is, or of those that made it, if they
// are wanted; "" where it is not that of one.
func (c *comparison) message() string {
	if c.commits != "" || c.r.Commit.Hash == "" {
		return c.commits
	}
	// The patch is what was asked for: at least half of the room is for it.
	body := bodyText(c.r.Commit.Body, min(maxMessage, c.room()/2))
	return commitLine(&c.r.Commit) + "\n" + body + firstTagText(c.r.FirstTag, c.r.Commit.Refs)
}

// firstTagText tells which tag had a commit first, on a line; "" where that stands
// beside it among what points at it.
func firstTagText(t *browse.FirstTag, refs string) string {
	switch {
	case t == nil:
		return ""
	case t.Late && t.Name == "":
		return "Its first tag was not found within 2 seconds.\n"
	case t.Name == "":
		return "No tag has it.\n"
	case t.Release != "" && t.Whole != "":
		return fmt.Sprintf("First in %s, as a release in %s, and of those without such a name in %s.\n", label(t.Name), label(t.Release), label(t.Whole))
	case t.Release != "":
		return fmt.Sprintf("First in %s, as a release in %s.\n", label(t.Name), label(t.Release))
	// A part of a repository may have tags of its own, and few ask for those.
	case t.Whole != "":
		return fmt.Sprintf("First in %s, and of the releases without such a name in %s.\n", label(t.Name), label(t.Whole))
	case slices.Contains(strings.Split(refs, ", "), "tag: "+t.Name):
		return ""
	}
	return fmt.Sprintf("First in %s.\n", label(t.Name))
}

// same is the answer where nothing differs.
func (c *comparison) same() string {
	base, head := label(c.Text("base")), label(c.Text("head"))
	e := c.ending()
	if c.Has("path") || c.Has("include") || c.Has("exclude") {
		return fmt.Sprintf("%s and %s do not differ there. All that differs: %s.\n%s",
			base, head, c.with("path", nil, "include", nil, "exclude", nil), e.String())
	}
	return fmt.Sprintf("%s and %s do not differ.\n%s", base, head, e.String())
}

// list writes the files with their counts, or without; those that are too many
// for that are summed up by directories.
func (c *comparison) list(out *strings.Builder, e *end) {
	// Written first and measured: half a list of files would hide the other half.
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

	// Only where the caller has not chosen this form is the patch missing.
	if c.Text("mode") == "auto" {
		e.left = append(e.left, "the patch, which does not fit; continue with "+c.with("mode", "patch")+", or with path")
	}
}

// patch writes a page of the patch.
func (c *comparison) patch(out *strings.Builder, e *end) {
	// The whole is cut each time: the same commits and room give the same pages.
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

// pages cuts the patch where a page is full, of which the first has room for less by
// what is taken there. A file that goes on on the next page is named there again.
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

		// A file begins on a page only where there is room for some of its lines.
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

// size is how many bytes the file has in a patch.
func (c *changed) size() int {
	n := len(c.line())
	for _, l := range c.lines {
		n += len(l)
	}
	return n
}

// line is a file in a list.
func (c *changed) line() string {
	return fmt.Sprintf("%s+%d -%d\n", c.head[:len(c.head)-1]+" ", c.plus, c.minus)
}

// mostGroups is how many directories sum up what is too much to list.
const mostGroups = 120

// sum writes how much changed in each directory, as deep as there is room.
func (c *comparison) sum(out *strings.Builder, e *end) {
	var best []changed
	// As deep as the directories are few enough for an overview.
	for depth := 1; depth < 10; depth++ {
		groups := grouped(c.files, depth)
		if best != nil && len(groups) > mostGroups {
			break
		}
		best = groups
	}

	slices.SortStableFunc(best, func(x, y changed) int { return cmp.Compare(len(y.lines), len(x.lines)) })

	// Those with most files first: what finds no room says least.
	shown := 0
	for _, g := range best[:min(len(best), mostGroups)] {
		line := fmt.Sprintf("%s: %s, +%d -%d\n", g.path, count(len(g.lines), "file"), g.plus, g.minus)
		if out.Len()+len(line) > c.room() {
			break
		}
		out.WriteString(line)
		shown++
	}

	// The directory with most files, as the one that most needs to be looked into.
	largest := strings.TrimSuffix(best[0].path, "/")
	e.left = append(e.left, "the names of all files; continue with "+c.with("path", largest)+" or another path")
	if shown < len(best) {
		e.left = append(e.left, count(len(best)-shown, "directory"))
	}
}

// grouped sums up files by the first elements of their paths. The lines of a
// group are its files.
func grouped(files []changed, depth int) []changed {
	var groups []changed
	at := map[string]int{}

	for _, f := range files {
		// The slashes stay with their parts, so that a directory reads as one.
		parts := strings.SplitAfterN(f.path, "/", depth+1)
		name := strings.Join(parts[:min(len(parts), depth)], "")

		// In the order of their first file, which is the order of paths.
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

// diffBlock is one file of a diff: a line with what happened to it, then its
// hunks.
func diffBlock(f *browse.DiffFile) changed {
	from, to := fileLabel(f.OldPath), fileLabel(f.NewPath)
	c := changed{path: cmp.Or(to, from), diff: f}
	c.head = changeOf(from, to)
	// A change of mode alone has no lines and would look like no change.
	if f.OldMode != f.NewMode && from != "" && to != "" {
		c.head += fmt.Sprintf(" (mode %s -> %s)", f.OldMode, f.NewMode)
	}
	c.head += "\n"

	// As git says it.
	if f.Binary {
		c.lines = append(c.lines, "Binary files differ\n")
	}
	for _, h := range f.Hunks {
		c.hunk(&h)
	}
	return c
}

// changeOf tells with a letter, as git does, what happened to a file: added,
// deleted, renamed or modified.
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

// hunk adds the lines of a hunk, and counts them.
func (c *changed) hunk(h *browse.DiffHunk) {
	head := fmt.Sprintf("@@ -%d,%d +%d,%d @@", h.OldStart, h.OldLines, h.NewStart, h.NewLines)
	// The function around it, as far as git can tell.
	if h.Heading != "" {
		head += " " + cut(label(h.Heading), 0, 0)
	}
	c.lines = append(c.lines, head+"\n")

	// Each line begins with its sign: a plus of the file itself stands behind that, and does not
	// count.
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
