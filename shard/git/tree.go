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

// Kind is what a tree holds at a path.
type Kind uint8

// The kinds of entries.
const (
	File Kind = iota
	Executable
	Symlink // its content is the target
	Dir
	Submodule // its OID is a commit of another repository
)

// IsBlob reports whether the entry has content of its own.
func (k Kind) IsBlob() bool { return k <= Symlink }

// Mode is the mode as git writes it.
func (k Kind) Mode() uint32 {
	return [...]uint32{0o100644, 0o100755, 0o120000, 0o040000, 0o160000}[k]
}

// files reads what is in the files of commits.
type files struct {
	*base
	listings *lru.Cache[string, []Entry] // of files, by commit
}

// Entry is one line of a tree.
type Entry struct {
	Path string // from the root, bytes as git has them
	Kind Kind
	OID  string // hex
	Size int64  // bytes of a blob; -1 for others, and where sizes were not asked for
}

// limits against trees made to hurt.
const (
	maxTree    = 32 << 20 // bytes of one tree object
	maxName    = 4096     // bytes of a name
	maxEntries = 20_000_000
	maxListed  = 200_000  // directories in the answer to one question
	maxPaths   = 32 << 20 // bytes of the paths in it
)

// treeEntry is a line of a tree object as it is stored.
type treeEntry struct {
	name string
	kind Kind
	oid  string // hex
}

// parseTree reads a tree object of a repository whose object ids have idBytes
// bytes. Names that could lead out of a directory, and those that no file system
// has, are left out: git refuses them, too. The entries follow each other:
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

