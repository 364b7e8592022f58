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
)

// BlameLines finds who wrote some lines of a file, as Blame does, within a
// time: lines whose commit was not found until then are in no range, and late
// is set.
func (h *history) BlameLines(ctx context.Context, commit, path string, first, last int, within time.Duration) (b Blame, late bool, err error) {
	if err := checkCommit(commit); err != nil {
		return b, false, err
	}

	if path, err = cleanPath(path); err != nil {
		return b, false, err
	}

	looked, cancel := context.WithTimeout(ctx, within)
	defer cancel()

	c := h.git("blame", "--incremental", fmt.Sprintf("-L%d,%d", first, last), commit, "--", path) // a checked id: blame knows no --end-of-options
	c.timeout, c.limit = within+time.Second, 64<<20
	r := newBlameReader()
	err = c.stream(looked, r.readIncremental)

	// Out of time: what was found until then is an answer.
	if looked.Err() != nil && ctx.Err() == nil {
		late, err = true, nil
	}

	if err != nil {
		return b, false, fmt.Errorf("blame: %w", err)
	}

	r.join()
	return r.blame, late, nil
}

// readIncremental parses runs of lines as git finds them, in no order:
//
//	<commit> <line there> <line here> <count>
//	author Ann                                   (facts, the first time only)
//	filename src/a.go                            (ends the run)
func (b *blameReader) readIncremental(r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var at *BlameRange
	for {
		line, err := readLine(in)
		if err == io.EOF {
			return nil
		}

		if err != nil {
			return err
		}

		f := strings.Fields(line)

		// A run: its first line says where it is, its last line names the file.
		switch {
		case at == nil && len(f) == 4 && pack.IsID(f[0]):
			at = &BlameRange{Commit: f[0]}
			var err1, err2 error
			at.First, err1 = strconv.Atoi(f[2])
			at.Lines, err2 = strconv.Atoi(f[3])
			if err := cmp.Or(err1, err2); err != nil {
				return fmt.Errorf("git blame said %.80q", line)
			}
		case at == nil:
			return fmt.Errorf("git blame said %.80q", line)
		default:
			// A fact about the commit, which ends the run if it is the file's name.
			b.fact(at, line)
			if strings.HasPrefix(line, "filename ") {
				b.blame.Ranges = append(b.blame.Ranges, *at)
				at = nil
			}
		}
	}
}

// join puts runs in the order of lines and makes one of neighbours that are of
// the same commit and file.
func (b *blameReader) join() {
	runs := b.blame.Ranges

	// Git tells runs as it finds them, commit by commit.
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
