package git

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Occurrence is a path that holds a blob in some of the commits.
type Occurrence struct {
	Path    string
	Kind    Kind
	Commits uint64 // bit i: in commits[i]
}

// Blob is one content and everywhere it occurs.
type Blob struct {
	OID         string // hex
	Size        int64
	Occurrences []Occurrence
}

// Union lists the distinct blobs of up to 64 commits with their paths, in
// the order of their first paths as git sorts them. Subtrees that several
// commits share are read once. Submodules are left out; a symlink is a blob
// that holds its target. A blob whose kind differs between commits at one
// path has an occurrence for each kind.
func (m *Mirror) Union(ctx context.Context, commits []string) ([]Blob, error) {
	if len(commits) == 0 || len(commits) > 64 {
		return nil, fmt.Errorf("%d commits, not 1 to 64: %w", len(commits), fs.ErrInvalid)
	}
	for _, commit := range commits {
		if err := checkCommit(commit); err != nil {
			return nil, err
		}
	}
	if blobs, ok := m.smallUnion(ctx, commits); ok {
		return blobs, nil
	}
	var blobs []Blob
	err := m.pool.with(ctx, func(c *catFile) (err error) {
		blobs, err = unite(c, commits, maxEntries)
		return err
	})
	if err != nil {
		return nil, err
	}
	return blobs, m.measure(ctx, blobs)
}

// treeReader gives trees: a process of git, or the packs themselves.
type treeReader interface {
	rootTree(commit string) (string, error)
	trees(oids []string, use func(i int, entries []treeEntry) error) error
}

// unite lists the distinct blobs of some commits, without their sizes.
func unite(from treeReader, commits []string, most int) ([]Blob, error) {
	var roots []branch
	for i, commit := range commits {
		oid, err := from.rootTree(commit)
		if err != nil {
			return nil, err
		}
		roots = mergeBranch(roots, branch{kind: Dir, oid: oid, in: 1 << i})
	}
	root := &dirNode{from: roots}
	if err := root.grow(from, most); err != nil {
		return nil, err
	}
	u := &union{index: map[string]int{}}
	u.emit(root, "")
	return u.blobs, nil
}

// smallUnion is Union for repositories with few files, all of it read from
// their packs. It reports false for others.
func (m *Mirror) smallUnion(ctx context.Context, commits []string) ([]Blob, bool) {
	p, err := openPacks(m.dir)
	if err != nil {
		return nil, false
	}
	defer p.close()
	blobs, err := unite(p, commits, fewBlobs)
	if err != nil {
		return nil, false
	}
	for i := range blobs {
		size, ok := p.blobSize(blobs[i].OID)
		if !ok || ctx.Err() != nil {
			return nil, false
		}
		blobs[i].Size = size
	}
	return blobs, true
}

// measure fills in the sizes, from the headers in the packs; git is asked for
// what is in none.
func (m *Mirror) measure(ctx context.Context, blobs []Blob) error {
	workers := min(runtime.GOMAXPROCS(0), 1+len(blobs)/measureShare)
	rest := make([][]*Blob, workers)
	var wg sync.WaitGroup
	for k := range workers {
		wg.Go(func() { rest[k] = m.measurePacked(ctx, blobs[k*len(blobs)/workers:(k+1)*len(blobs)/workers]) })
	}
	wg.Wait()
	if left := slices.Concat(rest...); len(left) > 0 {
		return m.measureByGit(ctx, left)
	}
	return ctx.Err()
}

// The shares of measuring.
const (
	measureShare = 4096 // blobs that are worth a goroutine
	measureGive  = 512  // headers are read before the memory they are mapped to is given back
)

// measurePacked fills in the sizes of the blobs that are in packs, and returns
// the others.
func (m *Mirror) measurePacked(ctx context.Context, blobs []Blob) (rest []*Blob) {
	p, err := openPacks(m.dir)
	if err != nil {
		p = &packs{} // git says what is wrong
	}
	defer p.close()
	for i := range blobs {
		if i%measureGive == measureGive-1 {
			if ctx.Err() != nil {
				return nil
			}
			p.give()
		}
		size, ok := p.blobSize(blobs[i].OID)
		if !ok {
			rest = append(rest, &blobs[i])
			continue
		}
		blobs[i].Size = size
	}
	return rest
}

