package tool

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard/git"
)

func listCommits(s symbols.Searcher, b browse.Reader) Tool {
	return Tool{
		Name: "list_commits", Title: "List commits",
		About: "Lists commits, newest first, as `hash date author: subject`, a few with files, first tag and start of the body. Selects by path, author, time, message, or what they changed (`lines`). `changes` and `changesRegex` show the changed lines (+, -) instead.",
		Params: []Param{
			{Name: "repo", Kind: String, Several: true, Required: true, About: anyRepoParam.About[:strings.LastIndex(anyRepoParam.About, ";")]},
			{Name: "path", Kind: String, About: "file or directory that changed"},
			{Name: "query", Kind: String, About: "words of the message in any order; \"a phrase\" in quotes"},
			{Name: "changes", Kind: String, About: "text of code that came or went"},
			{Name: "changesRegex", Kind: String, About: "expression that an added or removed line matches"},
			{Name: "lines", Kind: String, About: "lines or a definition of a file at ref, as src/a.c:520-560 or src/a.c:main"},
			{Name: "author", Kind: String, About: "part of name or e-mail"},
			{Name: "since", Kind: String, About: "2024-05-01 or `30 days ago`"},
			{Name: "until", Kind: String},
			{Name: "groupBy", Kind: String, Words: []string{"file", "test", "author"}, About: "counts: files that change with path, its tests, or its authors below its owners"},
			{Name: "noMerges", Kind: Boolean, Default: false},
			{Name: "body", Kind: Boolean, Default: false},
			{Name: "verbatim", Kind: Boolean, Default: false, About: "authors without .mailmap"},
			{Name: "ref", Kind: String, About: refParam.About + ", or A..B: what B has and A has not"},
			pageParam, perPage(50),
		},
		Run: ofEachRepo(func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
			return runListCommits(ctx, v, s, b, a)
		}),
	}
}

// runListCommits answers a call of list_commits.
func runListCommits(ctx context.Context, v catalog.Viewer, s symbols.Searcher, b browse.Reader, a *Args) (string, error) {
	if a.Text("groupBy") != "" {
		return groupedCommits(ctx, v, s, b, a)
	}
	if a.Has("changes") || a.Has("changesRegex") || a.Has("lines") {
		// These have git look into the changes themselves, which is bound by time and not by
		// pages.
		return traced(ctx, v, b, a)
	}

	// The others are told by what a commit says of itself.
	r, err := b.Commits(ctx, v, browse.CommitsRequest{
		Repo:     a.Text("repo"),
		Ref:      a.Text("ref"),
		Path:     a.Text("path"),
		Words:    wordsOf(a.Text("query")),
		Author:   a.Text("author"),
		Since:    a.Text("since"),
		Until:    a.Text("until"),
		Page:     a.Number("page"),
		PerPage:  a.Number("perPage"),
		NoMerges: a.Flag("noMerges"),
		Verbatim: a.Flag("verbatim"),
	})
	if err != nil {
		return "", err
	}
	return commitsText(a, r, changesOf(ctx, v, b, a, r.Commits)), nil
}

// wordsOf splits a query at spaces; what stands in quotes stays together.
func wordsOf(query string) (words []string) {
	for i, part := range strings.Split(query, `"`) {
		quoted := i%2 == 1
		switch {
		case !quoted:
			words = append(words, strings.Fields(part)...)
		case strings.TrimSpace(part) != "":
			words = append(words, part)
		}
	}
	return words
}

// traced lists the commits that changed a text, or some lines.
func traced(ctx context.Context, v catalog.Viewer, b browse.Reader, a *Args) (string, error) {
	// Each is a walk of its own through the history, which takes neither another one nor words.
	kinds := 0
	for _, name := range []string{"changes", "changesRegex", "lines"} {
		if a.Has(name) {
			kinds++
		}
	}
	if kinds > 1 || a.Has("query") || a.Has("author") {
		return "", call.Fail(call.ErrInvalid, "changes, changesRegex and lines do not go together, nor with query or author. One of them: %s.", a.with("changesRegex", nil, "query", nil, "author", nil))
	}

	// It has no pages: a page's size is how many commits are looked for.
	req := browse.TraceRequest{
		Repo:     a.Text("repo"),
		Ref:      a.Text("ref"),
		Path:     a.Text("path"),
		Text:     a.Text("changes"),
		Expr:     a.Text("changesRegex"),
		Since:    a.Text("since"),
		Until:    a.Text("until"),
		NoMerges: a.Flag("noMerges"),
		Verbatim: a.Flag("verbatim"),
		Limit:    a.Number("perPage"),
	}

	if a.Has("lines") {
		return tracedLines(ctx, v, b, a, req)
	}

	r, err := b.Trace(ctx, v, req)
	if err != nil {
		return "", err
	}
	return tracedText(a, r, changesOf(ctx, v, b, a, r.Commits)), nil
}

