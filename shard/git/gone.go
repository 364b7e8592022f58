package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/shoalsearch/shoal/node/lru"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// removalTime is the time limit for searching the history for one path. It is short, because the
// caller could already tell the user that the path is missing.
const removalTime = 2 * time.Second

// maxRenameCandidates limits how many new files of a commit git compares with as many removed files, to find
// one that was renamed.
const maxRenameCandidates = "-l400"

// Gone says how a path left the history.
type Gone struct {
	Commit  Commit // the commit that removed it; without a Hash, no commit had it
	Last    string // the parent of Commit that still had it
	Kind    Kind   // its kind there
	Renamed string // new name of a file that Commit renamed; "" if there is none, or it was not found in time
	Late    bool   // time ran out, and nothing is known
}

// removals finds the commits that removed paths.
type removals struct {
	*logs
	files  *files
	cached *lru.Cache[string, Gone] // by commit and path
}

// Gone finds the newest commit, in the history of another, that removed a path which does not exist
// any more. It uses the history of git log for the path: if a merge has the path like one of its
// parents, it follows only that parent. It takes at most two seconds; Late reports that it found
// nothing in that time.
func (h *removals) Gone(ctx context.Context, commit, path string) (Gone, error) {
	return h.goneWithin(ctx, removalTime, commit, path)
}

// goneWithin is Gone with a time limit.
func (h *removals) goneWithin(ctx context.Context, limit time.Duration, commit, path string) (Gone, error) {
	if err := checkCommit(commit); err != nil {
		return Gone{}, err
	}
	path, err := cleanPath(path)
	if err != nil || path == "" {
		return Gone{}, err // every commit has the root
	}

	key := fmt.Sprint(commit, "\x00", path)
	if known, ok := h.cached.Get(key); ok {
		return known, nil
	}

	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	g, err := h.findRemoval(limited, commit, path)

	// If only the time limit of this search is over, return a removal that was found. Do not cache
	// it, because with more time the search may find the new name.
	if limited.Err() != nil && ctx.Err() == nil {
		g.Late = g.Last == ""
		return g, nil
	}
	if err != nil {
		return Gone{}, fmt.Errorf("look for a path that is gone: %w", err)
	}
	h.cached.Put(key, g, 1)
	return g, nil
}

// findRemoval does the work of Gone without a cache and a time limit. With an error it also returns
// what it has found so far.
func (h *removals) findRemoval(ctx context.Context, commit, path string) (g Gone, err error) {
	// The newest change of a missing path is its removal: the walk skips commits whose parents do
	// not have it either.
	page, err := h.newestChange(ctx, commit, path)
	if err != nil || len(page.Commits) == 0 {
		return g, err
	}

	// If the path exists after that change, it is not gone.
	removal := page.Commits[0]
	if _, there, err := h.kindAt(ctx, removal.Hash, path); there || err != nil {
		return g, err
	}

	// Find a parent that had the path. The walk would have gone on to a parent that lacked it.
	for _, parent := range removal.Parents {
		kind, there, err := h.kindAt(ctx, parent, path)
		if err != nil {
			return g, err
		}
		if there {
			g = Gone{Commit: removal, Last: parent, Kind: kind}
			break
		}
	}

	if g.Last != "" && g.Kind.IsBlob() {
		g.Renamed, err = h.findNewName(ctx, g.Last, removal.Hash, path)
	}
	return g, err
}

// kindAt returns the kind of a path in a commit, and whether it exists.
func (h *removals) kindAt(ctx context.Context, commit, path string) (kind Kind, there bool, err error) {
	e, err := h.files.Stat(ctx, commit, path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotDir) {
		return kind, false, nil
	}
	return e.Kind, err == nil, err
}

// newestChange returns a page with the newest commit that changed a path.
func (h *removals) newestChange(ctx context.Context, commit, path string) (LogPage, error) {
	q := LogQuery{Commit: commit, Path: path, Limit: 1}
	args, err := q.arguments()
	if err != nil {
		return LogPage{}, err
	}
	return h.page(ctx, q, args)
}

// findNewName returns the new name of a file that a commit renamed; "" if it removed the file.
func (h *removals) findNewName(ctx context.Context, parent, commit, path string) (to string, err error) {
	c := h.git("diff-tree", "-r", "-z", "-M", maxRenameCandidates, "--raw", "--diff-filter=R", "--no-ext-diff", "--no-textconv", "--end-of-options", parent, commit)
	c.Timeout, c.Limit = removalTime+time.Second, 4<<30

	// Each entry has the old name and the new one after it.
	err = c.Stream(ctx, func(r io.Reader) error {
		in := newRecords(r)
		for {
			if _, err := in.readField(maxField); err != nil {
				return ignoreEOF(err)
			}
			old, err := in.readInnerField(maxPath)
			if err != nil {
				return err
			}
			now, err := in.readInnerField(maxPath)
			if err != nil {
				return err
			}
			if old == path {
				to = now
				return run.ErrStop
			}
		}
	})
	return to, err
}
