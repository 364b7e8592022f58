package git

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/node/lru"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// Kind is the kind of an entry in a tree.
type Kind uint8

// The kinds of entries.
const (
	File Kind = iota
	Executable
	Symlink // its content is the path it leads to
	Dir
	Submodule // its OID is a commit of another repository
)

// IsBlob reports whether the entry is a blob.
func (k Kind) IsBlob() bool { return k <= Symlink }

// Mode returns the mode as git writes it.
func (k Kind) Mode() uint32 {
	return [...]uint32{0o100644, 0o100755, 0o120000, 0o040000, 0o160000}[k]
}

// files reads the files of commits.
type files struct {
	*base
	listings *lru.Cache[string, []Entry] // by commit
}

// Entry is an entry of a tree.
type Entry struct {
	Path string // from the root, as bytes in git
	Kind Kind
	OID  string // hex
	Size int64  // bytes of a blob; -1 for others, and if sizes were not requested
}

// Limits against malicious trees.
const (
	maxTree    = 32 << 20 // bytes of one tree object
	maxName    = 4096     // bytes of a name
	maxEntries = 20_000_000
	maxListed  = 200_000  // directories read for one answer
	maxPaths   = 32 << 20 // total bytes of the paths in an answer
)

// treeEntry is an entry as a tree object stores it.
type treeEntry struct {
	name string
	kind Kind
	oid  string // hex
}

// parseTree reads a tree object of a repository whose object ids have idBytes bytes. It omits names
// that could lead out of a directory, and names that no file system allows: git refuses them too.
// The entries follow each other:
//
//	mode in octal, blank, name, NUL, id
//	31 30 30 36 34 34  20  61 2e 63  00  <20 bytes>        "100644 a.c"
func parseTree(b []byte, idBytes int) ([]treeEntry, error) {
	var out []treeEntry
	for len(b) > 0 {
		mode, at, id, rest, ok := nextInTree(b, idBytes)
		bits, err := strconv.ParseUint(string(mode), 8, 32)
		if !ok || err != nil || len(at) == 0 {
			return nil, errors.New("malformed tree object")
		}
		b = rest

		name := string(at)
		if name == "." || name == ".." || len(name) > maxName || strings.Contains(name, "/") {
			continue
		}
		out = append(out, treeEntry{name: name, kind: kindOfMode(bits), oid: hex.EncodeToString(id)})
	}
	return out, nil
}

// kindOfMode returns the kind that git sees in a mode. Any mode except the special ones is a file.
func kindOfMode(mode uint64) Kind {
	// The highest four bits tell the kind, as in the modes of a file system.
	switch mode & 0o170000 {
	case 0o040000:
		return Dir
	case 0o120000:
		return Symlink
	case 0o160000:
		return Submodule
	}

	if mode&0o111 != 0 {
		return Executable
	}
	return File
}

// askAhead is how many questions a reader sends before it reads their answers. Each takes 65 bytes
// and a verb, and all must fit into a pipe of 64 KiB.
const askAhead = 400

// trees reads many tree objects in the given order, and calls use with the index and the entries of
// each.
func (c reader) trees(oids []string, use func(i int, entries []treeEntry) error) error {
	useContent := func(i int, content []byte) error {
		entries, err := parseTree(content, len(oids[i])/2)
		if err != nil {
			return fmt.Errorf("tree %s: %w", oids[i], err)
		}
		return use(i, entries)
	}

	// Read trees from the packs as long as they are there.
	for first := 0; first < len(oids); {
		if err := c.Live(); err != nil {
			return err
		}
		if info, content, ok := c.Packs.Small(oids[first]); ok && info.Kind == "tree" {
			if err := useContent(first, content); err != nil {
				return err
			}
			first++
			continue
		}

		// Ask git for the next trees, many at a time.
		part := oids[first:min(len(oids), first+askAhead)]
		if err := c.Ask("contents", part...); err != nil {
			return err
		}
		for i, oid := range part {
			content, err := c.readAnswer(oid, "tree", maxTree)
			if err != nil {
				return err
			}

			if err := useContent(first+i, content); err != nil {
				return err
			}
		}
		first += len(part)
	}
	return nil
}

// readAnswer reads the content of an object that was asked for before. It returns an error if the
// object is of another kind, or has more than limit bytes.
func (c reader) readAnswer(oid, kind string, limit int64) ([]byte, error) {
	info, err := c.Answer()
	if err != nil {
		return nil, err
	}

	if info.Kind != kind {
		return nil, fmt.Errorf("object %s is missing or not a %s", oid, kind)
	}

	if info.Size > limit {
		return nil, fmt.Errorf("%s %s: %w", kind, oid, ErrTooLarge)
	}

	content := make([]byte, info.Size)
	if _, err := io.ReadFull(c.Out, content); err != nil {
		return nil, err
	}

	// A newline follows the content.
	if _, err := c.Out.Discard(1); err != nil {
		return nil, err
	}

	c.Aligned = c.Asked == 0
	return content, nil
}

