package git

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/shard/git/pack"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// chronicle is the history of a repository, read without git. It uses the commit graph, and the
// packs for newer commits and for texts. Only one goroutine may use it.
type chronicle struct {
	dir    string
	graph  *pack.Graph
	store  *pack.Store
	extras []extra // commits that the graph lacks; their positions follow the graph's
	links  int     // number of parents of all extras
	byID   map[string]uint32
	buf    []byte

	ask func(kind pack.Kind, id []byte) ([]byte, error) // reads an object that is in no pack; nil: methods return ErrAskGit instead
}

// extra is a commit that the graph lacks.
type extra struct {
	id, tree []byte
	parents  [][]byte
	date     int64
}

// Limits on the commits outside of the graph, and on their parents.
const (
	maxExtras = 50_000
	maxLinks  = 4 * maxExtras
)

// openChronicle opens the packs and the commit graph of a repository.
func openChronicle(dir string) (*chronicle, error) {
	s, err := pack.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open packs: %w", err)
	}
	return &chronicle{dir: dir, store: s, graph: pack.OpenGraph(dir), byID: map[string]uint32{}}, nil
}

// close closes the files of the graph and the packs.
func (c *chronicle) close() {
	c.store.Close()
	c.graph.Close()
}

// inHistory calls do with the history of the repository, which asks git for objects in no pack.
// late returns errLate after the time limit, and an error when ctx has ended; do must call it now
// and then.
func (b *base) inHistory(ctx context.Context, limit time.Duration, do func(c *chronicle, shallow boundary, late func() error) error) error {
	c, err := openChronicle(b.dir)
	if err != nil {
		return err
	}
	defer c.close()
	c.ask = func(kind pack.Kind, id []byte) ([]byte, error) { return b.askObject(ctx, kind, id) }

	shallow, err := shallowOf(b.dir)
	if err != nil {
		return err
	}

	now := b.now
	start := now()
	late := func() error {
		if now().Sub(start) >= limit {
			return errLate
		}
		return context.Cause(ctx)
	}

	return pack.Protect(func() error { return do(c, shallow, late) })
}

// object reads an object; the result is valid until the next call.
func (c *chronicle) object(kind pack.Kind, id []byte) ([]byte, error) {
	var err error
	c.buf, err = c.store.Read(c.buf[:0], kind, id)
	if c.ask != nil && errors.Is(err, pack.ErrAskGit) {
		return c.ask(kind, id)
	}
	return c.buf, err
}

// commit reads a commit. ok is false if git has to read it: its text is in no pack, is too long, or
// has an encoding that only git knows.
func (c *chronicle) commit(id []byte) (found Commit, ok bool, err error) {
	c.buf, err = c.store.Read(c.buf[:0], pack.Commit, id)
	if errors.Is(err, pack.ErrAskGit) {
		return Commit{Hash: hex.EncodeToString(id)}, false, nil
	}
	if err != nil {
		return found, false, err
	}
	found, ok = parseCommit(id, c.buf)
	return found, ok, nil
}

// position returns the position of a commit. If the graph lacks the commit, position reads it and
// adds it to c.extras:
//
//	0 ... graph.Commits()-1                   commits of the graph
//	graph.Commits() ... +len(extras)-1        extras, in the order in which they were read
func (c *chronicle) position(id []byte) (uint32, error) {
	if pos, ok := c.graph.Find(id); ok {
		return pos, nil
	}
	if pos, ok := c.byID[string(id)]; ok {
		return pos, nil
	}
	if len(c.extras) == maxExtras {
		return 0, pack.ErrAskGit
	}

	text, err := c.object(pack.Commit, id)
	if err != nil {
		return 0, err
	}
	x, err := parseExtra(id, text)
	if err != nil {
		return 0, err
	}

	// A commit of some hundred bytes may name one parent thousands of times.
	if c.links += len(x.parents); c.links > maxLinks {
		return 0, pack.ErrAskGit
	}

	pos := uint32(c.graph.Commits() + len(c.extras))
	c.extras = append(c.extras, x)
	c.byID[string(id)] = pos
	return pos, nil
}

// parseExtra reads what a walk needs from a commit:
//
//	tree <id>
//	parent <id>        any number of them
//	author ...
//	committer Ann <ann@example.org> 1700000000 +0000
//	...                the rest is ignored
func parseExtra(id, text []byte) (extra, error) {
	x := extra{id: bytes.Clone(id)}
	for line := range bytes.Lines(text) {
		key, value, _ := bytes.Cut(bytes.TrimSuffix(line, newline), []byte(" "))

		// Read the ids of the tree and the parents, up to the line of the committer.
		switch string(key) {
		case "tree", "parent":
			raw, err := hex.DecodeString(string(value))
			if err != nil || len(raw) != len(id) {
				return x, pack.ErrAskGit
			}

			if string(key) == "tree" {
				x.tree = raw
			} else {
				x.parents = append(x.parents, raw)
			}
			continue
		case "author":
			continue

		// After the line of the committer nothing matters.
		case "committer":
			if f := bytes.Fields(value[bytes.LastIndexByte(value, '>')+1:]); len(f) > 0 {
				x.date, _ = strconv.ParseInt(string(f[0]), 10, 64)
			}
		}
		break
	}

	if x.tree == nil {
		return x, pack.ErrAskGit
	}
	return x, nil
}

