package git

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/shoalsearch/shoal/shard/git/pack"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// LastQuery asks for the last change of each entry of a directory.
type LastQuery struct {
	Commit string        // id of the commit to start at
	Path   string        // directory; "" means the root
	Max    int           // limit of entries; 0 means 10,000
	Time   time.Duration // time limit, after which what was found is the answer; 0 means 5 s
}

// LastChanges is the last change of each entry of a directory.
type LastChanges struct {
	Entries []LastChange      // directories before files, each in byte order
	Commits map[string]Commit // by id, without bodies and parents
	Cut     bool              // the directory has more entries than requested
}

// LastChange is the last change of one entry: the commit that git log -1 shows for it. Either
// Commit or From is set.
type LastChange struct {
	Name   string // name in the directory
	Commit string // the commit that changed it
	From   string // if time ran out: a commit that still has the present entry, and so the same last change
}

const (
	lastTime       = 5 * time.Second
	maxLastEntries = 10_000
	maxLastTrees   = 2000 // trees in lastWalk.same
)

// lasts finds the last changes of the entries of directories.
type lasts struct {
	*logs
	files  *files
	cached *run.Flights[*LastChanges] // cached, because readers come back to a directory
}

// Last finds the last change of each entry of a directory in one walk through the history. When its
// time is over, it returns what it has found. To find the rest, the caller asks again with From as
// the commit. The caller must not change the result, which is cached.
func (h *lasts) Last(ctx context.Context, q LastQuery) (*LastChanges, error) {
	if q.Max <= 0 {
		q.Max = maxLastEntries
	}
	if q.Time <= 0 {
		q.Time = lastTime
	}

	dir, err := h.files.Stat(ctx, q.Commit, q.Path)
	if err != nil {
		return nil, err
	}
	if dir.Kind != Dir {
		return nil, fmt.Errorf("%q: %w", q.Path, ErrNotDir)
	}

	key := fmt.Sprint(h.dir, "\x00", q.Commit, "\x00", dir.Path, "\x00", q.Max, q.Time)
	found, err := h.cached.Do(ctx, h.tasks, key, (*LastChanges).size, func(ctx context.Context) (*LastChanges, error) {
		return h.last(ctx, q, dir)
	})
	if err != nil {
		return nil, fmt.Errorf("find last changes: %w", err)
	}
	return found, nil
}

// size returns about how many bytes of memory the answer takes; negative if it must not be cached,
// because the next time may find more.
func (l *LastChanges) size() int64 {
	n := int64(200)
	for _, e := range l.Entries {
		if e.From != "" {
			return -1
		}
		n += int64(100 + len(e.Name))
	}
	for _, c := range l.Commits {
		n += int64(400 + len(c.Subject) + len(c.AuthorName) + len(c.AuthorEmail))
	}
	return n
}

// last finds the last change of each entry of dir.
func (h *lasts) last(ctx context.Context, q LastQuery, dir Entry) (out *LastChanges, err error) {
	var foreign []string
	err = h.inHistory(ctx, q.Time, func(c *chronicle, shallow boundary, late func() error) error {
		w, err := c.lastWalk(q.Commit, dir, q.Max)
		if err != nil {
			return err
		}
		w.shallow = shallow

		if err := w.walkBack(late); err != nil {
			return err
		}
		out, foreign, err = w.result()
		return err
	})
	if err != nil {
		return nil, err
	}

	commits, err := h.readCommits(ctx, foreign)
	for _, c := range commits {
		c.Body, c.Parents = "", nil
		out.Commits[c.Hash] = c
	}
	return out, err
}