// kindOfMode is what git makes of a mode: any that is not one of the special
// ones is a file.
func kindOfMode(mode uint64) Kind {
	// The highest four bits say what it is, as in the modes of a file system.
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

// askAhead is how many questions are sent before their answers are read: 65
// bytes and a verb each, they must fit the pipe of 64 KiB.
const askAhead = 400

// trees reads many tree objects, in the order given.
func (c reader) trees(oids []string, use func(i int, entries []treeEntry) error) error {
	parsed := func(i int, content []byte) error {
		entries, err := parseTree(content, len(oids[i])/2)
		if err != nil {
			return fmt.Errorf("tree %s: %w", oids[i], err)
		}
		return use(i, entries)
	}

	// From the packs where they are there.
	for first := 0; first < len(oids); {
		if err := c.Live(); err != nil {
			return err
		}
		if info, content, ok := c.Packs.Small(oids[first]); ok && info.Kind == "tree" {
			if err := parsed(first, content); err != nil {
				return err
			}
			first++
			continue
		}

		// Git is asked for the next ones, many at a time.
		part := oids[first:min(len(oids), first+askAhead)]
		if err := c.Ask("contents", part...); err != nil {
			return err
		}
		for i, oid := range part {
			content, err := c.next(oid, "tree", maxTree)
			if err != nil {
				return err
			}

			if err := parsed(first+i, content); err != nil {
				return err
			}
		}
		first += len(part)
	}
	return nil
}

// next reads the answer to a question that was sent before.
func (c reader) next(oid, kind string, limit int64) ([]byte, error) {
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

	// A newline follows the contents.
	if _, err := c.Out.Discard(1); err != nil {
		return nil, err
	}

	c.Aligned = c.Asked == 0
	return content, nil
}

// rootTree is the tree of a commit.
func (c reader) rootTree(commit string) (string, error) {
	if info, content, ok := c.Packs.Small(commit); ok && info.Kind == "commit" {
		if tree, ok := treeOf(content); ok {
			return tree, nil
		}
	}

	// Not in a pack as such, as a tag of it: git finds the tree.
	info, err := c.Info(commit + "^{tree}")
	if err != nil {
		return "", err
	}
	if info.Kind != "tree" {
		return "", fmt.Errorf("%s: %w", commit, ErrNoRef)
	}
	return info.OID, nil
}

// find walks to a path, whose last element may be anything.
func (c reader) find(commit, path string) (treeEntry, error) {
	root, err := c.rootTree(commit)
	if err != nil {
		return treeEntry{}, err
	}

	at := treeEntry{kind: Dir, oid: root}
	if path == "" {
		return at, nil
	}

	// Down one directory for each part of the path.
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

// cleanPath checks a path from outside and returns its one form: without slashes
// at its ends and without ./ in front; "" is the root.
func cleanPath(path string) (string, error) {
	for strings.HasPrefix(path, "./") {
		path = strings.TrimLeft(path[2:], "/")
	}
	path = strings.Trim(path, "/")
	if path == "" || path == "." {
		return "", nil
	}

	// More than any file system takes, and what ends a question to git.
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

// ListOptions says what of a tree is wanted.
type ListOptions struct {
	Depth int // levels below the path; 0 is 1, negative all
	Max   int // entries; 0 is 100,000
	Sizes bool

	NoFiles bool // list directories only
	NoDirs  bool // directories do not count towards Max; they are listed where they lead to what does
}

// List lists a directory: its entries and those below to a depth, a level
// at a time, directories before files in each directory, then in byte order.
// Paths are from the root. cut: Max left something out.
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
		at, err := c.find(commit, path)
		if err != nil {
			return err
		}

		if at.kind != Dir {
			return fmt.Errorf("%q: %w", path, ErrNotDir)
		}

		// Sizes are asked for only if they are wanted.
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

// list walks a tree a level at a time, and reads only what Depth and Max ask for.
func (c reader) list(root, path string, o ListOptions) (out []Entry, cut bool, err error) {
	l := &lister{o: o}
	level := []listedDir{{path, root}}
	for depth := 1; len(level) > 0 && (o.Depth < 0 || depth <= o.Depth) && depth <= run.MaxDepth; depth++ {
		// Only as many directories as can still give an entry are read.
		if left := o.Max - l.counted; len(level) > left+1 && !o.NoDirs && !o.NoFiles {
			level = level[:left+1]
		}

		oids := make([]string, len(level))
		for i, d := range level {
			oids[i] = d.oid
		}

		l.below = nil
		err := c.trees(oids, func(i int, entries []treeEntry) error { return l.add(level[i].path, entries) })
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

// listedDir is a directory that is to be read.
type listedDir struct{ path, oid string }

// lister gathers the entries of directories up to bounds.
type lister struct {
	o       ListOptions
	out     []Entry
	below   []listedDir // of the level that is read
	counted int         // entries that count towards Max
	dirs    int         // directories that do not
	bytes   int         // of paths
	cut     bool        // a bound left something out
}

// add takes the entries of a directory; errStop at a bound.
func (l *lister) add(path string, entries []treeEntry) error {
	slices.SortFunc(entries, directoriesFirst)
	for _, e := range entries {
		switch {
		case l.o.NoFiles && e.kind != Dir:
			continue

		// With NoDirs directories are walked but not listed, up to a bound of their own.
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

// directoriesFirst is the order of a listing.
func directoriesFirst(a, b treeEntry) int {
	if (a.kind == Dir) != (b.kind == Dir) {
		if a.kind == Dir {
			return -1
		}
		return 1
	}
	return strings.Compare(a.name, b.name)
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// sizes finds the sizes of n blobs; where gives the id and the place for the
// answer, or a nil place for none. Git is asked for those that are in no pack.
func (c reader) sizes(n int, where func(i int) (oid string, size *int64)) error {
	var ask askedSizes
	for i := range n {
		oid, place := where(i)
		if place == nil {
			continue
		}

		// The packs are read without git, which would be killed with its user.
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

// askedSizes is blobs that git is asked for, and the places for their sizes.
type askedSizes struct {
	oids   []string
	places []*int64
}

// flush asks for those that were gathered.
func (a *askedSizes) flush(c reader) error {
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

// Stat finds what a commit has at a path, "" being its root directory. The
// size of a file is not looked up.
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
		e, err = c.find(commit, path)
		return err
	})
	return Entry{Path: path, Kind: e.kind, OID: e.oid, Size: -1}, err
}
