package git

import (
	"bufio"
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/shard/git/pack"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// ChangedLines says how a commit changed the lines that match a trace.
type ChangedLines struct {
	Added, Removed int      // numbers of matching lines
	Lines          []string // the first of them, each with a + or - before it
}

const (
	tracedCommits = 20          // greatest number of commits on a page whose lines are listed
	tracedLines   = 4           // greatest number of lines listed for a commit
	tracedBytes   = 32 << 20    // greatest number of bytes of patches that are read for a page
	tracedTime    = time.Second // time limit for reading them
	tracedLength  = 2000        // greatest number of bytes of a listed line
)

// changedLines reads the patches of the first commits of a page, and adds the matching lines to
// page.Changed, which has those that own has found. It omits the lines of a commit that it does not
// reach in time, or whose patch is too long.
func (h *traces) changedLines(ctx context.Context, q TraceQuery, page *TracePage, own *changeReader) {
	wanted := q.lineMatcher()
	pickaxe, _, err := q.pickaxe()
	if wanted == nil || len(page.Commits) == 0 || err != nil {
		return
	}

	var ids []string
	for _, commit := range page.Commits[:min(len(page.Commits), tracedCommits)] {
		ids = append(ids, commit.Hash)
	}
	c := h.patchCommand(q, ids, pickaxe)
	c.Timeout, c.Limit = tracedTime, tracedBytes

	// If reading fails, for example because the time is over, keep what was read before.
	p := &patchLines{wanted: wanted, coded: own.coded, found: map[string]ChangedLines{}}
	if err := c.Stream(ctx, p.read); err != nil {
		delete(p.found, p.commit) // read only in part
	}
	for commit, sum := range p.found {
		byOwn := page.Changed[commit]
		sum.Added, sum.Removed, sum.Lines = sum.Added+byOwn.Added, sum.Removed+byOwn.Removed, append(sum.Lines, byOwn.Lines...)
		sum.Lines = sum.Lines[:min(len(sum.Lines), tracedLines)]
		page.Changed[commit] = sum
	}
}

// patchCommand returns the command that prints the patches of the files that pickaxe selects,
// without context lines.
func (h *traces) patchCommand(q TraceQuery, commits, pickaxe []string) *run.Command {
	return h.diffCommand(q, commits, append(slices.Clone(pickaxe), "--patch", "--unified=0", "--full-index", "--no-color")...)
}

// lineMatcher returns a function that reports whether a line of a file matches the query; nil if
// the query has a text of several lines, which no single line matches.
func (q *TraceQuery) lineMatcher() func(line string) bool {
	if strings.Contains(q.Text, "\n") {
		return nil
	}
	if q.Text != "" {
		return func(line string) bool { return strings.Contains(line, q.Text) }
	}

	// For an invalid expression pickaxe returns an error.
	expr, err := regexp.Compile(q.Expr)
	if err != nil {
		return nil
	}
	return func(line string) bool {
		return expr.MatchString(line) || expr.MatchString(strings.TrimSuffix(line, "\r"))
	}
}

// patchLines reads patches without context lines, as git diff-tree prints them:
//
//	<commit>
//	diff --git a/src/a.c b/src/a.c
//	index <oid>..<oid> 100644
//	--- a/src/a.c
//	+++ b/src/a.c
//	@@ -1 +1,2 @@
//	-one
//	+two
type patchLines struct {
	wanted func(line string) bool
	coded  map[string]bool // by id of a blob: whether a changeReader has read it, because git finds no lines in it
	commit string          // the current commit
	inHunk bool            // the next line is in a hunk of a file that is not skipped
	skip   bool            // ignore this file: a changeReader has listed its lines
	found  map[string]ChangedLines

	file    string          // the ids of the current file, as "<oid>..<oid>"
	matches map[string]bool // by commit and file, "<commit> <oid>..<oid>"; nil if the caller needs no files
}

// read counts the lines of patches in git's output.
func (p *patchLines) read(r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) && line == "" {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		p.readLine(line)
	}
}

// readLine takes the next line of the patches.
func (p *patchLines) readLine(line string) {
	switch {
	case pack.IsID(line):
		p.commit, p.inHunk = line, false
		p.found[p.commit] = ChangedLines{}

	// The head of a file begins. Its lines with --- and +++ are no lines of the file.
	case strings.HasPrefix(line, "diff "):
		p.inHunk, p.skip = false, false
	case !p.inHunk && strings.HasPrefix(line, "index "):
		p.file, _, _ = strings.Cut(line[len("index "):], " ")
		old, now, _ := strings.Cut(p.file, "..")
		p.skip = p.coded[old] || p.coded[now]
	case strings.HasPrefix(line, "@@"):
		p.inHunk = !p.skip
	case p.inHunk && line != "" && p.wanted(line[1:]):
		p.addMatch(line)
	}
}

// addMatch counts a matching line of a hunk, and lists it if it is among the first tracedLines of the
// commit.
func (p *patchLines) addMatch(line string) {
	c := p.found[p.commit]
	switch line[0] {
	case '+':
		c.Added++
	case '-':
		c.Removed++
	default:
		return // git's note that a file ends without a newline
	}

	if p.matches != nil {
		p.matches[p.commit+" "+p.file] = true
	}
	if len(c.Lines) < tracedLines {
		c.Lines = append(c.Lines, line[:min(len(line), tracedLength)])
	}
	p.found[p.commit] = c
}