// lastWalk walks back through the history, with the entries of a directory. Each entry waits at a
// commit that has it in its final state:
//
//	a parent has it in the same state    the entry moves to the first such parent
//	no parent has it in the same state   the commit is its last change
//
// This is what git log does with a path. The walk always takes the newest commit that entries wait
// at, so that entries which reach a commit in several ways move on together.
type lastWalk struct {
	*walk
	shallow boundary

	entries []lastEntry
	byName  map[string]int      // index in entries
	cut     bool                // the directory has more entries
	pending map[uint32][]int    // by position of a commit: the entries that wait there
	same    map[string][]uint64 // by id of a tree: a bit for each entry that the tree has in the same state
	noBits  []uint64            // the bits for a missing directory: all 0
}

// lastEntry is an entry during the walk.
type lastEntry struct {
	name  string
	kind  Kind
	oid   string // as bytes
	found bool   // at is its last change
	at    uint32 // position of the commit at which it waits
}

// lastWalk returns a walk in which the entries of a directory, at most maxEntries, wait at a
// commit.
func (c *chronicle) lastWalk(commit string, dir Entry, maxEntries int) (*lastWalk, error) {
	base, err := c.walk(commit, dir.Path)
	if err != nil {
		return nil, err
	}

	id, err := hex.DecodeString(dir.OID)
	if err != nil {
		return nil, err
	}
	text, err := c.object(pack.Tree, id)
	if err != nil {
		return nil, err
	}

	w := &lastWalk{walk: base, byName: map[string]int{}, pending: map[uint32][]int{}, same: map[string][]uint64{}}
	if err := w.addEntries(text, len(id), maxEntries); err != nil {
		return nil, err
	}
	w.noBits = make([]uint64, (len(w.entries)+63)/64)

	// All entries wait at the commit, which is the only one in the queue.
	all := make([]int, len(w.entries))
	for i := range all {
		all[i] = i
	}
	w.moveEntries(w.queue.pop().pos, all)
	return w, nil
}

// addEntries adds the entries of a tree object, at most maxEntries, directories first.
func (w *lastWalk) addEntries(tree []byte, idBytes, maxEntries int) error {
	listed, err := parseTree(tree, idBytes)
	if err != nil {
		return err
	}

	slices.SortStableFunc(listed, directoriesFirst)
	for _, e := range listed {
		// A hostile tree may have a name twice: git finds the first.
		if _, twice := w.byName[e.name]; twice {
			continue
		}
		if w.cut = len(w.entries) == maxEntries; w.cut {
			break
		}

		oid, err := hex.DecodeString(e.oid)
		if err != nil {
			return err
		}
		w.byName[e.name] = len(w.entries)
		w.entries = append(w.entries, lastEntry{name: e.name, kind: e.kind, oid: string(oid)})
	}
	return nil
}

// moveEntries lets entries wait at a commit. The caller must not use the slice afterwards.
func (w *lastWalk) moveEntries(pos uint32, entries []int) {
	if len(entries) == 0 {
		return
	}
	if waiting, queued := w.pending[pos]; queued {
		w.pending[pos] = append(waiting, entries...)
		return
	}

	w.pending[pos] = entries
	w.queue.push(queuedCommit{w.c.date(pos), w.order, pos})
	w.order++
}

