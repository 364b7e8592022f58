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

// Changes is the difference between the files of two commits, in the order of their paths.
// Submodules are not files.
type Changes struct {
	Now  []Entry  // files that are new or different in the second commit, without sizes
	Gone []string // paths of files in the first commit that are missing or different in the second
	Cut  bool     // there are more changes than requested, so Now and Gone are empty
}

// comparer compares the trees of commits.
type comparer struct {
	*base
	cached *lru.Cache[string, *Changes] // by the ids of both commits
}

// Changes compares two commits, first base and then commit, without reading files. It skips
// subtrees that both share, so comparing neighbours in history is fast. If there are more than
// maxPaths paths, the result only has Cut set. The caller must not change the result.
func (h *comparer) Changes(ctx context.Context, base, commit string, maxPaths int) (*Changes, error) {
	for _, c := range []string{base, commit} {
		if err := checkCommit(c); err != nil {
			return nil, err
		}
	}

	key := fmt.Sprint(base, commit, maxPaths)
	if known, ok := h.cached.Get(key); ok {
		return known, nil
	}

	d := &differ{maxPaths: maxPaths}
	err := h.with(ctx, func(c reader) error {
		d.c = c
		oldTree, err := c.rootTree(base)
		if err != nil {
			return err
		}

		newTree, err := c.rootTree(commit)
		if err != nil {
			return err
		}

		return d.compareTrees(oldTree, newTree, "", 0)
	})

	// Too many changes are a valid result.
	if errors.Is(err, run.ErrStop) {
		d.out, err = Changes{Cut: true}, nil
	}

	if err != nil {
		return nil, fmt.Errorf("compare trees: %w", err)
	}

	h.cached.Put(key, &d.out, 1)
	return &d.out, nil
}

// differ compares trees.
type differ struct {
	c        reader
	maxPaths int
	compared int // number of pairs of trees compared so far
	out      Changes
}

// compareTrees compares two trees at a path, given by their ids, and adds their differences to d.out.
// The id "" stands for a missing tree. It returns run.ErrStop if there are too many changes.
func (d *differ) compareTrees(oldTree, newTree, path string, depth int) error {
	if oldTree == newTree {
		return nil
	}

	if depth > run.MaxDepth {
		return run.ErrDeep
	}

	if d.compared++; d.compared > maxListed {
		return run.ErrStop
	}

	old, err := d.readEntries(oldTree)
	if err != nil {
		return err
	}

	now, err := d.readEntries(newTree)
	if err != nil {
		return err
	}

	// Both are sorted by sortName: merge them.
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

		// Take the entry with the smaller name, from both sides if both have it.
		var a, b treeEntry
		if order <= 0 {
			a, old = old[0], old[1:]
		}
		if order >= 0 {
			b, now = now[0], now[1:]
		}
		if err := d.compareEntries(a, b, join(path, cmp.Or(a.name, b.name)), depth); err != nil {
			return err
		}
	}
	return nil
}

// readEntries reads a tree. A missing tree has no entries.
func (d *differ) readEntries(oid string) (all []treeEntry, err error) {
	if oid == "" {
		return nil, nil
	}
	err = d.c.trees([]string{oid}, func(_ int, entries []treeEntry) error {
		all = entries
		return nil
	})
	return all, err
}

// sortName returns the key by which git sorts the entries of a tree.
func (e *treeEntry) sortName() string {
	if e.kind == Dir {
		return e.name + "/"
	}
	return e.name
}

// compareEntries compares the entries with one name in two trees, of which one may be missing, and
// adds their differences to d.out.
func (d *differ) compareEntries(a, b treeEntry, path string, depth int) error {
	if a == b {
		return nil
	}
	if a.oid != "" && a.kind.IsBlob() {
		d.out.Gone = append(d.out.Gone, path)
	}
	if b.oid != "" && b.kind.IsBlob() {
		d.out.Now = append(d.out.Now, Entry{Path: path, Kind: b.kind, OID: b.oid, Size: -1})
	}

	if max(len(d.out.Gone), len(d.out.Now)) > d.maxPaths {
		return run.ErrStop
	}

	// Compare directories recursively. If only one side is a directory, the other counts as empty.
	var oldTree, newTree string
	if a.kind == Dir {
		oldTree = a.oid
	}
	if b.kind == Dir {
		newTree = b.oid
	}
	return d.compareTrees(oldTree, newTree, path, depth+1)
}

// Nearest returns the index of the commit in among whose time is closest to that of commit, which
// therefore probably has most files in common with it; the first if several are equally close. It
// returns -1 if the mirror lacks commit or all commits in among.
func (h *comparer) Nearest(ctx context.Context, commit string, among []string) (int, error) {
	best, distance := -1, int64(0)
	err := h.with(ctx, func(c reader) error {
		at, ok, err := c.commitSeconds(commit)
		if err != nil || !ok {
			return err
		}

		for i, other := range among {
			if other == commit {
				best = i
				return nil
			}

			t, ok, err := c.commitSeconds(other)
			if err != nil {
				return err
			}

			// Skip a commit that the mirror lacks: it has no time.
			if d := max(t-at, at-t); ok && (best < 0 || d < distance) {
				best, distance = i, d
			}
		}
		return nil
	})
	return best, err
}
