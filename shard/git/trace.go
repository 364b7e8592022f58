package git

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/shard/git/pack"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// ErrBadFilter means that a change cannot be looked for.
var ErrBadFilter = fmt.Errorf("%w: not a change that git can look for", fs.ErrInvalid)

// TraceQuery selects commits by what they changed. One of Text, Expr and
// Lines is set.
type TraceQuery struct {
	Commit   string // where to begin, an id
	Not      string // an id: what is in its history is left out; "" leaves nothing out
	Path     string // only changes in this file or directory; with Lines the file
	Text     string // the number of its occurrences in a file has changed
	Expr     string // a changed line matches this expression
	Lines    [2]int // first and last line, from 1, of the file Path in Commit: a change of one of them
	NoMerges bool
	Since    time.Time
	Until    time.Time
	Skip     int
	Limit    int           // 0 is 50
	Time     time.Duration // 0 is 5 s; what was found until then is the answer
}

// TracePage is a page of commits with what each of them changed.
type TracePage struct {
	LogPage

	Paths map[string][]string // by commit: the files with such a change
	// Where lines were followed, and not to their beginning: where in the parent
	// of the last commit of the page they were.
	From      string
	FromLines [2]int

	Changed map[string]ChangedLines // by commit, of the first of the page, where a text or an expression was looked for
}

const (
	traceTime  = 5 * time.Second
	traceFirst = 64 // commits that git compares at a time: little first, since the newest are wanted most
	traceMost  = 2048
	tracePaths = 10       // of a commit that are told
	maxPatch   = 16 << 20 // bytes of one change of the lines that are followed
)

// traces lists the commits that made a change.
type traces struct{ *logs }

// Trace lists the commits that changed a text, or some lines of a file. The
// history is compared commit by commit, which takes long: after some time
// what was found is the answer, with Reached set.
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

	// The history of some lines, or the commits that touch a text.
	var page TracePage
	if q.Lines[0] > 0 {
		page, err = h.followLines(ctx, q)
	} else {
		page, err = h.compare(ctx, q)
	}
	if err != nil {
		return TracePage{}, fmt.Errorf("trace a change: %w", err)
	}

	// References move, so they are filled in anew.
	for i := range page.Commits {
		page.Commits[i] = page.Commits[i].marked(s)
	}
	return page, nil
}

// check refuses what git would misunderstand.
func (q *TraceQuery) check() error {
	for _, text := range []string{q.Text, q.Expr} {
		if strings.IndexByte(text, 0) >= 0 || len(text) > 1000 {
			return fmt.Errorf("a change is looked for by at most 1,000 bytes: %w", ErrBadFilter)
		}
	}
	path, err := cleanPath(q.Path)
	q.Path = path
	return err
}

// walked selects the commits that a trace looks at.
func (q *TraceQuery) walked() LogQuery {
	return LogQuery{Commit: q.Commit, Not: q.Not, Path: q.Path, Since: q.Since, Until: q.Until, NoMerges: q.NoMerges}
}

// compare lists the commits from the newest on, and has git compare them a batch
// at a time, until it has a page or the time is over.
func (h *traces) compare(ctx context.Context, q TraceQuery) (page TracePage, err error) {
	// looked is how long commits are compared; ctx is the caller's own time.
	looked, cancel := context.WithTimeout(ctx, q.Time)
	defer cancel()

	// Git lists the commits that are in no pack.
	found, err := h.compareEach(looked, q, &page, h.readBatches)
	if errors.Is(err, pack.ErrAskGit) {
		found, err = h.compareEach(looked, q, &page, h.listBatches)
	}

	switch {
	case err == nil:
	case looked.Err() != nil && ctx.Err() == nil: // out of time, which is no failure
		page.AtLeast = true
	default:
		return page, err
	}

	// The page is a part of what was found.
	page.AtLeast = page.AtLeast || !page.Reached.IsZero()
	page.Total = len(found)
	found = found[min(q.Skip, len(found)):]
	page.Commits, err = h.shown(ctx, found[:min(q.Limit, len(found))])
	if err == nil {
		page.Changed = h.changedLines(ctx, q, page.Commits)
	}
	return page, err
}

// batches hands on the commits that a trace looks at, newest first, and the time of the
// first of each batch. errStop from use ends it without an error.
type batches func(ctx context.Context, q TraceQuery, use func(commits []string, first time.Time) error) error

// compareEach has git compare the commits of a list, until a page is found. found are the
// commits with the change, newest first; with an error those that were found before it.
func (h *traces) compareEach(ctx context.Context, q TraceQuery, page *TracePage, list batches) (found []string, err error) {
	page.Paths = map[string][]string{}
	err = list(ctx, q, func(batch []string, first time.Time) error {
		// If this batch is not compared, the page says from when on.
		page.Reached = first
		if len(found) >= q.Skip+q.Limit {
			return run.ErrStop
		}
		if err := h.compareBatch(ctx, q, batch, &found, page.Paths); err != nil {
			return err
		}
		page.Reached = time.Time{}
		return nil
	})
	return found, err
}

