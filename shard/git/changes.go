package git

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Changes is how the files of one commit differ from those of another, in
// the order of their paths. Submodules are no files.
type Changes struct {
	Now  []Entry  // files that the other commit does not have so, with their sizes
	Gone []string // paths of the other commit that are not there, or not so
	Cut  bool     // there are more than were asked for: Now and Gone say nothing
}

// Changes compares two commits without reading a file: subtrees that both
// share are not even looked at, so neighbours in history cost next to
// nothing. At most most paths are listed.
func (m *Mirror) Changes(ctx context.Context, base, commit string, most int) (Changes, error) {
	for _, c := range []string{base, commit} {
		if err := checkCommit(c); err != nil {
			return Changes{}, err
		}
	}
	var out Changes
	if base == commit {
		return out, nil
	}
	c := m.git("diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", "--end-of-options", base, commit, "--")
	c.limit = 1 << 30
	err := c.stream(ctx, func(r io.Reader) error {
		in := bufio.NewReaderSize(r, 64<<10)
		for {
			cut, err := out.read(in, most)
			if err == io.EOF {
				return nil
			}
			if cut {
				out = Changes{Cut: true}
				return errStop
			}
			if err != nil {
				return err
			}
		}
	})
	if err != nil {
		return Changes{}, fmt.Errorf("compare trees: %w", err)
	}
	err = m.pool.with(ctx, func(c *catFile) error {
		return c.sizes(len(out.Now), func(i int) (string, *int64) { return out.Now[i].OID, &out.Now[i].Size })
	})
	return out, err
}

// read takes one path: ":100644 100644 <oid> <oid> M" NUL path NUL.
func (d *Changes) read(in *bufio.Reader, most int) (cut bool, err error) {
	head, err := in.ReadString(0)
	if err != nil {
		return false, err
	}
	f := strings.Fields(strings.TrimRight(head, "\x00"))
	path, err := in.ReadString(0)
	if err != nil || len(f) != 5 || !strings.HasPrefix(f[0], ":") {
		return false, fmt.Errorf("git diff-tree said %.80q", head)
	}
	path = path[:len(path)-1]
	was, err := modeOf(f[0][1:])
	if err != nil {
		return false, err
	}
	is, err := modeOf(f[1])
	if err != nil {
		return false, err
	}
	if was != 0 && kindOfMode(was).IsBlob() {
		d.Gone = append(d.Gone, path)
	}
	if is != 0 && kindOfMode(is).IsBlob() {
		d.Now = append(d.Now, Entry{Path: path, Kind: kindOfMode(is), OID: f[3], Size: -1})
	}
	return max(len(d.Gone), len(d.Now)) > most, nil
}

// modeOf reads a mode; 0 is nothing there.
func modeOf(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil {
		return 0, fmt.Errorf("git diff-tree said %.80q", s)
	}
	return n, nil
}

// Nearest tells which of some commits is closest in time to another, the
// first of those that are equally close: what was committed at about the same
// time has most files in common. It is -1 when the mirror has none of them.
func (m *Mirror) Nearest(ctx context.Context, commit string, among []string) (int, error) {
	best, distance := -1, int64(0)
	err := m.pool.with(ctx, func(c *catFile) error {
		at, ok, err := c.committed(commit)
		if err != nil || !ok {
			return err
		}
		for i, other := range among {
			if other == commit {
				best = i
				return nil
			}
			t, ok, err := c.committed(other)
			if err != nil {
				return err
			}
			if d := max(t-at, at-t); ok && (best < 0 || d < distance) {
				best, distance = i, d
			}
		}
		return nil
	})
	return best, err
}

// committed is the time of a commit in seconds; ok is false when there is no
// such commit.
func (c *catFile) committed(commit string) (seconds int64, ok bool, err error) {
	if err := checkCommit(commit); err != nil {
		return 0, false, err
	}
	err = c.contents(commit, func(info objectInfo, r io.Reader) error {
		if info.kind != "commit" {
			return nil
		}
		head, err := io.ReadAll(io.LimitReader(r, 64<<10))
		if err != nil {
			return err
		}
		for line := range bytes.Lines(head) {
			rest, found := bytes.CutPrefix(line, []byte("committer "))
			if !found {
				if len(line) == 1 {
					return nil // the end of the head
				}
				continue
			}
			// ... <e-mail> seconds zone
			if f := bytes.Fields(rest[bytes.LastIndexByte(rest, '>')+1:]); len(f) > 0 {
				seconds = unix(string(f[0])).Unix()
				ok = true
			}
			return nil
		}
		return nil
	})
	return seconds, ok, err
}
