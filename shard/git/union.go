package git

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/shard/git/pack"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// Occurrence is a path that has a blob in some of the commits.
type Occurrence struct {
	Path    string
	Kind    Kind
	Commits uint64 // bit i: in commits[i]
}

// Blob is a blob and all its occurrences.
type Blob struct {
	OID         string // hex
	Size        int64
	Occurrences []Occurrence
}

// Union lists the distinct blobs of up to 64 commits with their paths, in the order in which git
// sorts their first paths. It reads a subtree that several commits share only once. It omits
// submodules; a symlink is a blob with its target. If commits have a blob at one path with
// different kinds, the blob has an occurrence for each kind.
func (f *files) Union(ctx context.Context, commits []string) ([]Blob, error) {
	if len(commits) == 0 || len(commits) > 64 {
		return nil, fmt.Errorf("%d commits, not 1 to 64: %w", len(commits), fs.ErrInvalid)
	}

	for _, commit := range commits {
		if err := checkCommit(commit); err != nil {
			return nil, err
		}
	}

	var blobs []Blob
	err := f.with(ctx, func(c reader) (err error) {
		blobs, err = listBlobs(c, commits, maxEntries, f.listMemory())
		return err
	})
	if err != nil {
		return nil, err
	}
	return blobs, f.setSizes(ctx, blobs)
}

// listMemory returns how many bytes of memory a list of files may take.
func (f *files) listMemory() int64 { return run.ListMemory + run.ListShare*run.StoredIn(f.dir) }

// listBlobs lists the distinct blobs of some commits, without sizes. It returns ErrTooLarge if
// there are more than maxFiles files, or if their list takes more than memory bytes.
func listBlobs(from reader, commits []string, maxFiles int, memory int64) ([]Blob, error) {
	var roots []branch
	for i, commit := range commits {
		oid, err := from.rootTree(commit)
		if err != nil {
			return nil, err
		}

		roots = mergeBranch(roots, branch{kind: Dir, oid: oid, in: 1 << i})
	}

	root := &dirNode{from: roots}
	g := &treeReader{from: from, maxNames: maxFiles, left: memory, known: map[string]*dirNode{}}
	if err := g.readAll(root); err != nil {
		return nil, err
	}

	// A few trees may lead to any number of paths, so count them before making any.
	if err := root.countPaths(0); err != nil {
		return nil, err
	}

	if root.files > int64(maxFiles) || root.bytes > g.left {
		return nil, fmt.Errorf("%d files, whose paths take %d MB: %w", root.files, root.bytes>>20, ErrTooLarge)
	}

	u := &union{index: map[string]int{}}
	u.addBlobs(root, "")
	return u.blobs, nil
}

// setSizes sets the sizes of blobs. It reads them from the packs, and asks git about blobs in no
// pack.
func (f *files) setSizes(ctx context.Context, blobs []Blob) error {
	workers := min(runtime.GOMAXPROCS(0), 1+len(blobs)/blobsPerWorker)
	unset := make([][]*Blob, workers) // by worker
	var wg sync.WaitGroup
	for k := range workers {
		wg.Go(func() { unset[k] = f.setPackedSizes(ctx, blobs[k*len(blobs)/workers:(k+1)*len(blobs)/workers]) })
	}
	wg.Wait()

	if err := ctx.Err(); err != nil {
		return err
	}
	if unpacked := slices.Concat(unset...); len(unpacked) > 0 {
		return f.setSizesByGit(ctx, unpacked)
	}
	return nil
}

// Batch sizes of setSizes.
const (
	blobsPerWorker = 4096 // blobs for each goroutine, because starting one costs as much as reading many headers
	dropAfter      = 512  // headers to read before the pages of the packs are dropped from memory
)

// setPackedSizes sets the sizes of the blobs that are in packs, and returns the other blobs. If ctx
// ends, it returns nil early, and some sizes are not set.
func (f *files) setPackedSizes(ctx context.Context, blobs []Blob) (unpacked []*Blob) {
	store, err := pack.Open(f.dir)
	if err != nil {
		store = &pack.Store{} // it has no objects, so setSizesByGit asks git, which reports what is wrong
	}
	defer store.Close()

	for i := range blobs {
		if i%dropAfter == dropAfter-1 {
			if ctx.Err() != nil {
				return nil
			}
			store.DropPages()
		}

		id, err := hex.DecodeString(blobs[i].OID)
		if err == nil {
			var kind pack.Kind
			if kind, blobs[i].Size, err = store.Info(id); err == nil && kind == pack.Blob {
				continue
			}
		}
		unpacked = append(unpacked, &blobs[i])
	}
	return unpacked
}