// rootTree returns the tree of a commit.
func (c reader) rootTree(commit string) (string, error) {
	if info, content, ok := c.Packs.Small(commit); ok && info.Kind == "commit" {
		if tree, ok := treeOf(content); ok {
			return tree, nil
		}
	}

	// The commit itself is not in a pack, so let git find the tree.
	info, err := c.Info(commit + "^{tree}")
	if err != nil {
		return "", err
	}
	if info.Kind != "tree" {
		return "", fmt.Errorf("%s: %w", commit, ErrNoRef)
	}
	return info.OID, nil
}

// findEntry returns the entry of a commit at a path, which may be of any kind. The error is ErrNoPath
// if there is none.
func (c reader) findEntry(commit, path string) (treeEntry, error) {
	root, err := c.rootTree(commit)
	if err != nil {
		return treeEntry{}, err
	}

	at := treeEntry{kind: Dir, oid: root}
	if path == "" {
		return at, nil
	}

	// Go down one directory for each element of the path.
	for name := range strings.SplitSeq(path, "/") {
		if at.kind != Dir {
			return treeEntry{}, fmt.Errorf("%q: %w", path, ErrNoPath)
		}

		found := false
		err := c.trees([]string{at.oid}, func(_ int, entries []treeEntry) error {
			for _, e := range entries {
				if e.name == name {
					at, found = e, true
				}
			}
			return nil
		})
		if err != nil {
			return treeEntry{}, err
		}

		if !found {
			return treeEntry{}, fmt.Errorf("%q: %w", path, ErrNoPath)
		}
	}
	return at, nil
}

// cleanPath checks a path from outside and returns it without slashes at its ends and without ./ in
// front; "" is the root.
func cleanPath(path string) (string, error) {
	for strings.HasPrefix(path, "./") {
		path = strings.TrimLeft(path[2:], "/")
	}
	path = strings.Trim(path, "/")
	if path == "" || path == "." {
		return "", nil
	}

	// No file system allows a longer path, and a NUL would end a question to git.
	if len(path) > 4096 || strings.IndexByte(path, 0) >= 0 {
		return "", fmt.Errorf("%.80q: %w", path, ErrBadPath)
	}
	for name := range strings.SplitSeq(path, "/") {
		if name == "" || name == "." || name == ".." {
			return "", fmt.Errorf("%.80q: %w", path, ErrBadPath)
		}
	}
	return path, nil
}

// ListOptions selects entries of a tree.
type ListOptions struct {
	Depth int // levels below the path; 0 means 1, negative means all
	Max   int // entries; 0 means 100,000
	Sizes bool

	NoFiles bool // list directories only
	NoDirs  bool // directories do not count towards Max, and are listed only if they lead to a file
}

// List lists the entries of a directory and of those below it, up to a depth. The listing goes one
// level at a time; in each directory, directories come before files, then names are in byte order.
// Paths are from the root. cut reports that Max left out something.
func (f *files) List(ctx context.Context, commit, path string, o ListOptions) (entries []Entry, cut bool, err error) {
	path, err = cleanPath(path)
	if err != nil {
		return nil, false, err
	}

	if err := checkCommit(commit); err != nil {
		return nil, false, err
	}

	if o.Max <= 0 {
		o.Max = 100_000
	}
	if o.Depth == 0 {
		o.Depth = 1
	}

	err = f.with(ctx, func(c reader) error {
		at, err := c.findEntry(commit, path)
		if err != nil {
			return err
		}

		if at.kind != Dir {
			return fmt.Errorf("%q: %w", path, ErrNotDir)
		}

		// Find sizes only if they are requested.
		entries, cut, err = c.list(at.oid, path, o)
		if err == nil && o.Sizes {
			err = c.sizes(len(entries), func(i int) (string, *int64) {
				if !entries[i].Kind.IsBlob() {
					return "", nil
				}
				return entries[i].OID, &entries[i].Size
			})
		}
		return err
	})
	return entries, cut, err
}

// list lists a tree one level at a time, and reads only the directories that Depth and Max need. cut
// reports whether a limit left out entries.
func (c reader) list(root, path string, o ListOptions) (out []Entry, cut bool, err error) {
	l := &lister{o: o}
	level := []listedDir{{path, root}}
	for depth := 1; len(level) > 0 && (o.Depth < 0 || depth <= o.Depth) && depth <= run.MaxDepth; depth++ {
		// Read only as many directories as the list has room for.
		if left := o.Max - l.counted; len(level) > left+1 && !o.NoDirs && !o.NoFiles {
			level = level[:left+1]
		}

		oids := make([]string, len(level))
		for i, d := range level {
			oids[i] = d.oid
		}

		l.below = nil
		err := c.trees(oids, func(i int, entries []treeEntry) error { return l.addDirectory(level[i].path, entries) })
		if l.cut {
			return l.out, true, nil
		}

		if err != nil {
			return l.out, false, err
		}

		level = l.below
	}
	return l.out, false, nil
}

