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

// ChangedLines is what a commit did to the lines that a trace looks for.
type ChangedLines struct {
	Added, Removed int
	Lines          []string // the first of them, each with + or - before it
}

const (
	tracedCommits = 20          // of a page whose lines are told
	tracedLines   = 4           // of a commit that are told
	tracedBytes   = 32 << 20    // of patches that are read for them
	tracedTime    = time.Second // for all of them
	tracedLength  = 2000        // bytes of a line
)

// changedLines reads the patches of the first commits of a page for the lines that
// match. It is an addition: of a commit that is not reached in time, or whose patch
// is too long, nothing is told.
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

	// What was read until an error is told: the end of the time is one.
	p := &patchLines{wanted: wanted, coded: own.coded, found: map[string]ChangedLines{}}
	if err := c.Stream(ctx, p.read); err != nil {
		delete(p.found, p.commit) // read in part
	}
	for commit, git := range p.found {
		own := page.Changed[commit]
		git.Added, git.Removed, git.Lines = git.Added+own.Added, git.Removed+own.Removed, append(git.Lines, own.Lines...)
		git.Lines = git.Lines[:min(len(git.Lines), tracedLines)]
		page.Changed[commit] = git
	}
}

// patches has git print the patches of the files with the change, without lines around them.
func (h *traces) patches(q TraceQuery, commits, look []string) *run.Command {
	return h.changedFiles(q, commits, append(slices.Clone(look), "--patch", "--unified=0", "--full-index", "--no-color")...)
}

// lineMatcher tells which lines are looked for, in whatever way they end; nil where no line
// alone can be.
func (q *TraceQuery) lineMatcher() func(line string) bool {
	if strings.Contains(q.Text, "\n") {
		return nil
	}
	if q.Text != "" {
		return func(line string) bool { return strings.Contains(line, q.Text) }
	}

	// What is none was refused when the commits were compared.
	expr, err := regexp.Compile(q.Expr)
	if err != nil {
		return nil
	}
	return func(line string) bool {
		return expr.MatchString(line) || expr.MatchString(strings.TrimSuffix(line, "\r"))
	}
}

// patchLines reads patches without lines around them, as git diff-tree prints them:
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
	coded  map[string]bool // ids of blobs whose lines are none for git
	commit string          // whose patch is read
	inHunk bool            // what begins with a sign is a line of a file
	skip   bool            // the file is told by another
	found  map[string]ChangedLines

	file    string          // the ids of the file whose patch is read, as "<oid>..<oid>"
	matches map[string]bool // by commit and file, "<commit> <oid>..<oid>"; nil where nobody asks for files
}

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

// line takes the next line of the patches.
func (p *patchLines) line(line string) {
	switch {
	case pack.IsID(line):
		p.commit, p.inHunk = line, false
		p.found[p.commit] = ChangedLines{}

	// The head of a file, which has --- and +++ in it.
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

// keep counts a line that is looked for, and keeps the first ones.
func (p *patchLines) keep(line string) {
	c := p.found[p.commit]
	switch line[0] {
	case '+':
		c.Added++
	case '-':
		c.Removed++
	default:
		return // git's word that a file ends without a newline
	}

	if p.matches != nil {
		p.matches[p.commit+" "+p.file] = true
	}
	if len(c.Lines) < tracedLines {
		c.Lines = append(c.Lines, line[:min(len(line), tracedLength)])
	}
	p.found[p.commit] = c
}
