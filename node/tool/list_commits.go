package tool

import (
	"context"
	"fmt"
	"path"
	"slices"
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
		About: "Lists commits, newest first, as `hash date author: subject`, up to 20 with files and first tag. Selects by path, author, time, message, or what they changed (`lines`, `changes`).",
		Params: []Param{
			anyRepoParam,
			{Name: "path", Kind: String},
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
			pageParam, perPage(mostDetails),
		},
		Run: ofEachRepo(func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
			return runListCommits(ctx, v, s, b, a)
		}),
	}
}

// runListCommits runs a call of list_commits.
func runListCommits(ctx context.Context, v catalog.Viewer, s symbols.Searcher, b browse.Reader, a *Args) (string, error) {
	if a.Text("repo") == "" {
		return commitsEverywhere(ctx, v, s, a)
	}
	if a.Text("groupBy") != "" {
		return groupedCommits(ctx, v, s, b, a)
	}
	if a.Has("changes") || a.Has("changesRegex") || a.Has("lines") {
		// Git examines the changes themselves. This is limited by time, not by pages.
		return traced(ctx, v, s, b, a)
	}

	// The other parameters select by what a commit says itself.
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
	return commitsText(a, r, detailsOf(ctx, v, b, a, r.Commits, nil)), nil
}

// wordsOf splits a query at spaces. Quoted words stay together.
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

// traced lists the commits that changed a text or some lines.
func traced(ctx context.Context, v catalog.Viewer, s symbols.Searcher, b browse.Reader, a *Args) (string, error) {
	// Each of these needs its own walk through the history, which cannot also check words or
	// authors.
	kinds := 0
	for _, name := range []string{"changes", "changesRegex", "lines"} {
		if a.Has(name) {
			kinds++
		}
	}
	if kinds > 1 || a.Has("query") || a.Has("author") {
		return "", call.Fail(call.ErrInvalid, "changes, changesRegex and lines do not go together, nor with query or author. One of them: %s.", a.with("changesRegex", nil, "query", nil, "author", nil))
	}

	// A trace has no pages: perPage is the number of commits to find.
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

	// The index of changes knows the whole history. Git compares each file with that of its path before,
	// and needs seconds for some thousand commits.
	r, named := indexedTrace(ctx, v, s, b, a, false)
	if r == nil {
		var err error
		if r, err = b.Trace(ctx, v, req); err != nil {
			return "", err
		}
		if late := r.AtLeast && len(r.Commits) < a.Number("perPage"); late && a.Has("path") {
			if all, more := indexedTrace(ctx, v, s, b, a, true); all != nil {
				r, named = all, more
			}
		}
	}
	return tracedText(a, r, named, detailsOf(ctx, v, b, a, r.Commits, r.Paths)), nil
}

// tracedLines lists the commits that changed some lines.
func tracedLines(ctx context.Context, v catalog.Viewer, b browse.Reader, a *Args, req browse.TraceRequest) (string, error) {
	// For a range of commits, the line numbers are those at its end.
	ref := req.Ref
	if err := browse.CheckRange(ref); err != nil {
		return "", err
	}
	if _, to, ok := browse.CutRange(ref); ok {
		ref = to
	}

	// The argument has both file and lines, so that path cannot name another file.
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
	return tracedText(a, r, 0, detailsOf(ctx, v, b, a, r.Commits, nil)), nil
}

// linesAt is the parsed lines argument: a file, and its lines or a definition.
type linesAt struct {
	*Args
	ref, path   string
	first, last int
	name        string // of a definition, whose lines they are; "" for lines by their numbers
}

// linesAsked parses the lines argument. The lines of a definition are filled in later, by define.
func linesAsked(a *Args, ref string) (*linesAt, error) {
	at := &linesAt{Args: a, ref: ref}
	var ok bool
	if at.path, at.first, at.last, ok = git.ParseLines(a.Text("lines")); ok {
		return at, nil
	}

	// Cut at the first colon, because names such as Store::Close have colons too.
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

	// The calls that the answer advises ask for the same lines.
	at.set("lines", at.path+":"+rangesText(defined[:1]))
	return nil
}