// tracedLines lists the commits that changed some lines.
func tracedLines(ctx context.Context, v catalog.Viewer, b browse.Reader, a *Args, req browse.TraceRequest) (string, error) {
	// Of a range, the lines are those of its end.
	ref := req.Ref
	if err := browse.CheckRange(ref); err != nil {
		return "", err
	}
	if _, to, ok := browse.CutRange(ref); ok {
		ref = to
	}

	// The file and its lines come as one text, so that path cannot say another file.
	at, err := linesAsked(a, ref)
	if err != nil {
		return "", err
	}
	if at.name != "" {
		if err := at.define(ctx, v, b); err != nil {
			return "", at.tell(ctx, v, b, err)
		}
	}

	req.Path, req.First, req.Last = at.path, at.first, at.last
	r, err := b.Trace(ctx, v, req)
	if err != nil {
		return "", at.tell(ctx, v, b, err)
	}
	return tracedText(a, r, changesOf(ctx, v, b, a, r.Commits)), nil
}

// linesAt is the file and the lines that lines names.
type linesAt struct {
	*Args
	ref, path   string
	first, last int
	name        string // of a definition, whose lines they are; "" for lines by their numbers
}

// linesAsked is what lines names, of a definition without its lines.
func linesAsked(a *Args, ref string) (*linesAt, error) {
	at := &linesAt{Args: a, ref: ref}
	var ok bool
	if at.path, at.first, at.last, ok = git.ParseLines(a.Text("lines")); ok {
		return at, nil
	}

	// The first colon: names have some of their own, as Store::Close.
	at.path, at.name, ok = strings.Cut(a.Text("lines"), ":")
	if !ok || at.path == "" || at.name == "" || at.name[0] >= '0' && at.name[0] <= '9' {
		return nil, call.Fail(call.ErrInvalid, "lines has to be a file and lines or a definition of it, as src/a.c:520-560 or src/a.c:main")
	}
	return at, nil
}

// define fills in the lines of the definition.
func (at *linesAt) define(ctx context.Context, v catalog.Viewer, b browse.Reader) error {
	where := newArgs(at.tool)
	where.set("repo", at.Text("repo"))
	where.set("ref", at.ref)
	where.set("path", at.path)
	where.set("symbol", at.name)

	defined, err := (&reading{Args: where, ctx: ctx, viewer: v, browse: b}).defined()
	if err != nil {
		return err
	}
	at.first, at.last = defined[0].first, defined[0].last

	// What the answer advises asks for the same lines, wherever it goes on.
	at.set("lines", at.path+":"+rangesText(defined[:1]))
	return nil
}

func tracedText(a *Args, r *browse.TraceResponse, changes map[string]string) string {
	var out strings.Builder
	if r.AtLeast || r.Total > len(r.Commits) {
		out.WriteString("At least ")
	}
	of := ""
	if a.Has("lines") {
		of = " of " + label(a.Text("lines"))
	}
	fmt.Fprintf(&out, "%s%s, newest first\n", count(len(r.Commits), "commit"), of)

	var e end
	older := olderTraces(a, r)
	e.covers(a, r.Coverage(), words{coverage.Late: older, coverage.Limit: older, coverage.NameOnly: unreadChanges(r)})
	most, bare := bodyRoom(a, len(r.Commits)), 0
	newest := 0
	if a.Has("lines") && !a.Has("body") {
		newest = bodyRoom(a, 1)
	}
	for i := range r.Commits {
		c := &r.Commits[i]
		out.WriteString(commitLine(c))
		// The file that was asked for need not be named with each commit.
		paths := r.Paths[c.Hash]
		if !a.Has("lines") && !(len(paths) == 1 && paths[0] == a.Text("path")) {
			out.WriteString(inPaths(paths))
		}

		below, more := changedText(r.Changed[c.Hash])
		out.WriteString(more + "\n")

		// What came and went says more of such a commit than its message. Why some lines are
		// as they are, the last change of them tells.
		if below == "" || a.Flag("body") {
			below += briefBody(a, c.Body, most)
		}
		if below == "" && i == 0 {
			below = briefBody(a, c.Body, newest)
		}
		below += changes[c.Hash]

		// Such an answer has no pages: a commit without what stands below it is more than none.
		if out.Len()+len(below) > a.room() && below != "" {
			bare++
			continue
		}
		out.WriteString(below)
	}

	if bare > 0 {
		e.left = append(e.left, fmt.Sprintf("lines or bodies below %s, for lack of room; get_diff of one commit shows them", count(bare, "commit")))
	}
	e.hint = newerLeft(a)
	return out.String() + e.String()
}