// setSizesByGit asks git for the sizes of blobs. It starts a process that buffers its answers,
// which is several times faster than one of the pool.
func (f *files) setSizesByGit(ctx context.Context, blobs []*Blob) error {
	c := f.git("cat-file", "--batch-check=%(objecttype) %(objectsize)", "--buffer")
	c.Timeout, c.Limit = 10*time.Minute, 1<<40

	// A goroutine writes the questions while this one reads the answers: writing all questions first
	// would fill both pipes, and both sides would block. The goroutine ends after the last question,
	// or when questions is closed, which the deferred calls do before they wait.
	var asking sync.WaitGroup
	defer asking.Wait()
	questions, w := io.Pipe()
	defer questions.Close()
	c.Stdin = questions
	asking.Go(func() {
		lines := bufio.NewWriterSize(w, 64<<10)
		for i := range blobs {
			lines.WriteString(blobs[i].OID)
			if lines.WriteByte('\n') != nil {
				break
			}
		}
		w.CloseWithError(lines.Flush())
	})

	return c.Stream(ctx, func(r io.Reader) error {
		in := bufio.NewScanner(r)
		for i := range blobs {
			if !in.Scan() {
				return cmp.Or(in.Err(), io.ErrUnexpectedEOF)
			}

			size, ok := bytes.CutPrefix(in.Bytes(), []byte("blob "))
			n, err := strconv.ParseInt(string(size), 10, 64)
			if !ok || err != nil {
				return fmt.Errorf("object %s is missing or not a blob", blobs[i].OID)
			}

			blobs[i].Size = n
		}
		return nil
	})
}

// branch is a blob or a directory that some of the commits have at a path.
type branch struct {
	kind Kind
	oid  string
	in   uint64 // bit i is set if commits[i] has it
}

// mergeBranch adds b to a list. If the list has a branch with the same object, it adds the commits
// of b to that one.
func mergeBranch(to []branch, b branch) []branch {
	for i := range to {
		if to[i].oid == b.oid && to[i].kind == b.kind {
			to[i].in |= b.in
			return to
		}
	}
	return append(to, b)
}

// dirNode is a directory of one or more commits; from lists its different tree objects. A directory
// that occurs at several paths, or at one path in several commits, is one node. So there are as
// many nodes as different directories, while any number of paths may lead to them.
type dirNode struct {
	from    []branch
	entries []dirEntry // by name, directories as if their names ended with a slash

	// countPaths sets the fields below.
	state  weighState
	files  int64 // number of files on paths below it
	bytes  int64 // bytes of memory for listing these, without the path of the node itself
	height int   // levels of directories below it
}

// dirEntry is a name in a directory, with the blobs and the directory that the commits have there.
type dirEntry struct {
	name  string
	blobs []branch
	below *dirNode // nil if no commit has a directory there
}

// Estimates of memory in bytes.
const (
	entryMemory = 160 // for a name in a directory, besides the name
	fileMemory  = 160 // for a file in the list, besides its path
)

// treeReader reads the directories of a tree.
type treeReader struct {
	from     reader
	maxNames int                 // greatest number of names to read
	read     int                 // number of names read so far
	left     int64               // bytes of memory left
	known    map[string]*dirNode // by appendKey
}

// readAll reads the whole tree below a node, one level at a time, so that it can ask for many trees
// at once.
func (g *treeReader) readAll(root *dirNode) error {
	level := []*dirNode{root}
	for depth := 0; len(level) > 0; depth++ {
		if depth > run.MaxDepth {
			return run.ErrDeep
		}

		if err := g.readLevel(level); err != nil {
			return err
		}

		level = g.nextLevel(level)
	}
	return nil
}

// readLevel reads the trees of all nodes of a level, and sets the entries of the nodes. It asks for
// all trees together, and gets them in the same order.
func (g *treeReader) readLevel(level []*dirNode) error {
	type owner struct{ node, from int } // index in level, then in from
	var oids []string
	var owners []owner // owners[i] has the tree oids[i]
	for i, n := range level {
		for k, f := range n.from {
			oids = append(oids, f.oid)
			owners = append(owners, owner{i, k})
		}
	}

	// byName finds the entries of the current node by name, if it has several trees to merge.
	var byName map[string]int
	err := g.from.trees(oids, func(i int, entries []treeEntry) error {
		n, k := level[owners[i].node], owners[i].from
		if k == 0 {
			byName = nil
			if len(n.from) > 1 {
				byName = make(map[string]int, len(entries))
			}
		}
		n.addEntries(n.from[k].in, entries, byName)
		return g.countMemory(entries)
	})
	if err != nil {
		return err
	}

	// Sort merged entries; those of a single tree are sorted already.
	for _, n := range level {
		if len(n.from) > 1 {
			slices.SortFunc(n.entries, func(a, b dirEntry) int { return cmp.Compare(a.sortName(), b.sortName()) })
		}
	}
	return nil
}

