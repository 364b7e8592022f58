package git

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/shoalsearch/shoal/shard/git/pack"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// ErrBadFilter means that git cannot look for such a change.
var ErrBadFilter = fmt.Errorf("%w: not a change that git can look for", fs.ErrInvalid)

// TraceQuery selects commits by what they changed in files. Exactly one of Text, Expr and Lines is
// set.
type TraceQuery struct {
	Commit   string // the id of the newest commit to look at
	Not      string // the id of a commit: omit it and its ancestors; "" omits nothing
	Path     string // look only at changes in this file or directory; the file if Lines is set
	Text     string // select the commits that change how often this text occurs in a file
	Expr     string // select the commits that add or remove a line which matches this expression
	Lines    [2]int // select the commits that change one of these lines of the file Path, first and last, from 1, as numbered in Commit
	NoMerges bool
	Since    time.Time
	Until    time.Time
	Skip     int
	Limit    int           // 0 means 50
	Time     time.Duration // 0 means 5 s; the answer is what was found by then
}

// TracePage is a page of commits with the changes that each of them made.
type TracePage struct {
	LogPage

	Paths map[string][]string // by id of a commit: the files in which it made a selected change

	// If older commits may have changed the lines of the query: the path and the numbers of these
	// lines in the parent of the last commit of the page. The query for the next page has them as
	// Path and Lines.
	From      string
	FromLines [2]int

	Changed map[string]ChangedLines // by id of a commit, for the first commits of the page, if the query has Text or Expr
	Unread  []string                // paths of files that may have a selected change, but are too large to read
}

const (
	traceTime     = 5 * time.Second
	traceBatchMin = 64 // commits that git compares in the first batch; few, so that users soon see the newest
	traceBatchMax = 2048
	tracePaths    = 10       // greatest number of paths listed for a commit
	maxPatch      = 16 << 20 // bytes of the patch of one commit, for traced lines
	maxEntry      = 64 << 10 // bytes of the entry of a file: a merge has any number of parents
)

// traces finds the commits that made a change.
type traces struct{ *logs }

// Trace lists the commits that changed a text, or some lines of a file. It compares each commit
// with its parents, which takes long. When the time is over, it returns what it has found, and sets
// Reached to the time of the first commit that it has not compared.
func (h *traces) Trace(ctx context.Context, q TraceQuery) (TracePage, error) {
	if q.Limit <= 0 {
		q.Limit = 50
	}
	if q.Time <= 0 {
		q.Time = traceTime
	}

	q.Skip = max(0, q.Skip)
	if err := q.check(); err != nil {
		return TracePage{}, err
	}

	s, err := h.refs(ctx)
	if err != nil {
		return TracePage{}, err
	}

	var page TracePage
	if q.Lines[0] > 0 {
		page, err = h.followLines(ctx, q)
	} else {
		page, err = h.traceText(ctx, q)
	}
	if err != nil {
		return TracePage{}, fmt.Errorf("trace a change: %w", err)
	}

	// The commits were read without their references.
	for i := range page.Commits {
		page.Commits[i] = page.Commits[i].withRefs(s)
	}
	return page, nil
}

// check returns an error for a query that git would misunderstand, and cleans its path.
func (q *TraceQuery) check() error {
	for _, text := range []string{q.Text, q.Expr} {
		if strings.IndexByte(text, 0) >= 0 || len(text) > 1000 {
			return fmt.Errorf("a text or an expression to search changes for has at most 1,000 bytes and no NUL: %w", ErrBadFilter)
		}
	}
	path, err := cleanPath(q.Path)
	q.Path = path
	return err
}

// logQuery selects the commits that a trace compares.
func (q *TraceQuery) logQuery() LogQuery {
	return LogQuery{Commit: q.Commit, Not: q.Not, Path: q.Path, Since: q.Since, Until: q.Until, NoMerges: q.NoMerges}
}