// listedDir is a directory to read.
type listedDir struct{ path, oid string }

// lister collects the entries of directories up to the limits.
type lister struct {
	o       ListOptions
	out     []Entry
	below   []listedDir // directories in those of the current level: the next level
	counted int         // number of entries that count towards Max
	dirs    int         // number of directories that do not count towards Max
	bytes   int         // bytes of all paths
	cut     bool        // a limit left out something
}

// addDirectory sorts the entries of a directory, adds them to l.out, and adds its directories to
// l.below. At a limit it sets l.cut and returns run.ErrStop.
func (l *lister) addDirectory(path string, entries []treeEntry) error {
	slices.SortFunc(entries, directoriesFirst)
	for _, e := range entries {
		switch {
		case l.o.NoFiles && e.kind != Dir:
			continue

		// With NoDirs, directories have a limit of their own.
		case l.o.NoDirs && e.kind == Dir && l.dirs < maxListed:
			l.dirs++
		case l.counted == l.o.Max, l.o.NoDirs && e.kind == Dir:
			l.cut = true
			return run.ErrStop
		default:
			l.counted++
		}

		full := join(path, e.name)
		if l.bytes += len(full); l.bytes > maxPaths {
			l.cut = true
			return run.ErrStop
		}
		l.out = append(l.out, Entry{Path: full, Kind: e.kind, OID: e.oid, Size: -1})

		if e.kind == Dir {
			l.below = append(l.below, listedDir{full, e.oid})
		}
	}
	return nil
}

// directoriesFirst compares two entries in the order of a listing.
func directoriesFirst(a, b treeEntry) int {
	if (a.kind == Dir) != (b.kind == Dir) {
		if a.kind == Dir {
			return -1
		}
		return 1
	}
	return strings.Compare(a.name, b.name)
}

// join returns the path of a name in a directory.
func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// sizes finds the sizes of n blobs. where returns the id of a blob and the place for its size, or a
// nil place to skip it. Git answers for blobs that are in no pack.
func (c reader) sizes(n int, where func(i int) (oid string, size *int64)) error {
	var ask sizeBatch
	for i := range n {
		oid, place := where(i)
		if place == nil {
			continue
		}

		// Reading packs starts no git, which would stop with ctx, so check ctx here.
		if i&255 == 0 {
			if err := c.Live(); err != nil {
				return err
			}
		}

		if id, err := hex.DecodeString(oid); err == nil {
			if info, ok := c.Packs.Info(id); ok && info.Kind == "blob" {
				*place = info.Size
				continue
			}
		}

		ask.oids, ask.places = append(ask.oids, oid), append(ask.places, place)
		if len(ask.oids) == askAhead {
			if err := ask.flush(c); err != nil {
				return err
			}
		}
	}
	return ask.flush(c)
}

// sizeBatch is a batch of blobs for whose sizes to ask git, and the places for these sizes.
type sizeBatch struct {
	oids   []string
	places []*int64
}

// flush asks git for the sizes of the blobs in the batch, stores each in its place, and empties the
// batch.
func (a *sizeBatch) flush(c reader) error {
	if len(a.oids) == 0 {
		return nil
	}
	if err := c.Ask("info", a.oids...); err != nil {
		return err
	}

	// Answers come in the order of the questions.
	for i, place := range a.places {
		info, err := c.Answer()
		if err != nil {
			return err
		}

		if info.Kind != "blob" {
			return fmt.Errorf("object %s is missing or not a blob", a.oids[i])
		}

		*place = info.Size
	}

	c.Aligned = c.Asked == 0
	a.oids, a.places = a.oids[:0], a.places[:0]
	return nil
}

// Stat returns the entry of a commit at a path; "" is the root directory. It does not look up the
// size of a file.
func (f *files) Stat(ctx context.Context, commit, path string) (Entry, error) {
	path, err := cleanPath(path)
	if err != nil {
		return Entry{}, err
	}
	if err := checkCommit(commit); err != nil {
		return Entry{}, err
	}

	var e treeEntry
	err = f.with(ctx, func(c reader) error {
		var err error
		e, err = c.findEntry(commit, path)
		return err
	})
	return Entry{Path: path, Kind: e.kind, OID: e.oid, Size: -1}, err
}
