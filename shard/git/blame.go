package git

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/shard/git/pack"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// BlameQuery asks which commits wrote the lines of a file.
type BlameQuery struct {
	Commit, Path string
	First, Last  int           // lines, from 1; 0 means the whole file
	Within       time.Duration // time limit if First is set; after it, the result has the lines found so far, and Late is set
	Verbatim     bool          // do not skip the commits listed in .git-blame-ignore-revs of the default branch
}

// BlameRange is a run of lines that one commit wrote.
type BlameRange struct {
	Commit string
	Path   string // path in that commit
	First  int    // first line in the file, from 1
	Lines  int
}

// BlameCommit is a commit of a blame.
type BlameCommit struct {
	Hash, Summary           string
	AuthorName, AuthorEmail string
	AuthorTime              time.Time
	PreviousHash            string // the commit before it that changed the file; may be empty
	PreviousPath            string // path of the file in that commit
	Edge                    bool   // the repository is shallow and lacks its parents, so older commits may have written its lines
}

// blames finds which commits wrote the lines of files.
type blames struct {
	*base
	files  *files
	rules  *rulesReader
	tasks  *run.Tasks          // runs work that continues after its caller has returned
	cached *run.Flights[Blame] // blames of whole files
}

// Blame says which commit wrote each line of a file. The ranges are in the order of lines, and
// neighbours have different commits.
type Blame struct {
	Ranges  []BlameRange
	Commits map[string]BlameCommit // by hash
	Late    bool                   // time ran out before all lines were found: the missing lines are in no range
	Past    int                    // number of lines whose last change an ignored commit made; their range names an earlier commit
}

const (
	blameTime = 28 * time.Second // callers wait at most half a minute
	maxBlame  = 8 << 20          // bytes of the largest file that is blamed whole
)

// Blame finds which commits wrote the lines of a file. It returns ErrTooLarge for a whole file of
// more than maxBlame bytes, which would take too long, and ErrBinary for a binary file. The caller
// must not change the result.
func (h *blames) Blame(ctx context.Context, q BlameQuery) (Blame, error) {
	s, err := h.files.Source(ctx, q.Commit, q.Path, SourceOptions{Lines: 1, MaxBytes: 8000})
	if err != nil {
		return Blame{}, err
	}

	q.Path = s.Path
	switch {
	case s.Binary:
		return Blame{}, fmt.Errorf("%q: %w", q.Path, ErrBinary)
	case q.First == 0 && s.Size > maxBlame:
		return Blame{}, fmt.Errorf("%q is larger than %d MiB: %w", q.Path, maxBlame>>20, ErrTooLarge)
	}

	limited := ctx
	if q.First > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, q.Within)
		defer cancel()
	}
	b, err := h.blame(ctx, limited, q, nil)
	if err != nil || q.Verbatim {
		return b, err
	}
	return h.blameSkippingIgnored(ctx, limited, q, b)
}

// blameSkippingIgnored returns a blame that skips the ignored commits. all is the blame without
// skipping; if no ignored commit is in it, blameSkippingIgnored returns all. limited is ctx with
// the time limit of q.
func (h *blames) blameSkippingIgnored(ctx, limited context.Context, q BlameQuery, all Blame) (Blame, error) {
	r, err := h.rules.rules(ctx)
	if err != nil {
		return Blame{}, err
	}
	ignored := map[string]bool{}
	for id := range all.Commits {
		if r.ignored[id] {
			ignored[id] = true
		}
	}
	if len(ignored) == 0 {
		return all, nil
	}

	// No time is left to skip the ignored commits, so leave out their lines.
	if all.Late {
		all.Ranges = slices.DeleteFunc(all.Ranges, func(r BlameRange) bool { return ignored[r.Commit] })
		return all, nil
	}

	// Give git the whole list, because another ignored commit may have written the lines before.
	skipping, err := h.blame(ctx, limited, q, r.ignored)
	if err != nil {
		return Blame{}, err
	}
	if !skipping.Late {
		skipping.Past = countLinesOf(all, ignored) - countLinesOf(skipping, ignored)
	}
	return skipping, nil
}

// countLinesOf returns how many lines some commits wrote.
func countLinesOf(b Blame, commits map[string]bool) (n int) {
	for _, r := range b.Ranges {
		if commits[r.Commit] {
			n += r.Lines
		}
	}
	return n
}

// blame finds which commits wrote the lines of an existing file, and skips the ignored commits. It
// caches the blame of a whole file. limited is ctx with the time limit of q.
func (h *blames) blame(ctx, limited context.Context, q BlameQuery, ignored map[string]bool) (Blame, error) {
	edge, err := shallowOf(h.dir)
	if err != nil {
		return Blame{}, err
	}
	if q.First > 0 {
		b, err := h.runBlame(limited, q, ignored, edge)
		if limited.Err() != nil && ctx.Err() == nil {
			b.Late, err = true, nil
		}
		return b, err
	}

	key := fmt.Sprint(h.dir, "\x00", q.Commit, q.Path, "\x00", edge.mark(), idsOf(ignored))
	size := func(b Blame) int64 { return int64(300 + 120*len(b.Ranges) + 600*len(b.Commits)) }
	return h.cached.Do(ctx, h.tasks, key, size, func(ctx context.Context) (Blame, error) {
		return h.runBlame(ctx, q, ignored, edge)
	})
}