// traceText finds the commits that changed the text or expression of the query, newest first, until
// it has a page or the time is over.
func (h *traces) traceText(ctx context.Context, q TraceQuery) (page TracePage, err error) {
	// limited has the time limit of the query; ctx has that of the caller.
	limited, cancel := context.WithTimeout(ctx, q.Time)
	defer cancel()

	own := newChangeReader(q)
	found, err := h.findChanges(limited, q, &page, own)
	page.Unread, page.Changed = own.unread, own.lines

	switch {
	case err == nil:
	case limited.Err() != nil && ctx.Err() == nil: // the time of the query is over, which is no error
		page.AtLeast = true
	default:
		return page, err
	}

	// Skip and Limit select the page from what was found.
	page.AtLeast = page.AtLeast || !page.Reached.IsZero()
	page.Total = len(found)
	found = found[min(q.Skip, len(found)):]
	page.Commits, err = h.readCommits(ctx, found[:min(q.Limit, len(found))])
	if err == nil {
		h.changedLines(ctx, q, &page, own)
	}
	return page, err
}

// findChanges compares commits in batches, by git and own, until it has found enough for a page. It
// returns the ids of the commits with the change, newest first; with an error, those found before
// the error. It sets the Paths of the page.
func (h *traces) findChanges(ctx context.Context, q TraceQuery, page *TracePage, own *changeReader) (found []string, err error) {
	page.Paths = map[string][]string{}
	err = h.listBatches(ctx, q, func(batch []string, first time.Time) error {
		// If the search stops before it has compared this batch, it has reached this time.
		page.Reached = first
		if len(found) >= q.Skip+q.Limit {
			return run.ErrStop
		}
		if err := h.compareBatch(ctx, q, batch, &found, page, own); err != nil {
			return err
		}
		page.Reached = time.Time{}
		return nil
	})
	return found, err
}

// listBatches lists the commits to compare, newest first. It calls use with the ids of each batch
// and the time of its first commit. If use returns run.ErrStop, it ends without an error.
func (h *traces) listBatches(ctx context.Context, q TraceQuery, use func([]string, time.Time) error) error {
	all := q.logQuery()
	args, err := all.arguments()
	if err != nil {
		return err
	}

	// This git process lists the commits while others compare them.
	c := h.git("rev-list", "--timestamp")
	c.Args = append(c.Args, args...)
	c.Timeout, c.Limit = q.Time+time.Second, 4<<30
	return c.Stream(ctx, func(r io.Reader) error {
		in := bufio.NewReaderSize(r, 64<<10)
		for size := traceBatchMin; ; size = min(2*size, traceBatchMax) {
			batch, first, err := nextCommits(in, size)
			if len(batch) == 0 || err != nil && err != io.EOF {
				return ignoreEOF(err)
			}
			if err := use(batch, first); err != nil {
				return err
			}
		}
	})
}

// nextCommits reads up to limit lines with a time and a commit, "1700000000 <id>". It returns the
// ids and the first time.
func nextCommits(in *bufio.Reader, limit int) (commits []string, first time.Time, err error) {
	for len(commits) < limit {
		line, err := readLine(in)
		if err != nil {
			return commits, first, err
		}
		stamp, commit, ok := strings.Cut(line, " ")
		if !ok {
			return commits, first, fmt.Errorf("git rev-list said %.80q", line)
		}

		if len(commits) == 0 {
			first = unixTime(stamp)
		}
		commits = append(commits, commit)
	}
	return commits, first, nil
}

// diffCommand returns the git diff-tree that compares commits with their parents, with more
// options.
func (h *traces) diffCommand(q TraceQuery, commits []string, options ...string) *run.Command {
	c := h.git("diff-tree", "--stdin", "-r", "--root", "--no-renames", "--no-ext-diff", "--no-textconv")
	c.Args = append(append(c.Args, options...), "--")
	if q.Path != "" {
		c.Args = append(c.Args, q.Path)
	}
	c.Stdin = strings.NewReader(strings.Join(commits, "\n") + "\n")
	c.Timeout, c.Limit = q.Time+time.Second, 4<<30
	return c
}

// pickaxe returns the options of git that omit files without a selected change. If exact is false,
// git also lists some files without such a change.
func (q *TraceQuery) pickaxe() (args []string, exact bool, err error) {
	if strings.Contains(q.Text, "\n") {
		return []string{"--pickaxe-regex", "-S" + strings.ReplaceAll(quoteExtended(q.Text), "\n", "\r?\n")}, true, nil
	}
	if q.Text != "" {
		return []string{"-S" + q.Text}, true, nil
	}
	expr, exact, err := gitExpr(q.Expr)
	return []string{"--text", "-G" + expr}, exact, err // without --text git skips files that contain a NUL
}