// measureByGit asks a process of its own: one that answers in large writes is
// several times cheaper than one that answers each question at once.
func (m *Mirror) measureByGit(ctx context.Context, blobs []*Blob) error {
	c := m.git("cat-file", "--batch-check=%(objecttype) %(objectsize)", "--buffer")
	c.timeout, c.limit = 10*time.Minute, 1<<40
	questions, w := io.Pipe()
	defer questions.Close()
	c.stdin = questions
	go func() {
		lines := bufio.NewWriterSize(w, 64<<10)
		for i := range blobs {
			lines.WriteString(blobs[i].OID)
			if lines.WriteByte('\n') != nil {
				break
			}
		}
		w.CloseWithError(lines.Flush())
	}()
	return c.stream(ctx, func(r io.Reader) error {
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

// branch is what some of the commits have at a path.
type branch struct {
	kind Kind
	oid  string
	in   uint64
}

// mergeBranch adds b, joined with one that is the same but for its commits.
func mergeBranch(to []branch, b branch) []branch {
	for i := range to {
		if to[i].oid == b.oid && to[i].kind == b.kind {
			to[i].in |= b.in
			return to
		}
	}
	return append(to, b)
}

// dirNode is a directory of one commit or more: from are its different tree
// objects.
type dirNode struct {
	from    []branch
	entries []dirEntry // by name, directories as if their names ended with a slash
}

// dirEntry is a name: a blob in some commits, or a directory in some.
type dirEntry struct {
	name  string
	blobs []branch
	below *dirNode
}

// grow reads the whole tree below a node, a level at a time so that many
// questions are under way at once.
func (root *dirNode) grow(from treeReader, most int) error {
	level, total := []*dirNode{root}, 0
	for depth := 0; len(level) > 0; depth++ {
		if depth > maxDepth {
			return fmt.Errorf("more than %d levels of directories: %w", maxDepth, ErrTooLarge)
		}
		var oids []string
		var owners []int // index in level, then in from
		for i, n := range level {
			for range n.from {
				owners = append(owners, i)
			}
			for _, f := range n.from {
				oids = append(oids, f.oid)
			}
		}
		seen, node := 0, -1
		var gather map[string]int
		err := from.trees(oids, func(i int, entries []treeEntry) error {
			if owners[i] != node {
				node, seen = owners[i], 0
				gather = nil
			}
			n := level[node]
			if len(n.from) > 1 && gather == nil {
				gather = make(map[string]int, len(entries))
			}
			n.take(n.from[seen].in, entries, gather)
			seen++
			total += len(entries)
			if total > most {
				return fmt.Errorf("more than %d entries: %w", maxEntries, ErrTooLarge)
			}
			return nil
		})
		if err != nil {
			return err
		}
		level = below(level)
	}
	return nil
}

// take adds the entries of one of the node's trees. at finds entries by name
// when there are several trees.
func (n *dirNode) take(in uint64, entries []treeEntry, at map[string]int) {
	if at == nil {
		n.entries = make([]dirEntry, 0, len(entries))
	}
	for _, e := range entries {
		if e.kind == Submodule {
			continue
		}
		i, known := -1, false
		if at != nil {
			i, known = at[e.name]
		}
		if !known {
			i = len(n.entries)
			n.entries = append(n.entries, dirEntry{name: e.name})
			if at != nil {
				at[e.name] = i
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

// below are the directories in the nodes of a level.
func below(level []*dirNode) []*dirNode {
	var next []*dirNode
	for _, n := range level {
		for i := range n.entries {
			if d := n.entries[i].below; d != nil {
				next = append(next, d)
			}
		}
	}
	return next
}

// union gathers blobs in the order in which they are met.
type union struct {
	blobs []Blob
	index map[string]int // by object id
}

// emit walks a grown tree in the order of git.
func (u *union) emit(n *dirNode, path string) {
	if len(n.from) > 1 {
		slices.SortFunc(n.entries, func(a, b dirEntry) int { return cmp.Compare(a.sortName(), b.sortName()) })
	}
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
			u.emit(e.below, full)
			e.below = nil // no longer needed
		}
	}
}

func (e *dirEntry) sortName() string {
	if e.below != nil && len(e.blobs) == 0 {
		return e.name + "/"
	}
	return e.name
}