// idsOf returns the ids as text, sorted, one a line.
func idsOf(ids map[string]bool) string { return boundary(ids).lines() }

// runBlame runs git blame. After an error it returns the error and the lines found so far. edge has
// the commits whose parents are missing.
func (h *blames) runBlame(ctx context.Context, q BlameQuery, ignored map[string]bool, edge boundary) (Blame, error) {
	// In UTF-16, git ends lines elsewhere than the text does; p converts between both.
	p, err := h.files.pieces(ctx, q.Commit, q.Path)
	if err != nil {
		return Blame{}, err
	}
	first, last := 1, len(p)

	c := h.git("blame", "--incremental")
	if q.First > 0 {
		first, last = q.First, q.Last
		from, to := p.gitLines(first, last)
		c.Args = append(c.Args, fmt.Sprintf("-L%d,%d", from, to))
	}
	if len(ignored) > 0 {
		c.Args = append(c.Args, "--ignore-revs-file=/dev/stdin")
		c.Stdin = strings.NewReader(idsOf(ignored))
	}
	c.Args = append(c.Args, q.Commit, "--", q.Path) // a checked id, because blame does not know --end-of-options
	c.Timeout, c.Limit = blameTime, 512<<20

	b := newBlameReader()
	if err = c.Stream(ctx, b.read); err != nil {
		err = fmt.Errorf("blame: %w", err)
	}
	b.mergeRuns()
	p.convertBlame(&b.blame, first, last)
	for id, one := range b.blame.Commits {
		one.Edge = edge[id]
		b.blame.Commits[id] = one
	}
	return b.blame, err
}

// blameReader parses the output of git blame.
type blameReader struct {
	blame Blame
	paths map[string]string // by path as git prints it; each is stored once
	room  *room             // limits the memory of the texts in the result
}

func newBlameReader() *blameReader {
	return &blameReader{blame: Blame{Commits: map[string]BlameCommit{}}, paths: map[string]string{}, room: newRoom()}
}

// read parses runs of lines as git prints them, in no order:
//
//	<commit> <line there> <line here> <count>
//	author Ann                                   (facts, the first time only)
//	filename src/a.go                            (ends the run)
func (b *blameReader) read(r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var current *BlameRange // nil between two runs
	for {
		line, err := readLine(in)
		if err == io.EOF {
			return nil
		}

		if err != nil {
			return err
		}

		f := strings.Fields(line)

		switch {
		case current == nil && len(f) == 4 && pack.IsID(f[0]):
			current = &BlameRange{Commit: f[0]}
			var err1, err2 error
			current.First, err1 = strconv.Atoi(f[2])
			current.Lines, err2 = strconv.Atoi(f[3])
			if err := cmp.Or(err1, err2); err != nil || current.Lines < 1 {
				return fmt.Errorf("git blame said %.80q", line)
			}
		case current == nil:
			return fmt.Errorf("git blame said %.80q", line)
		default:
			b.readField(current, line)
			if strings.HasPrefix(line, "filename ") {
				b.blame.Ranges = append(b.blame.Ranges, *current)
				current = nil
			}
		}
	}
}

// mergeRuns sorts the runs by line, and joins neighbours of the same commit and file.
func (b *blameReader) mergeRuns() {
	runs := b.blame.Ranges

	// Git prints runs commit by commit.
	slices.SortFunc(runs, func(x, y BlameRange) int { return cmp.Compare(x.First, y.First) })
	b.blame.Ranges = nil

	for _, r := range runs {
		if n := len(b.blame.Ranges); n > 0 {
			last := &b.blame.Ranges[n-1]
			if last.Commit == r.Commit && last.Path == r.Path && last.First+last.Lines == r.First {
				last.Lines += r.Lines
				continue
			}
		}
		b.blame.Ranges = append(b.blame.Ranges, r)
	}
}

// readField reads a line with a field of the commit of r, such as its author, or with the path of r.
func (b *blameReader) readField(r *BlameRange, line string) {
	c := b.blame.Commits[r.Commit]
	c.Hash = r.Commit

	key, value, _ := strings.Cut(line, " ")

	switch key {
	case "author":
		c.AuthorName = b.room.shorten(value, maxPerson)
	case "author-mail":
		c.AuthorEmail = b.room.shorten(strings.Trim(value, "<>"), maxPerson)
	case "author-time":
		c.AuthorTime = unixTime(value)
	case "summary":
		c.Summary = b.room.shorten(value, maxSubject)

	case "previous":
		hash, path, _ := strings.Cut(value, " ")
		c.PreviousHash, c.PreviousPath = hash, b.room.shorten(unquote(path), maxPath)

	case "filename":
		// Thousands of runs have the same path.
		if _, known := b.paths[value]; !known {
			b.paths[value] = b.room.shorten(unquote(value), maxPath)
		}
		r.Path = b.paths[value]
	}

	b.blame.Commits[r.Commit] = c
}

// unquote removes the quoting that git applies to paths with control characters, quotes or
// backslashes.
func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	s = s[1 : len(s)-1]

	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}

		// The escape is three octal digits, or a letter.
		i++
		if n, err := strconv.ParseUint(s[i:min(len(s), i+3)], 8, 8); err == nil {
			b.WriteByte(byte(n))
			i += 2
			continue
		}

		if k := strings.IndexByte("abtnvfr", s[i]); k >= 0 {
			b.WriteByte("\a\b\t\n\v\f\r"[k])
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