// unreadChanges names the files whose changes were not searched.
func unreadChanges(r *browse.TraceResponse) string {
	names := make([]string, len(r.Large))
	for i, path := range r.Large {
		names[i] = fileLabel(path)
	}
	return fmt.Sprintf("the changes of %s over 16 MB in a merge or with a byte order mark, as %s", count(r.Unread, "file"), strings.Join(names, ", "))
}

// mostChanged is how many lines are shown of what a commit changed.
const mostChanged = 3

// changedText writes the first lines that came and went, set in like the body of a
// message, and how many there are in all, where that is more; "" for none.
func changedText(c git.ChangedLines) (lines, more string) {
	for _, line := range c.Lines[:min(len(c.Lines), mostChanged)] {
		lines += "    " + line[:1] + " " + cut(strings.TrimSpace(clean([]byte(line[1:]))), 0, 0) + "\n"
	}
	if c.Added+c.Removed > mostChanged {
		more = fmt.Sprintf(" (such lines: +%d -%d)", c.Added, c.Removed)
	}
	return lines, more
}

// inPaths names the first files that a commit changed.
func inPaths(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	var first []string
	for _, p := range paths[:min(len(paths), 3)] {
		first = append(first, fileLabel(p))
	}
	text := " in " + strings.Join(first, ", ")
	if len(paths) > 3 {
		text += ", …"
	}
	return text
}

// The bounds of what is told of a few commits.
const (
	changesTold   = 5 // commits
	filesOfCommit = 5
	changesTime   = 2 * time.Second
)

// changesOf tells of each of a few commits which files it changed and which tag had it
// first, by its hash: who finds one asks for these next. It is an addition, so what is not
// known in time is left out.
func changesOf(ctx context.Context, v catalog.Viewer, b browse.Reader, a *Args, commits []browse.CommitInfo) map[string]string {
	if len(commits) > changesTold || a.Has("body") {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, changesTime)
	defer cancel()

	changes := map[string]string{}
	for i := range commits {
		c := &commits[i]
		r, err := b.Diff(ctx, v, browse.DiffRequest{Repo: a.Text("repo"), Base: c.Hash + "~1", Head: c.Hash, Stat: true, Message: true})
		if err != nil || len(r.Files) == 0 {
			continue // the first commit of all has nothing before it
		}

		var files []string
		for k := range r.Files[:min(len(r.Files), filesOfCommit)] {
			f := &r.Files[k]
			files = append(files, fmt.Sprintf("+%d -%d %s", f.Added, f.Removed, fileLabel(cmp.Or(f.NewPath, f.OldPath))))
		}
		if more := len(r.Files) - len(files); more > 0 {
			files = append(files, count(more, "more file"))
		}
		changes[c.Hash] = "    " + strings.Join(files, ", ") + "\n"
		if tag := firstTagText(r.FirstTag, c.Refs); tag != "" && r.FirstTag.Name != "" {
			changes[c.Hash] += "    " + tag
		}
	}
	return changes
}

// olderTraces tells how to see the commits behind those that were found.
func olderTraces(a *Args, r *browse.TraceResponse) string {
	if a.Has("lines") && r.From != "" && len(r.Commits) > 0 {
		oldest := r.Commits[len(r.Commits)-1].Hash[:12]
		lines := fmt.Sprintf("%s:%d-%d", r.From, r.FromFirst, r.FromLast)

		// What was left out of a range stays so: the walk goes on from the new end of it.
		ref := oldest + "~1"
		if from, _, ok := browse.CutRange(a.Text("ref")); ok {
			ref = from + ".." + ref
		}
		return "older changes; continue with " + a.with("ref", ref, "lines", lines)
	}
	// Before the time: what was found and has no room in the page comes next.
	if left := r.Total - len(r.Commits); left > 0 {
		per := a.Number("perPage")
		if per == maxPerPage {
			return fmt.Sprintf("%d more that were found; narrow with path, since or until", left)
		}
		return fmt.Sprintf("%d more that were found; continue with %s", left, a.with("perPage", min(4*per, maxPerPage)))
	}
	if r.Reached.IsZero() {
		return "what is older: looking at it took too long; narrow with path or since"
	}
	reached := r.Reached.UTC().Format(time.RFC3339)
	why := "or not all of them: that takes long"
	if len(r.Commits) >= a.Number("perPage") {
		why = "behind the page"
	}
	return fmt.Sprintf("commits from %s back, %s; continue with %s, or narrow with path or since", reached, why, a.with("until", reached))
}

