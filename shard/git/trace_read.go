package git

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/shard/charset"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// changeReader finds changes that git misses. Git compares the bytes of files, so it misses a text
// in UTF-16 or UTF-32, and takes a byte order mark for a part of the first line. It does not
// compare merges at all.
type changeReader struct {
	with  func(use func(reader) error) error
	q     TraceQuery
	line  func(line string) bool // nil if a single line cannot match
	coded map[string]bool        // by id of a blob: whether it begins with a byte order mark

	judged map[[2]string]bool      // commits and files of the batch for which git's answer does not count
	paths  map[string][]string     // files with the change, by commit
	lines  map[string]ChangedLines // by commit
	unread []string                // paths of files that are too large, sorted
}

const (
	mostRead  = 16 << 20 // greatest size in bytes of a file that is read
	mostCoded = 200_000  // blobs whose encoding is cached
)

func newChangeReader(q TraceQuery) *changeReader {
	return &changeReader{q: q, line: q.lineMatcher(), coded: map[string]bool{}, paths: map[string][]string{}, lines: map[string]ChangedLines{}}
}

// readBatch reads what a batch of commits changed; for a merge, the files that differ from all its
// parents.
func (h *traces) readBatch(ctx context.Context, r *changeReader, batch []string) error {
	c := h.changedFiles(r.q, batch, "-c", "-z", "--raw")
	r.judged = map[[2]string]bool{}
	r.with = func(use func(reader) error) error { return h.with(ctx, use) }
	return differences(ctx, c, r.file)
}

// file reads all versions of one changed file. Its entry has a colon for each parent, the modes of
// the file in the parents and in the commit, and its ids in the same order:
//
//	:100644 100644 <oid> <oid> M
//	::100644 100644 100644 <oid> <oid> <oid> MM
func (r *changeReader) file(commit, entry, path string) error {
	fields := strings.Fields(strings.TrimLeft(entry, ":"))
	sides := len(fields) / 2
	if len(fields) != 2*sides+1 { // more parents than fit into a record
		r.tooLarge(path)
		return nil
	}
	ids := fields[sides : 2*sides]
	read := sides > 2 // a merge
	for i, mode := range fields[:sides] {
		if mode == "160000" || mode == "000000" {
			ids[i] = "" // a commit of another repository, or no file
		} else if !read {
			coded, err := r.isCoded(ids[i])
			if err != nil {
				return err
			}
			read = coded
		}
	}
	if !read {
		return nil
	}

	r.judged[[2]string{commit, path}] = true
	texts := make([][]byte, sides)
	for i, id := range ids {
		text, whole, err := r.text(id)
		if err != nil {
			return err
		}
		if !whole {
			r.tooLarge(path)
			return nil
		}
		texts[i] = text
	}
	r.compare(commit, path, texts[:sides-1], texts[sides-1])
	return nil
}

// isCoded reports whether a blob begins with a byte order mark.
func (r *changeReader) isCoded(id string) (coded bool, err error) {
	coded, known := r.coded[id]
	if known {
		return coded, nil
	}
	err = r.contents(id, func(_ int64, in io.Reader) error {
		var head [4]byte
		n, _ := io.ReadFull(in, head[:]) // a shorter blob gives fewer bytes
		coded = charset.Of(head[:n]) != charset.None
		return nil
	})
	if len(r.coded) == mostCoded {
		clear(r.coded)
	}
	r.coded[id] = coded
	return coded, err
}

// text reads and decodes a blob; whole is false if it is too large.
func (r *changeReader) text(id string) (text []byte, whole bool, err error) {
	if id == "" {
		return nil, true, nil
	}
	err = r.contents(id, func(size int64, in io.Reader) error {
		if whole = size <= mostRead; !whole {
			return nil
		}
		content, err := io.ReadAll(in)
		text, _ = charset.Decode(nil, content)
		return err
	})
	return text, whole, err
}

// contents calls read with the content of a blob and its size in bytes.
func (r *changeReader) contents(id string, read func(size int64, in io.Reader) error) error {
	err := r.with(func(c reader) error {
		return c.Contents(id, func(info run.ObjectInfo, in io.Reader) error { return read(info.Size, in) })
	})
	if err != nil {
		return fmt.Errorf("read blob %s: %w", id, err)
	}
	return nil
}

func (r *changeReader) tooLarge(path string) {
	if i, known := slices.BinarySearch(r.unread, path); !known {
		r.unread = slices.Insert(r.unread, i, path)
	}
}

// compare records a changed file if the commit changed how often, or in which lines, the query
// matches in it. For a merge the file must differ from that of each parent.
func (r *changeReader) compare(commit, path string, before [][]byte, now []byte) {
	count, lines := r.matches(now)
	for _, text := range before {
		if n, old := r.matches(text); n == count && (r.q.Text != "" || slices.Equal(old, lines)) {
			return
		}
	}
	if len(r.paths[commit]) < tracePaths {
		r.paths[commit] = append(r.paths[commit], path)
	}

	_, old := r.matches(before[0])
	c := r.lines[commit]
	c.add("-", missingLines(old, lines))
	c.add("+", missingLines(lines, old))
	r.lines[commit] = c
}

// matches counts the occurrences in a text, and lists its matching lines.
func (r *changeReader) matches(text []byte) (n int, lines []string) {
	if r.q.Text != "" {
		n = bytes.Count(bytes.ReplaceAll(text, []byte("\r\n"), newline), []byte(r.q.Text))
	}
	if r.q.Text != "" && n == 0 || r.line == nil {
		return n, nil
	}
	for line := range bytes.Lines(text) {
		if line := string(bytes.TrimSuffix(line, newline)); r.line(line) {
			lines = append(lines, line)
		}
	}
	return n, lines
}

// missingLines lists the lines of a that b lacks, or contains less often.
func missingLines(a, b []string) (out []string) {
	often := map[string]int{}
	for _, line := range b {
		often[line]++
	}
	for _, line := range a {
		if often[line]--; often[line] < 0 {
			out = append(out, line)
		}
	}
	return out
}

// add adds lines with the sign + or -.
func (c *ChangedLines) add(sign string, lines []string) {
	switch sign {
	case "+":
		c.Added += len(lines)
	default:
		c.Removed += len(lines)
	}
	for _, line := range lines[:min(len(lines), max(0, tracedLines-len(c.Lines)))] {
		c.Lines = append(c.Lines, sign+line[:min(len(line), tracedLength)])
	}
}