// id returns the id of the commit at a position.
func (c *chronicle) id(pos uint32) []byte {
	if int(pos) < c.graph.Commits() {
		return c.graph.ID(pos)
	}
	return c.extras[int(pos)-c.graph.Commits()].id
}

// tree returns the id of the tree of a commit.
func (c *chronicle) tree(pos uint32) []byte {
	if int(pos) < c.graph.Commits() {
		return c.graph.Tree(pos)
	}
	return c.extras[int(pos)-c.graph.Commits()].tree
}

// date returns the commit time of a commit, in seconds since 1970.
func (c *chronicle) date(pos uint32) int64 {
	if int(pos) < c.graph.Commits() {
		return c.graph.Date(pos)
	}
	return c.extras[int(pos)-c.graph.Commits()].date
}

// latest returns an upper limit on the times of a commit and its history, in seconds since 1970.
func (c *chronicle) latest(pos uint32) int64 {
	if int(pos) < c.graph.Commits() {
		return c.graph.Latest(pos)
	}
	return math.MaxInt64 // only reading its whole history would tell
}

// parents appends the positions of the parents of a commit.
func (c *chronicle) parents(dst []uint32, pos uint32) ([]uint32, error) {
	if int(pos) < c.graph.Commits() {
		return c.graph.Parents(dst, pos)
	}

	// The graph lacks the commit. position has read the ids of its parents.
	for _, id := range c.extras[int(pos)-c.graph.Commits()].parents {
		p, err := c.position(id)
		if err != nil {
			return dst, err
		}

		dst = append(dst, p)
	}
	return dst, nil
}

// walk visits the history in the order of git log: of all commits with a visited child, the newest
// comes next. With a path, it skips a commit that has the same content there as one of its parents,
// and visits only that parent.
type walk struct {
	c            *chronicle
	since, until int64    // return only commits between these times, in seconds since 1970
	noMerges     bool     // return no merges
	path         []string // elements of the path; nil without a path
	key          *pack.PathKey

	seen    bits // commits that were put into the queue
	queue   queue
	order   uint32       // number of commits that were put into the queue
	stop    func() error // returns an error to stop the walk; called now and then
	steps   int
	reached int64               // date of the last commit that was visited
	parents []uint32            // parents of that commit
	trees   map[string]treeItem // by id of a tree and number of path elements above it
}

// treeItem is the entry of a tree at a path; an empty id means that there is none.
type treeItem struct {
	mode string
	id   string
}

// maxTrees is the greatest length of walk.trees.
const maxTrees = 20_000

// walk starts a walk at a commit. An empty path means the whole history.
func (c *chronicle) walk(commit, path string) (*walk, error) {
	w := &walk{c: c, since: math.MinInt64, until: math.MaxInt64, seen: make(bits, c.graph.Commits()/64+1)}

	if path != "" {
		w.path, w.key, w.trees = strings.Split(path, "/"), pack.NewPathKey(path), map[string]treeItem{}
	}

	id, err := hex.DecodeString(commit)
	if err != nil {
		return nil, err
	}

	pos, err := c.position(id)
	if err != nil {
		return nil, err
	}

	w.enqueue(pos)
	return w, nil
}

// enqueue puts a commit into the queue, unless it has been there before.
func (w *walk) enqueue(pos uint32) {
	if w.seen.has(pos) {
		return
	}
	w.seen.add(pos)
	w.queue.push(queuedCommit{w.c.date(pos), w.order, pos})
	w.order++
}

// errLate means that a walk ran out of time.
var errLate = errors.New("out of time")

// next returns the next commit that fits the filters of the walk. It returns io.EOF after the last
// one, and the error of stop if that returns one.
func (w *walk) next() (pos uint32, err error) {
	ok := false
	err = pack.Protect(func() error {
		for ; !ok; w.steps++ {
			if w.steps&255 == 255 {
				if err := w.stop(); err != nil {
					return err
				}
			}

			if len(w.queue) == 0 {
				return io.EOF
			}

			// Skip a commit if it and all of its history are older than since. Its own time is not
			// enough, because the clocks of its parents may have been ahead.
			at := w.queue.pop()
			pos, w.reached = at.pos, at.date
			if w.c.latest(pos) < w.since {
				continue
			}

			changed, err := w.enqueueParents(pos)
			if err != nil {
				return err
			}

			merge := len(w.parents) > 1
			ok = changed && at.date >= w.since && at.date <= w.until && !(w.noMerges && merge)
		}
		return nil
	})
	return pos, err
}