// readBatches is batches by the commit graph and the packs.
func (h *traces) readBatches(ctx context.Context, q TraceQuery, use func([]string, time.Time) error) error {
	c, err := openChronicle(h.dir)
	if err != nil {
		return err
	}
	defer c.close()

	// Merges are told by the graph: no text has to be read.
	all := q.walked()
	all.NoMerges = false
	w, _, err := c.begin(all, func() error { return context.Cause(ctx) })
	if err != nil {
		return err
	}

	var positions, parents []uint32
	for size := traceFirst; ; size = min(2*size, traceMost) {
		var ended error
		positions, ended = w.batch(positions[:0], size)
		if ended != nil && ended != io.EOF {
			return ended
		}

		var ids []string
		var first time.Time
		err := pack.Protect(func() (err error) {
			for _, pos := range positions {
				if parents, err = c.parents(parents[:0], pos); err != nil {
					return err
				}
				if q.NoMerges && len(parents) > 1 {
					continue
				}
				if len(ids) == 0 {
					first = time.Unix(c.date(pos), 0).UTC()
				}
				ids = append(ids, hex.EncodeToString(c.id(pos)))
			}
			return nil
		})
		if err == nil && len(ids) > 0 {
			err = use(ids, first)
		}
		switch {
		case errors.Is(err, run.ErrStop):
			return nil
		case err != nil:
			return err
		case ended == io.EOF:
			return nil
		}
	}
}