// countMemory counts the memory for the entries of a tree. It returns ErrTooLarge if there is too
// little left.
func (g *treeReader) countMemory(entries []treeEntry) error {
	g.read += len(entries)
	for i := range entries {
		g.left -= entryMemory + int64(len(entries[i].name))
	}
	if g.read > g.maxNames || g.left < 0 {
		return fmt.Errorf("the directories have more than %d names, or names that take too much memory: %w", g.read, ErrTooLarge)
	}
	return nil
}

// addEntries adds the entries of a tree, which the commits in have, to the entries of the node.
// byName maps the names so far to their indexes; nil if the node has only this tree.
func (n *dirNode) addEntries(in uint64, entries []treeEntry, byName map[string]int) {
	if byName == nil {
		n.entries = make([]dirEntry, 0, len(entries))
	}

	for _, e := range entries {
		if e.kind == Submodule {
			continue
		}

		i, known := -1, false
		if byName != nil {
			i, known = byName[e.name]
		}
		if !known {
			i = len(n.entries)
			n.entries = append(n.entries, dirEntry{name: e.name})
			if byName != nil {
				byName[e.name] = i
			}
		}

		d := &n.entries[i]
		b := branch{kind: e.kind, oid: e.oid, in: in}
		if e.kind != Dir {
			d.blobs = mergeBranch(d.blobs, b)
			continue
		}

		if d.below == nil {
			d.below = &dirNode{}
		}

		d.below.from = mergeBranch(d.below.from, b)
	}
}

// nextLevel returns the directories in the nodes of a level that are to be read next. For a
// directory with the same trees as an earlier one, it sets the entry to the node of the earlier
// one.
func (g *treeReader) nextLevel(level []*dirNode) []*dirNode {
	var next []*dirNode
	var key []byte
	for _, n := range level {
		for i := range n.entries {
			d := &n.entries[i]
			if d.below == nil {
				continue
			}

			key = d.below.appendKey(key[:0])
			if known := g.known[string(key)]; known != nil {
				d.below = known
				continue
			}

			g.known[string(key)] = d.below
			next = append(next, d.below)
		}
	}
	return next
}

// appendKey appends a key that identifies a node: its trees, and the commits that have each.
func (n *dirNode) appendKey(key []byte) []byte {
	for _, f := range n.from {
		key = append(key, f.oid...)
		key = binary.LittleEndian.AppendUint64(key, f.in)
	}
	return key
}

// weighState is the state of weighing a node.
type weighState uint8

const (
	notWeighed weighState = iota
	weighing
	isWeighed
)

// unbounded is greater than any limit; the sum of two fits an int64.
const unbounded = math.MaxInt64 / 4

// countPaths counts the files on all paths below a node and the memory for listing them, without
// listing them:
//
//	files(n) = blobs of n + sum of files(d)
//	bytes(n) = blobs of n * fileMemory + their names + sum of bytes(d) + files(d) * len("name of d/")
//
// over the directories d in n. It counts each node once. It returns run.ErrDeep for a directory
// inside itself, which a forged pack index can contain.
func (n *dirNode) countPaths(depth int) error {
	switch {
	case n.state == isWeighed:
		return nil
	case n.state == weighing || depth > run.MaxDepth:
		return run.ErrDeep
	}

	n.state = weighing
	for i := range n.entries {
		e := &n.entries[i]
		blobs := int64(len(e.blobs))
		n.files += blobs
		n.bytes += blobs * int64(fileMemory+len(e.name))

		if d := e.below; d != nil {
			if err := d.countPaths(depth + 1); err != nil {
				return err
			}
			n.files += d.files
			n.height = max(n.height, d.height+1)
			n.bytes += d.bytes + min(d.files, unbounded/maxName/2)*int64(len(e.name)+1)
		}

		// Shared directories can lead to any number of paths, so cap the counts.
		n.files, n.bytes = min(n.files, unbounded), min(n.bytes, unbounded)
	}

	n.state = isWeighed
	if n.height > run.MaxDepth {
		return run.ErrDeep
	}
	return nil
}

// union collects blobs in the order in which it finds them.
type union struct {
	blobs []Blob
	index map[string]int // by object id
}

// addBlobs adds the blobs below a node at a path, in git's order.
func (u *union) addBlobs(n *dirNode, path string) {
	for i := range n.entries {
		e := &n.entries[i]
		full := join(path, e.name)
		for _, b := range e.blobs {
			k, ok := u.index[b.oid]
			if !ok {
				k = len(u.blobs)
				u.index[b.oid] = k
				u.blobs = append(u.blobs, Blob{OID: b.oid})
			}

			u.blobs[k].Occurrences = append(u.blobs[k].Occurrences, Occurrence{Path: full, Kind: b.kind, Commits: b.in})
		}

		if e.below != nil {
			u.addBlobs(e.below, full)
		}
	}
}

// sortName returns the name by which git sorts the entry: a directory counts as if its name ended
// with a slash.
func (e *dirEntry) sortName() string {
	if e.below != nil && len(e.blobs) == 0 {
		return e.name + "/"
	}
	return e.name
}