// enqueueParents adds the parents of a commit to the queue, and reports whether the commit changed
// the path.
func (w *walk) enqueueParents(pos uint32) (changed bool, err error) {
	if w.parents, err = w.c.parents(w.parents[:0], pos); err != nil {
		return false, err
	}
	if w.path == nil {
		for _, p := range w.parents {
			w.enqueue(p)
		}
		return true, nil
	}

	// For most commits, the filter of the graph shows that the path is unchanged, without reading
	// trees.
	if len(w.parents) > 0 && int(pos) < w.c.graph.Commits() && w.c.graph.Unchanged(pos, w.key) {
		w.enqueue(w.parents[0])
		return false, nil
	}

	entry, err := w.entryAtPath(pos)
	if err != nil {
		return false, err
	}

	if len(w.parents) == 0 {
		return entry.id != "", nil
	}

	// If the path is the same as in one parent, visit only that parent.
	for _, p := range w.parents {
		parentEntry, err := w.entryAtPath(p)
		if err != nil {
			return false, err
		}

		if entry == parentEntry {
			w.enqueue(p)
			return false, nil
		}
	}

	for _, p := range w.parents {
		w.enqueue(p)
	}
	return true, nil
}

// entryAtPath returns the entry at the path in the tree of a commit.
func (w *walk) entryAtPath(pos uint32) (treeItem, error) {
	return w.entryInTree(w.c.tree(pos), 0)
}

// entryInTree returns the entry in a tree at w.path[at:].
func (w *walk) entryInTree(tree []byte, at int) (treeItem, error) {
	key := string(append([]byte{byte(at), byte(at >> 8)}, tree...))
	if f, ok := w.trees[key]; ok {
		return f, nil
	}

	text, err := w.c.object(pack.Tree, tree)
	if err != nil {
		return treeItem{}, err
	}

	f, err := lookInTree(text, w.path[at], len(tree))
	if err == nil && at+1 < len(w.path) {
		if f.mode == "40000" {
			f, err = w.entryInTree([]byte(f.id), at+1)
		} else {
			f = treeItem{}
		}
	}
	if err != nil {
		return treeItem{}, err
	}

	if len(w.trees) == maxTrees {
		clear(w.trees)
	}
	w.trees[key] = f
	return f, nil
}

// lookInTree finds a name in a tree object. Its entries have this form:
//
//	<mode in octal> <name> NUL <id, idBytes long>
func lookInTree(b []byte, name string, idBytes int) (treeItem, error) {
	for len(b) > 0 {
		mode, at, id, rest, ok := nextInTree(b, idBytes)
		if !ok {
			return treeItem{}, pack.ErrAskGit
		}
		if string(at) == name {
			return treeItem{string(mode), string(id)}, nil
		}
		b = rest
	}
	return treeItem{}, nil
}

// nextInTree cuts the first entry off a tree object.
func nextInTree(b []byte, idBytes int) (mode, name, id, rest []byte, ok bool) {
	// A mode has at most six digits.
	space := bytes.IndexByte(b[:min(len(b), 8)], ' ')
	if space < 0 {
		return nil, nil, nil, nil, false
	}
	nul := bytes.IndexByte(b[space:], 0)
	if nul < 0 || len(b) < space+nul+1+idBytes {
		return nil, nil, nil, nil, false
	}

	end := space + nul
	return b[:space], b[space+1 : end], b[end+1 : end+1+idBytes], b[end+1+idBytes:], true
}

// queuedCommit is a commit in the queue.
type queuedCommit struct {
	date  int64
	order uint32 // number of its arrival
	pos   uint32
}

// queue is a binary heap with the newest commit on top; of equally new commits, the one that was
// pushed first. Unlike package heap it does not allocate for each commit.
//
//	not before(i, (i-1)/2)   for 0 < i < len
type queue []queuedCommit

// before reports whether element i leaves the queue before element j.
func (q queue) before(i, j int) bool {
	return q[i].date > q[j].date || q[i].date == q[j].date && q[i].order < q[j].order
}

// push adds a commit.
func (q *queue) push(x queuedCommit) {
	*q = append(*q, x)
	h := *q
	for i := len(h) - 1; i > 0 && h.before(i, (i-1)/2); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

// pop removes the first commit and returns it.
func (q *queue) pop() queuedCommit {
	h := *q
	top, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	*q = h

	// Move the new top down until neither child comes before it.
	for i := 0; ; {
		// In this heap h[i] comes before its children h[2i+1] and h[2i+2].
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if h.before(child, least) {
				least = child
			}
		}

		if least == i {
			return top
		}

		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// askObject lets git read an object that is in no pack, or is large.
func (b *base) askObject(ctx context.Context, kind pack.Kind, id []byte) (text []byte, err error) {
	oid := hex.EncodeToString(id)
	err = b.with(ctx, func(c reader) error {
		return c.Contents(oid, func(info run.ObjectInfo, r io.Reader) error {
			switch {
			case info.Kind != kind.String():
				return fmt.Errorf("object %s is missing or not a %s", oid, kind)
			case info.Size > maxTree:
				return fmt.Errorf("%s %s: %w", kind, oid, ErrTooLarge)
			}
			text, err = io.ReadAll(r)
			return err
		})
	})
	return text, err
}