// listBatches is batches by git.
func (h *traces) listBatches(ctx context.Context, q TraceQuery, use func([]string, time.Time) error) error {
	all := q.walked()
	args, err := all.arguments()
	if err != nil {
		return err
	}

	// Commits come from one git, and are compared by others.
	c := h.git("rev-list", "--timestamp")
	c.Args = append(c.Args, args...)
	c.Timeout, c.Limit = q.Time+time.Second, 4<<30
	return c.Stream(ctx, func(r io.Reader) error {
		in := bufio.NewReaderSize(r, 64<<10)
		for size := traceFirst; ; size = min(2*size, traceMost) {
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

// nextCommits reads lines of a time and a commit, "1700000000 <id>", and returns
// the time of the first.
func nextCommits(in *bufio.Reader, most int) (commits []string, first time.Time, err error) {
	for len(commits) < most {
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

// compareCommits is the git that compares the commits on its standard input with
// their parents, and tells of those with the change in the form that is asked for.
func (h *traces) compareCommits(q TraceQuery, form ...string) (*run.Command, error) {
	c := h.git("diff-tree", "--stdin", "-r", "--root", "--no-renames", "--no-ext-diff", "--no-textconv")
	c.Args = append(c.Args, form...)

	if q.Text != "" {
		c.Args = append(c.Args, "-S"+q.Text)
	} else {
		expr, fold, err := gitExpr(q.Expr)
		if err != nil {
			return nil, err
		}

		c.Args = append(c.Args, "-G"+expr)
		if fold {
			c.Args = append(c.Args, "-i")
		}
	}

	// A path limits what is compared.
	c.Args = append(c.Args, "--")
	if q.Path != "" {
		c.Args = append(c.Args, q.Path)
	}
	return c, nil
}

// compareBatch has git compare commits with their parents. It prints those
// that have the change, each followed by its files:
//
//	<commit> NUL :100644 100644 <oid> <oid> M NUL path NUL ...
func (h *traces) compareBatch(ctx context.Context, q TraceQuery, batch []string, found *[]string, paths map[string][]string) error {
	c, err := h.compareCommits(q, "-z", "--raw")
	if err != nil {
		return err
	}
	c.Stdin = strings.NewReader(strings.Join(batch, "\n") + "\n")
	c.Timeout = q.Time + time.Second

	// Ids and entries of files come in one stream, told apart by their form.
	return c.Stream(ctx, func(r io.Reader) error {
		in := newRecords(r)
		for {
			field, err := in.field(maxField)
			if err != nil {
				return ignoreEOF(err)
			}
			if pack.IsID(field) {
				*found = append(*found, field)
				continue
			}

			// What is no id is the entry of a file, and its path follows.
			path, err := in.part(maxPath)
			if err != nil || len(*found) == 0 || !strings.HasPrefix(field, ":") {
				return fmt.Errorf("git diff-tree said %.80q", field)
			}

			commit := (*found)[len(*found)-1]
			if len(paths[commit]) < tracePaths {
				paths[commit] = append(paths[commit], path)
			}
		}
	})
}

// gitExpr writes an expression of RE2 as the extended regular expression of
// POSIX that git reads. What has no counterpart there is refused.
//
//	(?i)(?:get|put)\d+   (get|put)[0-9]+, fold
//	\pL+?                refused
func gitExpr(expr string) (posix string, fold bool, err error) {
	if _, err := syntax.Parse(expr, syntax.Perl); err != nil {
		return "", false, fmt.Errorf("%w: %w", ErrBadFilter, err)
	}

	expr, fold = strings.CutPrefix(expr, "(?i)")

	// Each turn writes one element of the expression.
	var b strings.Builder
	for i := 0; i < len(expr); i++ {
		switch rest := expr[i:]; {
		// What POSIX writes in another way.
		case strings.HasPrefix(rest, "(?:"):
			b.WriteByte('(')
			i += 2
		case strings.HasPrefix(rest, `\d`):
			b.WriteString("[0-9]")
			i++
		case strings.HasPrefix(rest, `\t`):
			b.WriteByte('\t')
			i++
		case strings.HasPrefix(rest, `\D`):
			b.WriteString("[^0-9]")
			i++

		// What it cannot say; other escapes are the same.
		case onlyRE2(rest):
			return "", false, fmt.Errorf("%.10q cannot stand in an expression for changed lines: %w", rest[:2], ErrBadFilter)
		case rest[0] == '\\' && len(rest) > 1:
			b.WriteString(rest[:2])
			i++
		default:
			b.WriteByte(rest[0])
		}
	}
	return b.String(), fold, nil
}

// onlyRE2 reports whether an expression begins with what POSIX does not have:
// flags, repetition that takes as little as possible, classes by name.
func onlyRE2(expr string) bool {
	for _, prefix := range []string{"(?", "*?", "+?", "??", "}?", `\p`, `\P`, `\Q`, `\x`, `\n`} {
		if strings.HasPrefix(expr, prefix) {
			return true
		}
	}
	return false
}

// followLines has git follow lines of a file back through its history. Each
// commit comes with the patch of those lines, which tells where they were
// before it.
func (h *traces) followLines(ctx context.Context, q TraceQuery) (page TracePage, err error) {
	walked := q.walked()
	walked.Path = "" // git takes the file from -L
	args, err := walked.arguments()
	if err != nil {
		return page, err
	}
	looked, cancel := context.WithTimeout(ctx, q.Time)
	defer cancel()

	lines := fmt.Sprintf("-L%d,%d:%s", q.Lines[0], q.Lines[1], q.Path)
	c := h.git("log", "--no-show-signature", "--no-color", "--no-ext-diff", "--no-textconv", lines,
		"--format=%x00%H%x00%P%x00%an%x00%ae%x00%at%x00%ct%x00%s%x00%b%x00")
	c.Args = append(c.Args, args...)
	c.Timeout = q.Time + time.Second

	f := &lineFollower{q: q, page: &page}
	page.Paths = map[string][]string{}
	err = c.Stream(looked, func(r io.Reader) error { return f.read(newRecords(r)) })

	// The time for looking was up, not the caller's: what was found until then is an answer.
	if looked.Err() != nil && ctx.Err() == nil {
		page.AtLeast, err = true, nil
	}
	page.Total = f.seen
	if !page.AtLeast {
		page.From = ""
	}
	return page, err
}

// lineFollower reads what git log -L prints: of each commit the fields of its
// format, each ended by NUL, then the patch up to the NUL of the next.
type lineFollower struct {
	q    TraceQuery
	page *TracePage
	seen int
}

func (f *lineFollower) read(in *records) error {
	if _, _, err := in.next(0); err != nil {
		return ignoreEOF(err)
	}

	for {
		c, err := in.commit()
		if err != nil {
			return ignoreEOF(err)
		}

		// The last patch ends with the output.
		patch, length, err := in.next(maxPatch)
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return err
		}
		if length > len(patch) {
			return fmt.Errorf("the change of these lines in commit %.10s takes more than %d MB: %w", c.Hash, maxPatch>>20, ErrTooLarge)
		}

		if f.seen++; f.seen > f.q.Skip+f.q.Limit {
			f.page.AtLeast = true
			return run.ErrStop
		}
		if f.seen > f.q.Skip {
			f.keep(c, patch)
		} else {
			*in.room = answerTexts // the page does not have it
		}
		if last {
			return nil
		}
	}
}

// keep adds a commit to the page, and where its patch says the lines were.
func (f *lineFollower) keep(c Commit, patch []byte) {
	f.page.Commits = append(f.page.Commits, c)

	// The old lines of all hunks lie in [first, last].
	first, last := 0, 0
	for line := range bytes.Lines(patch) {
		text := strings.TrimSuffix(string(line), "\n")
		switch {
		case strings.HasPrefix(text, "--- a/"):
			f.page.From = strings.TrimPrefix(text, "--- a/")
		case strings.HasPrefix(text, "+++ b/"):
			f.page.Paths[c.Hash] = slices.Compact(append(f.page.Paths[c.Hash], strings.TrimPrefix(text, "+++ b/")))

		// Where the lines were before: the next older commit is asked for those.
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

// ParseLines reads "path:first-last", or "path:line".
func ParseLines(text string) (path string, first, last int, ok bool) {
	i := strings.LastIndexByte(text, ':')
	if i <= 0 {
		return "", 0, 0, false
	}

	// The last colon counts, since a path may have some of its own.
	from, to, both := strings.Cut(text[i+1:], "-")
	if !both {
		to = from
	}

	first, err1 := strconv.Atoi(strings.TrimPrefix(from, "L"))
	last, err2 := strconv.Atoi(strings.TrimPrefix(to, "L"))
	return text[:i], first, last, err1 == nil && err2 == nil && first >= 1 && last >= first
}
