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

// ChangedLines is how a commit changed the lines that a trace looks for.
type ChangedLines struct {
	Added, Removed int
	Lines          []string // the first of them, each after + or -
}

const (
	tracedCommits = 20          // greatest number of commits on a page whose lines are listed
	tracedLines   = 4           // greatest number of lines listed for a commit
	tracedBytes   = 32 << 20    // bytes of patches that are read for them
	tracedTime    = time.Second // time for all of them
	tracedLength  = 2000        // bytes of a line
)

// changedLines reads the patches of the first commits of a page and lists the lines that match. It
// omits the lines of a commit that it does not reach in time, or whose patch is too long.
func (h *traces) changedLines(ctx context.Context, q TraceQuery, page *TracePage, own *changeReader) {
	wanted := q.lineMatcher()
	look, _, err := q.pickaxe()
	if wanted == nil || len(page.Commits) == 0 || err != nil {
		return
	}

	var ids []string
	for _, commit := range page.Commits[:min(len(page.Commits), tracedCommits)] {
		ids = append(ids, commit.Hash)
	}
	c := h.patches(q, ids, look)
	c.Timeout, c.Limit = tracedTime, tracedBytes

	// If reading fails, as when the time ends, keep what was read before.
	p := &patchLines{wanted: wanted, coded: own.coded, found: map[string]ChangedLines{}}
	if err := c.Stream(ctx, p.read); err != nil {
		delete(p.found, p.commit) // read only in part
	}
	for commit, git := range p.found {
		own := page.Changed[commit]
		git.Added, git.Removed, git.Lines = git.Added+own.Added, git.Removed+own.Removed, append(git.Lines, own.Lines...)
		git.Lines = git.Lines[:min(len(git.Lines), tracedLines)]
		page.Changed[commit] = git
	}
}

// patches returns the command that prints the patches of the files with the change, without context
// lines.
func (h *traces) patches(q TraceQuery, commits, look []string) *run.Command {
	return h.changedFiles(q, commits, append(slices.Clone(look), "--patch", "--unified=0", "--full-index", "--no-color")...)
}

// lineMatcher returns a function that reports whether a line matches, with any line end; nil if a
// single line cannot match.
func (q *TraceQuery) lineMatcher() func(line string) bool {
	if strings.Contains(q.Text, "\n") {
		return nil
	}
	if q.Text != "" {
		return func(line string) bool { return strings.Contains(line, q.Text) }
	}

	// An invalid expression was refused when the commits were compared.
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
	coded  map[string]bool // ids of blobs in which git finds no lines
	commit string          // the current commit
	inHunk bool            // a line that begins with a sign is a line of a file
	skip   bool            // another reader lists the lines of this file
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
		p.line(line)
	}
}

// line reads the next line of the patches.
func (p *patchLines) line(line string) {
	switch {
	case pack.IsID(line):
		p.commit, p.inHunk = line, false
		p.found[p.commit] = ChangedLines{}

	// This begins the head of a file, which contains --- and +++.
	case strings.HasPrefix(line, "diff "):
		p.inHunk, p.skip = false, false
	case !p.inHunk && strings.HasPrefix(line, "index "):
		p.file, _, _ = strings.Cut(line[len("index "):], " ")
		old, now, _ := strings.Cut(p.file, "..")
		p.skip = p.coded[old] || p.coded[now]
	case strings.HasPrefix(line, "@@"):
		p.inHunk = !p.skip
	case p.inHunk && line != "" && p.wanted(line[1:]):
		p.keep(line)
	}
}

// keep counts an added or removed line that matches, and keeps the first ones of each commit.
func (p *patchLines) keep(line string) {
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
