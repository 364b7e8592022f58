package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/node/lru"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// Changes is how the files of one commit differ from those of another, in
// the order of their paths. Submodules are no files.
type Changes struct {
	Now  []Entry  // files that the other commit does not have so, without their sizes
	Gone []string // paths of the other commit that are not there, or not so
	Cut  bool     // there are more than were asked for: Now and Gone say nothing
}

// comparer compares the trees of commits.
type comparer struct {
	*base
	known *lru.Cache[string, *Changes] // by both commits
}

// Changes compares two commits without reading a file: subtrees that both
// share are not even looked at, so neighbours in history cost next to
// nothing. At most most paths are listed. The answer is not the caller's
// alone: it must not be changed.
func (h *comparer) Changes(ctx context.Context, base, commit string, most int) (*Changes, error) {
	for _, c := range []string{base, commit} {
		if err := checkCommit(c); err != nil {
			return nil, err
		}
	}

	key := fmt.Sprint(base, commit, most)
	if known, ok := h.known.Get(key); ok {
		return known, nil
	}

	// The trees of both commits, side by side.
	d := &differ{most: most}
	err := h.with(ctx, func(c reader) error {
		d.c = c
		was, err := c.rootTree(base)
		if err != nil {
			return err
		}

		is, err := c.rootTree(commit)
		if err != nil {
			return err
		}

		return d.trees(was, is, "", 0)
	})

	// Too many differences: the answer says so and is remembered all the same.
	if errors.Is(err, run.ErrStop) {
		d.out, err = Changes{Cut: true}, nil
	}

	if err != nil {
		return nil, fmt.Errorf("compare trees: %w", err)
	}

	h.known.Put(key, &d.out, 1)
	return &d.out, nil
}

// differ compares trees.
type differ struct {
	c    reader
	most int
	read int // pairs of trees
	out  Changes
}

// trees compares two trees at a path; one of them may be none.
func (d *differ) trees(was, is, path string, depth int) error {
	if was == is {
		return nil
	}

	if depth > run.MaxDepth {
		return run.ErrDeep
	}

	if d.read++; d.read > maxListed {
		return run.ErrStop
	}

	old, err := d.entriesOf(was)
	if err != nil {
		return err
	}

	now, err := d.entriesOf(is)
	if err != nil {
		return err
	}

	// Both are sorted by sortName, so a merge meets each name once.
	for len(old) > 0 || len(now) > 0 {
		order := 0
		switch {
		case len(old) == 0:
			order = 1
		case len(now) == 0:
			order = -1
		default:
			order = strings.Compare(old[0].sortName(), now[0].sortName())
		}

		// What each side has under the lesser name; nothing where it has not.
		var a, b treeEntry
		if order <= 0 {
			a, old = old[0], old[1:]
		}
		if order >= 0 {
			b, now = now[0], now[1:]
		}
		if err := d.entries(a, b, join(path, cmp.Or(a.name, b.name)), depth); err != nil {
			return err
		}
	}
	return nil
}

// entriesOf reads a tree; none has no entries.
func (d *differ) entriesOf(oid string) (all []treeEntry, err error) {
	if oid == "" {
		return nil, nil
	}
	err = d.c.trees([]string{oid}, func(_ int, entries []treeEntry) error {
		all = entries
		return nil
	})
	return all, err
}

// sortName is what git sorts the entries of a tree by.
func (e *treeEntry) sortName() string {
	if e.kind == Dir {
		return e.name + "/"
	}
	return e.name
}

// entries compares what two trees have under one name; one may be nothing.
func (d *differ) entries(a, b treeEntry, path string, depth int) error {
	if a == b {
		return nil
	}
	if a.oid != "" && a.kind.IsBlob() {
		d.out.Gone = append(d.out.Gone, path)
	}
	if b.oid != "" && b.kind.IsBlob() {
		d.out.Now = append(d.out.Now, Entry{Path: path, Kind: b.kind, OID: b.oid, Size: -1})
	}

	if max(len(d.out.Gone), len(d.out.Now)) > d.most {
		return run.ErrStop
	}

	// Directories are compared further down; a side that is none has nothing.
	var was, is string
	if a.kind == Dir {
		was = a.oid
	}
	if b.kind == Dir {
		is = b.oid
	}
	return d.trees(was, is, path, depth+1)
}

// Nearest finds which of some commits is closest in time to another, the
// first of those that are equally close: what was committed at about the same
// time has most files in common. It is -1 when the mirror has none of them.
func (h *comparer) Nearest(ctx context.Context, commit string, among []string) (int, error) {
	best, distance := -1, int64(0)
	err := h.with(ctx, func(c reader) error {
		at, ok, err := c.committed(commit)
		if err != nil || !ok {
			return err
		}

		for i, other := range among {
			// Nothing is closer than the commit itself.
			if other == commit {
				best = i
				return nil
			}

			t, ok, err := c.committed(other)
			if err != nil {
				return err
			}

			// One that the mirror has not tells no time, and is passed over.
			if d := max(t-at, at-t); ok && (best < 0 || d < distance) {
				best, distance = i, d
			}
		}
		return nil
	})
	return best, err
}