// compareBatch adds the commits of a batch with a selected change to found, and their files to the
// page. Git compares all files, and own compares the files that git cannot compare.
func (h *traces) compareBatch(ctx context.Context, q TraceQuery, batch []string, found *[]string, page *TracePage, own *changeReader) error {
	pickaxe, exact, err := q.pickaxe()
	if err != nil {
		return err
	}
	c := h.diffCommand(q, batch, append(slices.Clone(pickaxe), "-z", "--raw")...)

	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return h.readBatch(groupCtx, own, batch) })
	byGit := map[string][]changedFile{} // by id of a commit
	group.Go(func() error {
		return readDifferences(groupCtx, c, func(commit, entry, path string) error {
			byGit[commit] = append(byGit[commit], changedFile{path, entry})
			return nil
		})
	})
	if err := group.Wait(); err != nil {
		return err
	}
	if !exact {
		if err := h.keepMatches(ctx, q, pickaxe, byGit); err != nil {
			return err
		}
	}

	// Join both results, in the order of the batch.
	for _, commit := range batch {
		var paths []string
		for _, file := range byGit[commit] {
			if !own.gitIgnored[[2]string{commit, file.path}] {
				paths = append(paths, file.path)
			}
		}
		paths = append(paths, own.paths[commit]...)
		if slices.Sort(paths); len(paths) > 0 {
			*found, page.Paths[commit] = append(*found, commit), paths[:min(len(paths), tracePaths)]
		}
	}
	return nil
}

// changedFile is a file that a commit changed, with its entry as git prints it.
type changedFile struct{ path, entry string }

// keepMatches removes the files in which no changed line matches the expression itself. Git has
// found them with pickaxe, the options for an expression that matches more.
func (h *traces) keepMatches(ctx context.Context, q TraceQuery, pickaxe []string, byGit map[string][]changedFile) error {
	if len(byGit) == 0 {
		return nil
	}
	p := &patchLines{wanted: q.lineMatcher(), found: map[string]ChangedLines{}, matches: map[string]bool{}}
	if err := h.patchCommand(q, slices.Collect(maps.Keys(byGit)), pickaxe).Stream(ctx, p.read); err != nil {
		return err
	}
	for commit, files := range byGit {
		byGit[commit] = slices.DeleteFunc(files, func(f changedFile) bool {
			fields := strings.Fields(f.entry) // two modes, two ids and a status
			return len(fields) == 5 && !p.matches[commit+" "+fields[2]+".."+fields[3]]
		})
	}
	return nil
}

// readDifferences runs a command of diffCommand with -z and --raw. It prints each commit followed
// by its files. use gets each file with the commit:
//
//	<commit> NUL :100644 100644 <oid> <oid> M NUL path NUL ...
func readDifferences(ctx context.Context, c *run.Command, use func(commit, entry, path string) error) error {
	return c.Stream(ctx, func(r io.Reader) error {
		in, commit := newRecords(r), ""
		for {
			field, err := in.readField(maxEntry)
			if err != nil {
				return ignoreEOF(err)
			}
			if pack.IsID(field) {
				commit = field
				continue
			}

			// A field that is no id is the entry of a file. Its path follows.
			path, err := in.readInnerField(maxPath)
			if err != nil || commit == "" || !strings.HasPrefix(field, ":") {
				return fmt.Errorf("git diff-tree said %.80q", field)
			}
			if err := use(commit, field, path); err != nil {
				return err
			}
		}
	})
}

// followLines lets git follow lines of a file back through its history. Git prints each commit with
// the patch of those lines, which shows where they were before.
func (h *traces) followLines(ctx context.Context, q TraceQuery) (page TracePage, err error) {
	filter := q.logQuery()
	filter.Path = "" // git takes the file from -L
	args, err := filter.arguments()
	if err != nil {
		return page, err
	}
	limited, cancel := context.WithTimeout(ctx, q.Time)
	defer cancel()

	f := &lineFollower{q: q, page: &page, mark: rand.Text()}
	lines := fmt.Sprintf("-L%d,%d:%s", q.Lines[0], q.Lines[1], q.Path)
	c := h.git("log", "--no-show-signature", "--no-color", "--no-ext-diff", "--no-textconv", lines,
		"--format=%x00"+f.mark+"%H%x00%P%x00%an%x00%ae%x00%at%x00%ct%x00%s%x00%b%x00")
	c.Args = append(c.Args, args...)
	c.Timeout = q.Time + time.Second

	page.Paths = map[string][]string{}
	err = c.Stream(limited, func(r io.Reader) error { return f.readAll(newRecords(r)) })

	// If the time of the query is over, but not the caller's, return what was found.
	if limited.Err() != nil && ctx.Err() == nil {
		page.AtLeast, err = true, nil
	}
	page.Total = f.read
	if !page.AtLeast { // no older commit changed the lines
		page.From = ""
	}
	return page, err
}

