package git

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/shard/git/pack"
)

// BlameRange is a run of lines that one commit brought.
type BlameRange struct {
	Commit string
	Path   string // in that commit
	First  int    // line of the file, from 1
	Lines  int
}

// BlameCommit is a commit of a blame.
type BlameCommit struct {
	Hash, Summary           string
	AuthorName, AuthorEmail string
	AuthorTime              time.Time
	PreviousHash            string // where the lines were before; may be empty
	PreviousPath            string
}

// Blame is who wrote each line of a file: ranges in the order of lines,
// neighbours of different commits.
type Blame struct {
	Ranges  []BlameRange
	Commits map[string]BlameCommit
}

const (
	blameTime = 28 * time.Second // who asks waits no longer than half a minute
	maxBlame  = 8 << 20          // bytes of a file
)

// Blame finds who wrote the lines of a file. A file over 8 MiB is ErrTooLarge:
// there is no answer in useful time. A binary one is ErrBinary. The answer is
// not the caller's alone: it must not be changed.
func (h *history) Blame(ctx context.Context, commit, path string) (Blame, error) {
	s, err := h.files.Source(ctx, commit, path, SourceOptions{Lines: 1, MaxBytes: 8000})
	if err != nil {
		return Blame{}, err
	}

	// A look at its beginning is cheap; blame of a file that is no text is not.
	switch {
	case s.Binary:
		return Blame{}, fmt.Errorf("%q: %w", path, ErrBinary)
	case s.Size > maxBlame:
		return Blame{}, fmt.Errorf("%q is larger than %d MiB: %w", path, maxBlame>>20, ErrTooLarge)
	}

	key := fmt.Sprint(h.dir, "\x00", commit, s.Path)
	size := func(b Blame) int64 { return int64(300 + 120*len(b.Ranges) + 600*len(b.Commits)) }
	return h.pool.all.blames.do(ctx, h.tasks, key, size, func(ctx context.Context) (Blame, error) {
		return h.blame(ctx, commit, s.Path)
	})
}

// blame runs git blame.
func (h *history) blame(ctx context.Context, commit, path string) (Blame, error) {
	c := h.git("blame", "--porcelain", commit, "--", path) // a checked id: blame knows no --end-of-options
	c.timeout, c.limit = blameTime, 512<<20

	b := newBlameReader()
	if err := c.stream(ctx, b.read); err != nil {
		return Blame{}, fmt.Errorf("blame: %w", err)
	}
	return b.blame, nil
}

type blameReader struct {
	blame Blame
	paths map[string]string // where a commit last had the lines
	room  *room             // of the texts in the answer
}

func newBlameReader() *blameReader {
	return &blameReader{blame: Blame{Commits: map[string]BlameCommit{}}, paths: map[string]string{}, room: newRoom()}
}

// read parses the porcelain form. Each line of the file comes with a header;
// the facts about a commit come with its first line only:
//
//	<commit> <line in the commit> <line in the file> [<lines of this run>]
//	author Ann
//	...
//	filename src/a.c
//	TAB the line itself
func (b *blameReader) read(r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var at *BlameRange // the line whose header was read
	for {
		line, err := readLine(in)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}

		// A line of the file ends its header; the header begins with the commit.
		switch f := strings.Fields(line); {
		case strings.HasPrefix(line, "\t"):
			if at != nil {
				b.add(*at)
			}
			at = nil
		case len(f) >= 3 && pack.IsID(f[0]):
			first, err := strconv.Atoi(f[2])
			if err != nil {
				return fmt.Errorf("git blame said %.80q", line)
			}
			at = &BlameRange{Commit: f[0], First: first, Lines: 1, Path: b.paths[f[0]]}

		// What stands between them is about the commit.
		case at != nil:
			b.fact(at, line)
		}
	}
}

// add joins a line with those before it where all is the same.
func (b *blameReader) add(r BlameRange) {
	if n := len(b.blame.Ranges); n > 0 {
		last := &b.blame.Ranges[n-1]
		if last.Commit == r.Commit && last.Path == r.Path && last.First+last.Lines == r.First {
			last.Lines++
			return
		}
	}
	b.blame.Ranges = append(b.blame.Ranges, r)
}

// fact takes a line about the commit.
func (b *blameReader) fact(at *BlameRange, line string) {
	c := b.blame.Commits[at.Commit]
	c.Hash = at.Commit

	key, value, _ := strings.Cut(line, " ")

	// Who and when; what came before; where the file was.
	switch key {
	case "author":
		c.AuthorName = b.room.take(value, maxPerson)
	case "author-mail":
		c.AuthorEmail = b.room.take(strings.Trim(value, "<>"), maxPerson)
	case "author-time":
		c.AuthorTime = unixTime(value)
	case "summary":
		c.Summary = b.room.take(value, maxSubject)

	case "previous":
		hash, path, _ := strings.Cut(value, " ")
		c.PreviousHash, c.PreviousPath = hash, b.room.take(unquote(path), maxPath)

	case "filename":
		at.Path = b.room.take(unquote(value), maxPath)
		b.paths[at.Commit] = at.Path
	}

	b.blame.Commits[at.Commit] = c
}

// unquote undoes the quoting that git applies to paths with control
// characters, quotes or backslashes.
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

		// Three octal digits, or a letter.
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
