package tool

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard/change"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
)

// The limits of a question to the index of changes.
const (
	changesPage  = 200  // commits of one search
	mostChanges  = 4000 // commits whose lines are looked at
	linesOfFound = 4    // of a commit, as git's own trace has them
)

// changeQuery is what list_commits asks the index of changes.
type changeQuery struct {
	*Args
	text, expr string // of code that came or went; one of them, or none
	line       *regexp.Regexp
	moved      bool // a line that only moved counts, too
}

// newChangeQuery returns the question of a call; nil if the index of changes cannot answer it. The index has
// no ranges of commits and no text over several lines.
func newChangeQuery(a *Args) *changeQuery {
	q := &changeQuery{Args: a, text: a.Text("changes"), expr: a.Text("changesRegex")}
	if a.Has("ref") || a.Has("lines") || strings.ContainsAny(q.text+q.expr, "\n\x00") {
		return nil
	}
	for _, name := range []string{"since", "until"} {
		if a.Has(name) && !plainDate.MatchString(a.Text(name)) {
			return nil
		}
	}

	expr := regexp.QuoteMeta(q.text)
	if q.expr != "" {
		expr, q.moved = q.expr, true
	}
	var err error
	if q.line, err = regexp.Compile(expr); err != nil {
		return nil // git says what is wrong
	}
	return q
}

var plainDate = regexp.MustCompile(`^\d{4}-\d\d-\d\d(?:T[\d:]+Z)?$`)

// String returns the question in the language of queries. All its texts are expressions.
func (q *changeQuery) String() string {
	var b strings.Builder
	b.WriteString("type:commit rev:HEAD archived:yes fork:yes")
	put := func(filter, expr string) { b.WriteString(" " + filter + ":" + query.QuoteRegexp(expr)) }
	if repo := q.Text("repo"); repo != "" {
		// What is not indexed is read from git. Git answers itself if that takes long.
		b.WriteString(" timeout:2s reposet:" + query.Quote(repo))
	}
	if path := strings.Trim(q.Text("path"), "/"); path != "" {
		put("file", "^"+regexp.QuoteMeta(path)+"(?:/|$)")
	}
	if q.text != "" || q.expr != "" {
		expr := q.line.String()
		b.WriteString(" (added:" + query.QuoteRegexp(expr) + " or removed:" + query.QuoteRegexp(expr) + ")")
	}
	for _, word := range wordsOf(q.Text("query")) {
		put("message", "(?i)"+messageWord(word))
	}
	if author := q.Text("author"); author != "" {
		put("author", "(?i)"+regexp.QuoteMeta(author))
	}
	for _, name := range []string{"since", "until"} {
		if date := q.Text(name); date != "" {
			b.WriteString(" " + name + ":" + date)
		}
	}
	if q.Flag("noMerges") {
		b.WriteString(" merge:no")
	}
	return b.String()
}

// messageWord returns an expression for a word of a message, which has to begin there.
func messageWord(word string) string {
	if isNameByte(word[0]) {
		return `\b` + regexp.QuoteMeta(word)
	}
	return regexp.QuoteMeta(word)
}

// changesFound is what the index of changes has for a question.
type changesFound struct {
	commits []search.FoundCommit
	total   int       // of the commits, at least
	more    bool      // the total may be higher
	next    time.Time // of the first commit behind the last; zero for none
	*search.CommitsResponse
}

// ask finds up to limit commits, the newest first.
func (q *changeQuery) ask(ctx context.Context, v catalog.Viewer, s symbols.Searcher, limit int) (*changesFound, error) {
	out := &changesFound{}
	req := search.Request{Query: q.String(), Regexp: true, CaseSensitive: true, Matches: min(limit, changesPage), Releases: q.Text("repo") == "", Moves: q.Has("path")}
	for looked := 0; ; {
		r, err := s.SearchCommits(ctx, v, req)
		if err != nil {
			return nil, err
		}
		out.CommitsResponse = r
		for i := range r.Commits {
			if !q.changed(&r.Commits[i].CommitMatch) {
				continue
			}
			if len(out.commits) == limit {
				out.next = r.Commits[i].CommitTime
				break
			}
			out.commits = append(out.commits, r.Commits[i])
		}
		out.total = len(out.commits)
		looked += len(r.Commits)
		switch {
		case q.text == "": // nothing was dropped, so the index has counted
			out.total, out.more = r.Total, !r.Exact
			return out, nil
		case !out.next.IsZero(), r.Next == "":
			return out, nil
		case looked >= mostChanges:
			out.next = r.Commits[len(r.Commits)-1].CommitTime
			return out, nil
		}
		req.After, req.Matches = r.Next, changesPage
	}
}

// changed reports whether a commit has the change. A text has to occur more or less often in a file
// than before, so a line that only moved is no change.
func (q *changeQuery) changed(c *change.CommitMatch) bool {
	if q.text == "" || len(c.Files) == change.MostFiles && c.MoreFiles > 0 {
		return true
	}
	for i := range c.Files {
		f, n := &c.Files[i], 0
		for _, h := range f.Hunks {
			for line := range strings.Lines(h.Body) {
				switch occurs := strings.Count(line[1:], q.text); line[0] {
				case '+':
					n += occurs
				case '-':
					n -= occurs
				}
			}
		}
		if n != 0 || f.MoreHunks > 0 {
			return true
		}
	}
	return false
}