// tracedText writes the commits that a trace found. named is the number of changes that were not looked
// at.
func tracedText(a *Args, r *browse.TraceResponse, named int, details map[string]detail) string {
	var out strings.Builder
	if r.AtLeast || r.Total > len(r.Commits) {
		out.WriteString("At least ")
	}
	of := ""
	if a.Has("lines") {
		of = " of " + label(a.Text("lines"))
	}
	out.WriteString(count(len(r.Commits), "commit") + of + inOrder(len(r.Commits)))

	var e end
	older := olderTraces(a, r)
	e.covers(a, r.Coverage(), words{coverage.Late: older, coverage.Limit: older, coverage.NameOnly: unreadChanges(r)})
	if unread := unreadLines(named); unread != "" {
		e.unlooked = append(e.unlooked, unread)
	}
	most, bare := bodyRoom(a, len(r.Commits)), 0
	newest := 0
	if a.Has("lines") && !a.Has("body") {
		newest = bodyRoom(a, 1)
	}
	for i := range r.Commits {
		c := &r.Commits[i]
		out.WriteString(listedCommit(c, details))
		out.WriteString(details[c.Hash].beside)
		// Do not repeat the file that the caller named.
		paths := r.Paths[c.Hash]
		if !a.Has("lines") && !(len(paths) == 1 && paths[0] == a.Text("path")) {
			out.WriteString(inPaths(paths, len(r.Commits)))
		}

		below, more := changedText(r.Changed[c.Hash], len(r.Commits))
		out.WriteString(more + "\n")

		// The changed lines say more about such a commit than its message. For traced lines, the
		// newest commit's message explains the present state.
		if below == "" || a.Flag("body") {
			below += briefBody(a, c, most)
		}
		if below == "" && i == 0 {
			below = briefBody(a, c, newest)
		}
		below += details[c.Hash].below

		// The answer has no pages. If room is short, list the commit without its details.
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

// The largest numbers of changed lines and paths shown of a commit, and of one of many.
const (
	mostChanged, changedOfMany = 3, 1
	pathsOfFew, pathsOfMany    = 3, 1
)

// longestChanged is the number of bytes of a changed line that is shown.
const longestChanged = 140

// changedText returns the first added and removed lines of one of some commits, indented, and their total
// number if there are more. Of one of many commits it returns a line that was added, where there is one.
func changedText(c git.ChangedLines, commits int) (lines, more string) {
	most, shown := mostChanged, slices.Clone(c.Lines)
	if commits > fullDetails {
		most = changedOfMany
		slices.SortStableFunc(shown, func(a, b string) int { return strings.Compare(a[:1], b[:1]) }) // + is before -
	}
	for i, line := range shown {
		if most == 0 {
			break
		}
		text := strings.TrimSpace(clean([]byte(line[1:])))
		if slices.ContainsFunc(shown[:i], func(other string) bool { return strings.TrimSpace(other) == strings.TrimSpace(line) }) {
			continue
		}
		most--
		if len(text) > longestChanged {
			text = cutEnd(text, longestChanged)
		}
		lines += "    " + line[:1] + " " + text + "\n"
	}
	if c.Added+c.Removed > mostChanged {
		more = fmt.Sprintf(" (such lines: +%d -%d)", c.Added, c.Removed)
	}
	return lines, more
}

// inPaths names the first files that one of some commits changed.
func inPaths(paths []string, commits int) string {
	if len(paths) == 0 {
		return ""
	}
	most := pathsOfFew
	if commits > fullDetails {
		most = pathsOfMany
	}
	var first []string
	for _, p := range paths[:min(len(paths), most)] {
		first = append(first, fileLabel(p))
	}
	text := " in " + strings.Join(first, ", ")
	if len(paths) > most {
		text += ", …"
	}
	return text
}

// olderTraces says how to see older commits than those found.
func olderTraces(a *Args, r *browse.TraceResponse) string {
	if a.Has("lines") && r.From != "" && len(r.Commits) > 0 {
		oldest := r.Commits[len(r.Commits)-1].Hash[:12]
		lines := fmt.Sprintf("%s:%d-%d", r.From, r.FromFirst, r.FromLast)

		// A range keeps its excluded start; its end moves back.
		ref := oldest + "~1"
		if from, _, ok := browse.CutRange(a.Text("ref")); ok {
			ref = from + ".." + ref
		}
		return "older changes; continue with " + a.with("ref", ref, "lines", lines)
	}
	// First show the commits that were found but have no room on the page.
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

// longestSubject is the number of characters of a subject that a list shows.
const longestSubject = 72

// listedCommit is commitLine with a short subject, and without the tag that its details name.
func listedCommit(c *browse.CommitInfo, details map[string]detail) string {
	short := *c
	if subject := []rune(c.Message); len(subject) > longestSubject+1 {
		short.Message = strings.TrimRight(string(subject[:longestSubject]), " ") + "…"
	}
	if tag := details[c.Hash].tag; tag != "" {
		short.Refs = withoutTag(c.Refs, tag)
	}
	return commitLine(&short)
}

// inOrder is the end of the first line of a list of commits.
func inOrder(n int) string {
	if n == 1 {
		return "\n"
	}
	return ", newest first\n"
}

// commitLine describes a commit on one line. Its date is the commit date, which since, until and
// the order use.
func commitLine(c *browse.CommitInfo) string {
	// A rebase changes the commit date only. With author dates, the list would not be in order.
	when := c.Committed
	if when.IsZero() {
		when = c.Date
	}

	// Names and messages can contain anything; label keeps them on one line.
	author := label(c.AuthorName)
	subject := cut(label(c.Message), 0, 0)
	text := fmt.Sprintf("%.10s %s %s: %s", c.Hash, when.Format("2006-01-02"), author, subject)
	if c.Refs != "" {
		text += " (" + label(c.Refs) + ")"
	}
	return text
}

// commitsText writes commits, one per line.
func commitsText(a *Args, r *browse.CommitsResponse, details map[string]detail) string {
	// Distinguish an empty result from an unfinished search and from a page after the last.
	if len(r.Commits) == 0 && !r.AtLeast && r.Total == 0 && r.Reached.IsZero() {
		return noCommits(a, r)
	}

	var out strings.Builder
	// A walk that ran out of time knows only a lower bound.
	if r.AtLeast {
		out.WriteString("At least ")
	}
	out.WriteString(count(r.Total, "commit") + inOrder(r.Total))

	most, shown := bodyRoom(a, len(r.Commits)), 0
	for ; shown < len(r.Commits); shown++ {
		d := details[r.Commits[shown].Hash]
		line := listedCommit(&r.Commits[shown], details) + d.beside
		body := briefBody(a, &r.Commits[shown], most) + d.below
		// Write at least one commit: a page without any would be requested again and again.
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

// olderCommits says how to see the commits that a walk did not reach.
func olderCommits(a *Args, r *browse.CommitsResponse) string {
	switch {
	// Continue by date instead of by page, where this walk stopped.
	case !r.Reached.IsZero():
		reached := r.Reached.UTC().Format(time.RFC3339)
		return fmt.Sprintf("commits from %s back: that takes long; continue with %s, or narrow with path, author or since", reached, a.with("until", reached, "page", nil))
	// The page is full, but the walk was limited: the next page walks further.
	case len(r.Commits) == a.Number("perPage"):
		return "what is older; continue with " + a.with("page", a.Number("page")+1)
	}
	return "what is older: looking through the history took too long; narrow with since, until or path"
}

// newerLeft says that until excludes newer commits; "" for calls without until.
func newerLeft(a *Args) string {
	until := a.Text("until")
	if until == "" {
		return ""
	}
	return fmt.Sprintf("Commits after %s are left out by until.", label(until))
}

// noCommits suggests dropping the filter that most likely excluded everything.
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
		// The two revisions are often swapped.
		hint = " A..B is what B has and A has not; the other way round: " + a.with("ref", to+".."+from) + "."
	}
	return "No commit matches." + hint + "\n" + e.String()
}
