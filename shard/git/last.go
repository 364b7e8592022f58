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
	lastTime    = 5 * time.Second
	lastEntries = 10_000
	lastTrees   = 2000 // former directories whose common entries are cached
)

// lasts finds the last changes of the entries of directories.
type lasts struct {
	*logs
	files *files
	known *run.Flights[*LastChanges] // cached, because readers come back to a directory
}

// Last finds the last change of each entry of a directory in one walk through the history. When its
// time is over it returns what it has found: a query with From as its commit continues there. The
// result is shared: the caller must not change it.
func (h *lasts) Last(ctx context.Context, q LastQuery) (*LastChanges, error) {
	if q.Max <= 0 {
		q.Max = lastEntries
	}
	if q.Time <= 0 {
		q.Time = lastTime
	}

	// Its errors are those of a listing.
	dir, err := h.files.Stat(ctx, q.Commit, q.Path)
	if err != nil {
		return nil, err
	}
	if dir.Kind != Dir {
		return nil, fmt.Errorf("%q: %w", q.Path, ErrNotDir)
	}

	key := fmt.Sprint(h.dir, "\x00", q.Commit, "\x00", dir.Path, "\x00", q.Max, q.Time)
	found, err := h.known.Do(ctx, h.tasks, key, (*LastChanges).size, func(ctx context.Context) (*LastChanges, error) {
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

		if err := w.run(late); err != nil {
			return err
		}
		out, foreign, err = w.changes()
		return err
	})
	if err != nil {
		return nil, err
	}

	// Only git can read these commits.
	known, err := h.readCommits(ctx, foreign)
	for _, c := range known {
		c.Body, c.Parents = "", nil
		out.Commits[c.Hash] = c
	}
	return out, err
}

// lastWalk walks back through the history, with the entries of a directory. Each entry waits at a
// commit that has it in its final state:
//
//	a parent has it in the same state    it moves to the first such parent
//	no parent has                        the commit is its last change
//
// This is what git log does with a path. The newest commit comes first, so that entries which reach
// a commit in several ways continue together.
type lastWalk struct {
	*walk
	shallow boundary

	entries []lastEntry
	byName  map[string]int      // into entries
	cut     bool                // there are more entries
	pending map[uint32][]int    // by position of a commit: the entries at it
	same    map[string][]uint64 // by id of a tree: a bit for each entry that is the same there
	none    []uint64            // the same for a missing directory
}

// lastEntry is an entry during the walk.
type lastEntry struct {
	name  string
	kind  Kind
	oid   string // as bytes
	found bool
	at    uint32 // present commit; if found, the last change
}

// lastWalk puts the first entries of a directory at a commit.
func (c *chronicle) lastWalk(commit string, dir Entry, most int) (*lastWalk, error) {
	along, err := c.walk(commit, dir.Path)
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

	w := &lastWalk{walk: along, byName: map[string]int{}, pending: map[uint32][]int{}, same: map[string][]uint64{}}
	if err := w.list(text, len(id), most); err != nil {
		return nil, err
	}
	w.none = make([]uint64, (len(w.entries)+63)/64)

	// The walk starts with one commit in its queue.
	all := make([]int, len(w.entries))
	for i := range all {
		all[i] = i
	}
	w.hand(w.queue.pop().pos, all)
	return w, nil
}

// list takes the first entries of a tree object, in the order of a listing.
func (w *lastWalk) list(tree []byte, idBytes, most int) error {
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
		if w.cut = len(w.entries) == most; w.cut {
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

// hand moves entries, with their memory, to a commit.
func (w *lastWalk) hand(pos uint32, entries []int) {
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

// run walks until each entry is found or time is over, which is no error.
func (w *lastWalk) run(late func() error) error {
	for len(w.queue) > 0 {
		err := w.step()
		if err == nil {
			err = late()
		}

		// With too many commits outside the graph, start another walk.
		if errors.Is(err, errLate) || errors.Is(err, pack.ErrAskGit) && len(w.c.extras) == maxExtras {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// step takes the newest commit and moves its entries on to its parents.
func (w *lastWalk) step() (err error) {
	pos := w.queue.pop().pos
	entries := w.pending[pos]
	delete(w.pending, pos)

	// If this fails, the entries stay where they are.
	defer func() {
		if err != nil {
			w.hand(pos, entries)
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
		w.hand(w.parents[0], entries)
		return nil
	}

	for _, parent := range w.parents {
		same, err := w.sameIn(parent)
		if err != nil {
			return err
		}

		// Entries that move on come first; their order does not matter.
		on := 0
		for k, i := range entries {
			if same[i/64]&(1<<(i%64)) != 0 {
				entries[on], entries[k] = i, entries[on]
				on++
			}
		}
		w.hand(parent, entries[:on:on])
		entries = entries[on:]
	}

	for _, i := range entries {
		w.entries[i].found, w.entries[i].at = true, pos
	}
	return nil
}

// sameIn returns a bit for each entry that a commit has in the same state as the directory at the
// start.
func (w *lastWalk) sameIn(pos uint32) ([]uint64, error) {
	dir := treeItem{mode: "40000", id: string(w.c.tree(pos))}
	if w.path != nil {
		var err error
		if dir, err = w.entryAtPath(pos); err != nil {
			return nil, err
		}
	}
	if dir.mode != "40000" {
		return w.none, nil
	}
	if known, ok := w.same[dir.id]; ok {
		return known, nil
	}

	text, err := w.c.object(pack.Tree, []byte(dir.id))
	if err != nil {
		return nil, err
	}
	same, err := w.compare(text, len(dir.id))
	if err != nil {
		return nil, err
	}

	if len(w.same) == lastTrees {
		clear(w.same)
	}
	w.same[dir.id] = same
	return same, nil
}

// compare compares a tree object with the entries.
func (w *lastWalk) compare(tree []byte, idBytes int) ([]uint64, error) {
	same := make([]uint64, len(w.none))
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

// changes returns the results of the walk. foreign lists the commits that only git itself can
// decode.
func (w *lastWalk) changes() (out *LastChanges, foreign []string, err error) {
	// Entries that still wait have From instead.
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

		// Store each commit once, because many entries have the same.
		out.Entries[i] = LastChange{Name: e.name, Commit: hash}
		if _, known := out.Commits[hash]; known {
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
		texts.takeCommit(&c)
		out.Commits[hash] = c
	}
	return out, foreign, nil
}
