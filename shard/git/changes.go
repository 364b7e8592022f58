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
	Now  []Entry  // files that the other commit lacks or has differently, without sizes
	Gone []string // paths of the other commit that are missing or different
	Cut  bool     // there are more changes than requested, so Now and Gone are empty
}

// comparer compares the trees of commits.
type comparer struct {
	*base
	known *lru.Cache[string, *Changes] // by the ids of both commits
}

// Changes compares two commits without reading files. It skips subtrees that both share, so
// comparing neighbours in history costs little. It lists at most most paths. The result is shared:
// the caller must not change it.
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

	// Walk the trees of both commits side by side.
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

	// Too many differences are a valid result, which is cached too.
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
	read int // number of pairs of trees
	out  Changes
}

// trees compares two trees at a path. One of them may be missing.
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

		// Take what each side has under the smaller name.
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

// entriesOf reads a tree. A missing tree has no entries.
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

// sortName returns the key by which git sorts the entries of a tree.
func (e *treeEntry) sortName() string {
	if e.kind == Dir {
		return e.name + "/"
	}
	return e.name
}

// entries compares the entries of two trees with one name. One may be missing.
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

	// Compare directories recursively. If only one side is a directory, the other counts as empty.
	var was, is string
	if a.kind == Dir {
		was = a.oid
	}
	if b.kind == Dir {
		is = b.oid
	}
	return d.trees(was, is, path, depth+1)
}

// Nearest returns the index of the commit of among that is closest in time to another, the first if
// several are equally close: commits of about the same time have most files in common. It returns
// -1 if the mirror has none of them.
func (h *comparer) Nearest(ctx context.Context, commit string, among []string) (int, error) {
	best, distance := -1, int64(0)
	err := h.with(ctx, func(c reader) error {
		at, ok, err := c.commitSeconds(commit)
		if err != nil || !ok {
			return err
		}

		for i, other := range among {
			// Nothing is closer than the commit itself.
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