// walkBack walks until each entry is found. late returns errLate when the time is over: then the
// walk ends without an error.
func (w *lastWalk) walkBack(late func() error) error {
	for len(w.queue) > 0 {
		err := w.moveNewest()
		if err == nil {
			err = late()
		}

		// The walk also ends if there are too many commits outside of the graph: the caller starts
		// another walk where this one has ended.
		if errors.Is(err, errLate) || errors.Is(err, pack.ErrAskGit) && len(w.c.extras) == maxExtras {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// moveNewest takes the newest commit from the queue. It moves each entry that waits at the commit to
// a parent that has the entry in the same state. For entries without such a parent the commit is the
// last change.
func (w *lastWalk) moveNewest() (err error) {
	pos := w.queue.pop().pos
	entries := w.pending[pos]
	delete(w.pending, pos)

	// After an error, the remaining entries wait at the commit again.
	defer func() {
		if err != nil {
			w.moveEntries(pos, entries)
		}
	}()

	w.parents = w.parents[:0]
	if !w.shallow[hex.EncodeToString(w.c.id(pos))] {
		if w.parents, err = w.c.parents(w.parents, pos); err != nil {
			return err
		}
	}

	// The filter of the graph answers for most commits without reading a tree.
	if w.key != nil && len(w.parents) > 0 && int(pos) < w.c.graph.Commits() && w.c.graph.Unchanged(pos, w.key) {
		w.moveEntries(w.parents[0], entries)
		return nil
	}

	for _, parent := range w.parents {
		same, err := w.sameEntries(parent)
		if err != nil {
			return err
		}

		// Swap the entries that move to this parent to the front; their order does not matter.
		moved := 0
		for k, i := range entries {
			if same[i/64]&(1<<(i%64)) != 0 {
				entries[moved], entries[k] = i, entries[moved]
				moved++
			}
		}
		w.moveEntries(parent, entries[:moved:moved])
		entries = entries[moved:]
	}

	for _, i := range entries {
		w.entries[i].found, w.entries[i].at = true, pos
	}
	return nil
}

// sameEntries returns a bit for each entry, set if the directory in a commit has the entry in the
// same state as at the start.
func (w *lastWalk) sameEntries(pos uint32) ([]uint64, error) {
	dir := treeItem{mode: "40000", id: string(w.c.tree(pos))}
	if w.path != nil {
		var err error
		if dir, err = w.entryAtPath(pos); err != nil {
			return nil, err
		}
	}
	if dir.mode != "40000" {
		return w.noBits, nil
	}
	if known, ok := w.same[dir.id]; ok {
		return known, nil
	}

	text, err := w.c.object(pack.Tree, []byte(dir.id))
	if err != nil {
		return nil, err
	}
	same, err := w.compareTree(text, len(dir.id))
	if err != nil {
		return nil, err
	}

	if len(w.same) == maxLastTrees {
		clear(w.same)
	}
	w.same[dir.id] = same
	return same, nil
}

// compareTree returns a bit for each entry, set if a tree object has the entry in the same state.
func (w *lastWalk) compareTree(tree []byte, idBytes int) ([]uint64, error) {
	same := make([]uint64, len(w.noBits))
	for len(tree) > 0 {
		mode, name, id, rest, ok := nextInTree(tree, idBytes)
		if !ok {
			return nil, pack.ErrAskGit
		}
		tree = rest

		i, wanted := w.byName[string(name)]
		if !wanted || w.entries[i].oid != string(id) {
			continue
		}

		// Old versions of git wrote some modes differently.
		bits, err := strconv.ParseUint(string(mode), 8, 32)
		if err == nil && w.entries[i].kind == kindOfMode(bits) {
			same[i/64] |= 1 << (i % 64)
		}
	}
	return same, nil
}

// result returns what the walk has found. foreign lists the commits that only git can decode.
func (w *lastWalk) result() (out *LastChanges, foreign []string, err error) {
	// Entries that still wait get From instead of Commit.
	for pos, entries := range w.pending {
		for _, i := range entries {
			w.entries[i].at = pos
		}
	}

	texts := newRoom()
	out = &LastChanges{Entries: make([]LastChange, len(w.entries)), Commits: map[string]Commit{}, Cut: w.cut}
	for i, e := range w.entries {
		id := bytes.Clone(w.c.id(e.at))
		hash := hex.EncodeToString(id)
		if !e.found {
			out.Entries[i] = LastChange{Name: e.name, From: hash}
			continue
		}

		out.Entries[i] = LastChange{Name: e.name, Commit: hash}
		if _, known := out.Commits[hash]; known { // many entries have the same commit
			continue
		}

		c, ok, err := w.c.commit(id)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			foreign = append(foreign, hash)
		}
		c.Body, c.Parents = "", nil
		texts.shortenCommit(&c)
		out.Commits[hash] = c
	}
	return out, foreign, nil
}
