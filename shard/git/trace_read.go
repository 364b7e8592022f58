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
	with  func(use func(reader) error) error // calls use with a reader of objects
	q     TraceQuery
	line  func(line string) bool // result of lineMatcher: whether a line matches the query
	coded map[string]bool        // by id of a blob: whether it begins with a byte order mark

	gitIgnored map[[2]string]bool      // commits and files of the batch for which git's answer does not count
	paths      map[string][]string     // by id of a commit: its files with a selected change
	lines      map[string]ChangedLines // by id of a commit
	unread     []string                // paths of files that are too large, sorted
}

const (
	maxReadFile   = 16 << 20 // greatest size in bytes of a file that is read
	maxCodedBlobs = 200_000  // blobs whose encoding is cached
)

func newChangeReader(q TraceQuery) *changeReader {
	return &changeReader{q: q, line: q.lineMatcher(), coded: map[string]bool{}, paths: map[string][]string{}, lines: map[string]ChangedLines{}}
}

// readBatch lets r read the files that a batch of commits changed; for a merge, those that differ
// from the files of all its parents.
func (h *traces) readBatch(ctx context.Context, r *changeReader, batch []string) error {
	c := h.diffCommand(r.q, batch, "-c", "-z", "--raw")
	r.gitIgnored = map[[2]string]bool{}
	r.with = func(use func(reader) error) error { return h.with(ctx, use) }
	return readDifferences(ctx, c, r.readFile)
}

// readFile compares all versions of one changed file, if git cannot: in a merge, or if a version
// begins with a byte order mark. Its entry has a colon for each parent, the modes of the file in
// the parents and in the commit, and its ids in the same order:
//
//	:100644 100644 <oid> <oid> M
//	::100644 100644 100644 <oid> <oid> <oid> MM
func (r *changeReader) readFile(commit, entry, path string) error {
	fields := strings.Fields(strings.TrimLeft(entry, ":"))
	sides := len(fields) / 2
	if len(fields) != 2*sides+1 { // more parents than fit into a record
		r.addUnread(path)
		return nil
	}
	ids := fields[sides : 2*sides]
	needed := sides > 2 // the commit is a merge, which git does not compare
	for i, mode := range fields[:sides] {
		if mode == "160000" || mode == "000000" {
			ids[i] = "" // a commit of another repository, or no file
		} else if !needed {
			coded, err := r.isCoded(ids[i])
			if err != nil {
				return err
			}
			needed = coded
		}
	}
	if !needed {
		return nil
	}

	r.gitIgnored[[2]string{commit, path}] = true
	texts := make([][]byte, sides)
	for i, id := range ids {
		text, whole, err := r.readText(id)
		if err != nil {
			return err
		}
		if !whole {
			r.addUnread(path)
			return nil
		}
		texts[i] = text
	}
	r.addIfChanged(commit, path, texts[:sides-1], texts[sides-1])
	return nil
}

// isCoded reports whether a blob begins with a byte order mark.
func (r *changeReader) isCoded(id string) (coded bool, err error) {
	coded, known := r.coded[id]
	if known {
		return coded, nil
	}
	err = r.withContent(id, func(_ int64, in io.Reader) error {
		var head [4]byte
		n, _ := io.ReadFull(in, head[:]) // a shorter blob gives fewer bytes
		coded = charset.Of(head[:n]) != charset.None
		return nil
	})
	if len(r.coded) == maxCodedBlobs {
		clear(r.coded)
	}
	r.coded[id] = coded
	return coded, err
}

// readText reads a blob and converts it to UTF-8; whole is false if it is too large. The id ""
// means no text.
func (r *changeReader) readText(id string) (text []byte, whole bool, err error) {
	if id == "" {
		return nil, true, nil
	}
	err = r.withContent(id, func(size int64, in io.Reader) error {
		if whole = size <= maxReadFile; !whole {
			return nil
		}
		content, err := io.ReadAll(in)
		text, _ = charset.Decode(nil, content)
		return err
	})
	return text, whole, err
}

// withContent calls read with the content of a blob, and its size in bytes.
func (r *changeReader) withContent(id string, read func(size int64, in io.Reader) error) error {
	err := r.with(func(c reader) error {
		return c.Contents(id, func(info run.ObjectInfo, in io.Reader) error { return read(info.Size, in) })
	})
	if err != nil {
		return fmt.Errorf("read blob %s: %w", id, err)
	}
	return nil
}

// addUnread adds a path to r.unread.
func (r *changeReader) addUnread(path string) {
	if i, known := slices.BinarySearch(r.unread, path); !known {
		r.unread = slices.Insert(r.unread, i, path)
	}
}

// addIfChanged adds a file to r.paths and r.lines if the commit changed how often, or in which lines,
// the query matches in it. before has the text of the file in each parent, and the matches must
// differ from those in all parents.
func (r *changeReader) addIfChanged(commit, path string, before [][]byte, now []byte) {
	count, lines := r.findMatches(now)
	for _, text := range before {
		if n, old := r.findMatches(text); n == count && (r.q.Text != "" || slices.Equal(old, lines)) {
			return
		}
	}
	if len(r.paths[commit]) < tracePaths {
		r.paths[commit] = append(r.paths[commit], path)
	}

	_, old := r.findMatches(before[0])
	c := r.lines[commit]
	c.addLines("-", missingLines(old, lines))
	c.addLines("+", missingLines(lines, old))
	r.lines[commit] = c
}

// findMatches counts the occurrences of the query's text in a file, if it has one, and lists the
// matching lines.
func (r *changeReader) findMatches(text []byte) (n int, lines []string) {
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
	unpaired := map[string]int{} // how many of this line in b have no partner in a so far
	for _, line := range b {
		unpaired[line]++
	}
	for _, line := range a {
		if unpaired[line]--; unpaired[line] < 0 {
			out = append(out, line)
		}
	}
	return out
}

// addLines counts lines with the sign + or -, and lists the first tracedLines.
func (c *ChangedLines) addLines(sign string, lines []string) {
	if sign == "+" {
		c.Added += len(lines)
	} else {
		c.Removed += len(lines)
	}
	for _, line := range lines[:min(len(lines), max(0, tracedLines-len(c.Lines)))] {
		c.Lines = append(c.Lines, sign+line[:min(len(line), tracedLength)])
	}
}