// lines returns the changed lines of a commit that match, and the files that have one.
func (q *changeQuery) lines(c *change.CommitMatch) (lines git.ChangedLines, paths []string) {
	for i := range c.Files {
		f, has := &c.Files[i], false
		for _, h := range f.Hunks {
			for line := range strings.Lines(h.Body) {
				line = strings.TrimSuffix(line, "\n")
				if !q.line.MatchString(line[1:]) {
					continue
				}
				has = true
				if line[0] == '+' {
					lines.Added++
				} else {
					lines.Removed++
				}
				if len(lines.Lines) < linesOfFound {
					lines.Lines = append(lines.Lines, line)
				}
			}
		}
		if has {
			paths = append(paths, f.Path)
		}
	}
	return lines, paths
}

// commitInfo is a commit of the index as a listing has it.
func commitInfo(c *change.CommitMatch) browse.CommitInfo {
	name, mail, _ := strings.Cut(strings.TrimSuffix(c.Author, ">"), " <")
	subject, body, _ := strings.Cut(c.Message, "\n")
	return browse.CommitInfo{Hash: c.ID, Date: c.AuthorTime, Committed: c.CommitTime, Message: subject, Body: strings.TrimSpace(body), AuthorName: name, AuthorEmail: mail}
}

// indexedTrace answers a question about the changes of one repository from the index; nil if that
// does not have all of its commits. Without moved it is also nil where the text may have come into the path,
// or gone from it, by a move: a move changes no line. named is the number of changes whose lines are not in
// the index.
func indexedTrace(ctx context.Context, v catalog.Viewer, s symbols.Searcher, b browse.Reader, a *Args, moved bool) (r *browse.TraceResponse, named int) {
	q := newChangeQuery(a)
	if q == nil || a.Flag("verbatim") {
		return nil, 0
	}
	// A repository that does not exist has no commits either.
	if _, err := b.Repo(ctx, v, a.Text("repo")); err != nil {
		return nil, 0
	}
	found, err := q.ask(ctx, v, s, a.Number("perPage"))
	if err != nil || !found.covers(coverage.Limit) || found.Moved && !moved {
		return nil, 0
	}
	if found.total == 0 && pathIsThere(ctx, v, b, a) != nil {
		return nil, 0 // git knows whether it was there, and what it may be
	}

	out := &browse.TraceResponse{Commit: "HEAD", Total: found.total, Reached: found.next, AtLeast: found.more || !found.next.IsZero(), Paths: map[string][]string{}, Changed: map[string]git.ChangedLines{}}
	for i := range found.commits {
		c := &found.commits[i].CommitMatch
		out.Commits = append(out.Commits, commitInfo(c))
		out.Changed[c.ID], out.Paths[c.ID] = q.lines(c)
	}
	return out, found.Named
}

// covers reports whether the index has all commits of all repositories, but for what some gaps say.
func (f *changesFound) covers(but ...coverage.Kind) bool {
	c := f.Coverage
	for _, kind := range but {
		c = c.Without(kind)
	}
	return c.Complete()
}

// unreadLines says that the lines of some changes are not in the index; "" if all are.
func unreadLines(named int) string {
	if named == 0 {
		return ""
	}
	return "the lines of " + count(named, "change") + " of binary files or over 1 MB"
}

// commitsEverywhere lists the commits of all repositories, from the index of changes.
func commitsEverywhere(ctx context.Context, v catalog.Viewer, s symbols.Searcher, a *Args) (string, error) {
	q := newChangeQuery(a)
	if q == nil || a.Has("groupBy") {
		return "", call.Fail(call.ErrInvalid, "ref, lines, groupBy, dates in words and texts over several lines need repo")
	}
	found, err := q.ask(ctx, v, s, a.Number("perPage"))
	if err != nil {
		return "", err
	}

	var out strings.Builder
	if found.more || !found.next.IsZero() {
		out.WriteString("At least ")
	}
	fmt.Fprintf(&out, "%s in all repositories, newest first\n", count(found.total, "commit"))
	last, shown := "", 0
	for i := range found.commits {
		text := foundText(q, &found.commits[i], last, len(found.commits))
		if out.Len()+len(text) > a.room() && shown > 0 {
			break
		}
		out.WriteString(text)
		last = found.commits[i].Repository
		shown++
	}

	var e end
	older := ""
	switch {
	case shown < len(found.commits):
		older = until(found.commits[shown].CommitTime)
	case !found.next.IsZero():
		older = until(found.next)
	case found.total > shown && shown > 0:
		older = until(found.commits[shown-1].CommitTime)
	}
	if older != "" {
		e.leaves("older ones; continue with " + a.with("until", older))
	}
	e.covers(a, found.Coverage.Without(coverage.Limit), words{coverage.Pending: found.uncovered(), coverage.Shallow: found.uncovered()})
	if unread := unreadLines(found.Named); unread != "" {
		e.unlooked = append(e.unlooked, unread)
	}
	e.hint = newerLeft(a)
	return out.String() + e.String(), nil
}

// until writes a time for the parameter until.
func until(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// foundText describes one of some commits of many repositories. last is the repository of the line before.
func foundText(q *changeQuery, found *search.FoundCommit, last string, commits int) string {
	text := ""
	if found.Repository != last {
		text = "[" + label(found.Repository) + "]\n"
	}
	info := commitInfo(&found.CommitMatch)
	text += commitLine(&info)
	if found.FirstTag != "" {
		text += " (" + label(found.FirstTag) + ")"
	}
	if q.text == "" && q.expr == "" {
		return text + "\n"
	}
	changed, paths := q.lines(&found.CommitMatch)
	below, more := changedText(changed, commits)
	return text + inPaths(paths, commits) + more + "\n" + below
}

// uncovered names the repositories whose commits are not all indexed.
func (f *changesFound) uncovered() string {
	var names []string
	for _, u := range f.Uncovered[:min(len(f.Uncovered), 3)] {
		names = append(names, label(u.Repository)+" ("+u.Why+")")
	}
	return strings.Join(names, ", ") + moreThan(len(names), len(f.Uncovered))
}
