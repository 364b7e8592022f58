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

// goneTime is how long a history is looked through for one path: somebody waits who
// has been told already that it is not there.
const goneTime = 2 * time.Second

// goneNames is how many files of a commit that are new are compared with as many
// that are gone, to find one that has another name now.
const goneNames = "-l400"

// Gone is how a path left a history.
type Gone struct {
	Commit  Commit // that removed it; without a Hash: no commit had it
	Last    string // the parent of Commit that had it still
	Kind    Kind   // what it was there
	Renamed string // where Commit moved a file; "" for nowhere, and where that was not found in time
	Late    bool   // time ran out, and nothing is known
}

// removals finds where paths left the history.
type removals struct {
	*logs
	files *files
	known *lru.Cache[string, Gone] // by commit and path
}

// Gone finds the newest commit in the history of another that removed a path which
// is not there any more. The history is that of git log for the path: where a merge
// has the path like one of its sides, only that side is looked at. It takes two
// seconds at most: that nothing was found by then is told by Late.
func (h *removals) Gone(ctx context.Context, commit, path string) (Gone, error) {
	return h.goneIn(ctx, goneTime, commit, path)
}

// goneIn is Gone with a time of its own for looking.
func (h *removals) goneIn(ctx context.Context, most time.Duration, commit, path string) (Gone, error) {
	if err := checkCommit(commit); err != nil {
		return Gone{}, err
	}
	path, err := cleanPath(path)
	if err != nil || path == "" {
		return Gone{}, err // the root is in every commit
	}

	key := fmt.Sprint(commit, "\x00", path)
	if known, ok := h.known.Get(key); ok {
		return known, nil
	}

	looked, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	g, err := h.lookForGone(looked, commit, path)

	// The time for looking was up, not the caller's. A removal that was found is an answer,
	// and is not kept: the next one who asks may learn where the file went.
	if looked.Err() != nil && ctx.Err() == nil {
		g.Late = g.Last == ""
		return g, nil
	}
	if err != nil {
		return Gone{}, fmt.Errorf("look for a path that is gone: %w", err)
	}
	h.known.Put(key, g, 1)
	return g, nil
}

// lookForGone is Gone of what is checked. With an error it has what was found before.
func (h *removals) lookForGone(ctx context.Context, commit, path string) (g Gone, err error) {
	// Of a path that is not there the newest change is its removal: the walk passes over
	// commits that have as little of it as their parents.
	page, err := h.newestChange(ctx, commit, path)
	if err != nil || len(page.Commits) == 0 {
		return g, err
	}

	// Somebody asked of a path that is there.
	removal := page.Commits[0]
	if _, there, err := h.kindAt(ctx, removal.Hash, path); there || err != nil {
		return g, err
	}

	// All parents had it, or the walk would have gone on to the one that had not.
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
		g.Renamed, err = h.renamed(ctx, g.Last, removal.Hash, path)
	}
	return g, err
}

// kindAt is what a commit has at a path, and whether it has it.
func (h *removals) kindAt(ctx context.Context, commit, path string) (kind Kind, there bool, err error) {
	e, err := h.files.Stat(ctx, commit, path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotDir) {
		return kind, false, nil
	}
	return e.Kind, err == nil, err
}

// newestChange is the newest commit that changed a path, as a page of one.
func (h *removals) newestChange(ctx context.Context, commit, path string) (LogPage, error) {
	q := LogQuery{Commit: commit, Path: path, Limit: 1}
	args, err := q.arguments()
	if err != nil {
		return LogPage{}, err
	}
	return h.page(ctx, q, args)
}

// renamed is the new name of a file that a commit has under another one than its
// parent; "" where it has it no more.
func (h *removals) renamed(ctx context.Context, parent, commit, path string) (to string, err error) {
	c := h.git("diff-tree", "-r", "-z", "-M", goneNames, "--raw", "--diff-filter=R", "--no-ext-diff", "--no-textconv", "--end-of-options", parent, commit)
	c.Timeout, c.Limit = goneTime+time.Second, 4<<30

	// Each entry is followed by the old name and the new one.
	err = c.Stream(ctx, func(r io.Reader) error {
		in := newRecords(r)
		for {
			if _, err := in.field(maxField); err != nil {
				return ignoreEOF(err)
			}
			old, err := in.part(maxPath)
			if err != nil {
				return err
			}
			now, err := in.part(maxPath)
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