// commitLine is a commit without its line end. The date is when it was
// committed: what since and until, and the order, go by.
func commitLine(c *browse.CommitInfo) string {
	// A rebase changes the one date and not the other: by that of the author the list would not be
	// in order.
	when := c.Committed
	if when.IsZero() {
		when = c.Date
	}

	// Names and messages are whatever somebody has typed: no line of theirs may break the list.
	author := label(c.AuthorName)
	subject := cut(label(c.Message), 0, 0)
	text := fmt.Sprintf("%.12s %s %s: %s", c.Hash, when.Format("2006-01-02"), author, subject)
	if c.Refs != "" {
		text += " (" + label(c.Refs) + ")"
	}
	return text
}

// commitsText writes commits, one on a line.
func commitsText(a *Args, r *browse.CommitsResponse, changes map[string]string) string {
	// Nothing found is told apart from nothing found yet, and from a page behind the last.
	if len(r.Commits) == 0 && !r.AtLeast && r.Total == 0 && r.Reached.IsZero() {
		return noCommits(a, r)
	}

	var out strings.Builder
	// The number of a walk that was given up is not the whole.
	if r.AtLeast {
		out.WriteString("At least ")
	}
	fmt.Fprintf(&out, "%s, newest first\n", count(r.Total, "commit"))

	most, shown := bodyRoom(a, len(r.Commits)), 0
	for ; shown < len(r.Commits); shown++ {
		line := commitLine(&r.Commits[shown])
		body := briefBody(a, r.Commits[shown].Body, most) + changes[r.Commits[shown].Hash]
		// One at least: a page without any would be asked for again and again.
		if out.Len()+len(line)+len(body) > a.room() && shown > 0 {
			break
		}
		out.WriteString(line + "\n" + body)
	}

	var e end
	switch {
	case shown < len(r.Commits):
		e.noRoom(a, "commit", shown, len(r.Commits))
	case !r.AtLeast:
		e.pages(a, shown, r.Total)
	}
	e.covers(a, r.Coverage(), words{coverage.Late: olderCommits(a, r)})
	e.hint = newerLeft(a)
	return out.String() + e.String()
}

// olderCommits tells how to see the commits that a walk did not reach.
func olderCommits(a *Args, r *browse.CommitsResponse) string {
	switch {
	// Goes on by date, not by page: the next walk begins where this one was given up.
	case !r.Reached.IsZero():
		reached := r.Reached.UTC().Format(time.RFC3339)
		return fmt.Sprintf("commits from %s back: that takes long; continue with %s, or narrow with path, author or since", reached, a.with("until", reached, "page", nil))
	// A full page of a walk that was bounded: the next page walks further.
	case len(r.Commits) == a.Number("perPage"):
		return "what is older; continue with " + a.with("page", a.Number("page")+1)
	}
	return "what is older: looking through the history took too long; narrow with since, until or path"
}

// newerLeft tells what a call that goes on from a time leaves out; "" for others.
func newerLeft(a *Args) string {
	until := a.Text("until")
	if until == "" {
		return ""
	}
	return fmt.Sprintf("Commits after %s are left out by until.", label(until))
}

// noCommits says which filter most likely was too narrow.
func noCommits(a *Args, r *browse.CommitsResponse) string {
	var e end
	e.covers(a, r.Coverage(), nil)
	e.hint = newerLeft(a)
	hint := ""
	from, to, ranged := browse.CutRange(a.Text("ref"))
	switch {
	case a.Text("since") != "" || a.Text("until") != "":
		hint = " At any time: " + a.with("since", nil, "until", nil) + "."
	case a.Text("path") != "":
		hint = " If the path may be wrong: " + callOf("glob", "pattern", path.Base(a.Text("path")), "repo", a.Text("repo")) + "."
	case a.Text("query") != "":
		hint = " Each word has to be in the message: try fewer words, or changes for text of the code."
	case ranged:
		// Most often the two stand the wrong way round.
		hint = " A..B is what B has and A has not; the other way round: " + a.with("ref", to+".."+from) + "."
	}
	return "No commit matches." + hint + "\n" + e.String()
}