// lineFollower reads the output of git log -L:
//
//	NUL mark <commit> NUL <parents> NUL ... <body> NUL <patch> NUL mark <commit> ...
//
// A patch may contain a NUL, but not the mark, which is new for each run.
type lineFollower struct {
	q    TraceQuery
	mark string
	page *TracePage
	read int // number of commits read
}

// readAll reads all commits, or as many as the page needs, into the page.
func (f *lineFollower) readAll(in *records) error {
	// Skip what precedes the first mark.
	if _, last, err := f.readPatch(in); err != nil || last {
		return err
	}

	for {
		c, err := in.readCommit()
		if err != nil {
			return ignoreEOF(err)
		}
		patch, last, err := f.readPatch(in)
		if err != nil {
			return fmt.Errorf("read the change of these lines in commit %.10s: %w", c.Hash, err)
		}

		if f.read++; f.read > f.q.Skip+f.q.Limit {
			f.page.AtLeast = true
			return run.ErrStop
		}
		if f.read > f.q.Skip {
			f.addCommit(c, patch)
		} else {
			*in.room = answerTexts // the page does not have this commit
		}
		if last {
			return nil
		}
	}
}

// readPatch reads a patch, and the mark of the next commit. The last patch ends with the output.
func (f *lineFollower) readPatch(in *records) (patch []byte, last bool, err error) {
	for {
		part, length, err := in.readBytes(maxPatch)
		if patch = append(patch, part...); length > len(part) || len(patch) > maxPatch {
			return nil, false, fmt.Errorf("it takes more than %d MB: %w", maxPatch>>20, ErrTooLarge)
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return patch, true, nil
		}
		if err != nil {
			return nil, false, err
		}
		if next, _ := in.src.Peek(len(f.mark)); string(next) == f.mark {
			_, err := in.src.Discard(len(next))
			return patch, false, err
		}
		patch = append(patch, 0)
	}
}

// addCommit adds a commit to the page, and sets From and FromLines to the place of the lines before
// that commit, which its patch shows.
func (f *lineFollower) addCommit(c Commit, patch []byte) {
	f.page.Commits = append(f.page.Commits, c)

	first, last := 0, 0 // the first and the last old line of all hunks
	for line := range bytes.Lines(patch) {
		text := strings.TrimSuffix(string(line), "\n")
		switch {
		case strings.HasPrefix(text, "--- a/"):
			f.page.From = strings.TrimPrefix(text, "--- a/")
		case strings.HasPrefix(text, "+++ b/"):
			f.page.Paths[c.Hash] = slices.Compact(append(f.page.Paths[c.Hash], strings.TrimPrefix(text, "+++ b/")))
		case strings.HasPrefix(text, "@@ -"):
			h, err := parseHunkHeader(text)
			if err != nil {
				continue
			}

			if first == 0 || h.Old.Start < first {
				first = h.Old.Start
			}

			last = max(last, h.Old.Start+h.Old.Lines-1)
		}
	}
	f.page.FromLines = [2]int{max(first, 1), max(last, first, 1)}
}

// ParseLines parses "path:first-last", or "path:line". A line may have an L before it, as in
// "a.c:L3-L5".
func ParseLines(text string) (path string, first, last int, ok bool) {
	colon := strings.LastIndexByte(text, ':') // the last, as a path may contain colons
	if colon <= 0 {
		return "", 0, 0, false
	}

	from, to, both := strings.Cut(text[colon+1:], "-")
	if !both {
		to = from
	}

	first, err1 := strconv.Atoi(strings.TrimPrefix(from, "L"))
	last, err2 := strconv.Atoi(strings.TrimPrefix(to, "L"))
	return text[:colon], first, last, err1 == nil && err2 == nil && first >= 1 && last >= first
}
