package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/shoalsearch/shoal/shard/git/pack"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// foreign is a repository in a directory of this machine, which belongs to
// whoever may write there and not to us. Nothing in it is believed:
//
//   - Where its parts lead (a symbolic link, a .git file, commondir,
//     alternates) has to lie inside the directory of the connection, and
//     outside of the repository itself has to belong to the repository's
//     owner. Who may write one directory shall not show others what only we
//     may read.
//   - Its files are opened below handles of its directories, only ordinary
//     ones, and read up to a bound.
//   - Git is never run in it: see [foreign.view].
//
// It must be closed.
type foreign struct {
	asked  string // the directory as it was named
	root   string // without symbolic links
	within string // without symbolic links: nothing leads out of it
	owner  uint32 // of root

	head   *os.Root // the git directory, which has HEAD
	common *os.Root // has references and objects: the same, except in an added work tree
	stores []store  // where objects are: its own first, then what it borrows from
	bytes  int64    // of the objects, once scanned
	loose  bool     // some objects are in no pack, once scanned
}

// store is a directory of objects.
type store struct {
	path string
	dir  *os.Root
}

// Bounds of what is read of a foreign repository.
const (
	maxPointer    = 64 << 10 // bytes of a file that names a directory
	maxHead       = 4 << 10
	maxConfig     = 1 << 20
	maxShallow    = 16 << 20
	maxViewRefs   = 256 << 20 // bytes of references that are copied
	maxStores     = 16        // directories that objects are borrowed from
	maxStoreFiles = 20_000_000
)

// openForeign opens the repository whose root is dir. within is the directory
// that nothing of it may lead out of; empty is the one above dir. An error
// that is fs.ErrNotExist means that dir is not the root of a repository, one
// that is ErrOutside that it leads out.
func openForeign(dir, within string) (_ *foreign, err error) {
	f := &foreign{asked: filepath.Clean(dir)}
	defer func() {
		if err != nil {
			f.close()
		}
	}()

	// Where the repository may reach, and where it is.
	within = filepath.Clean(cmp.Or(within, filepath.Dir(f.asked)))
	if f.within, err = filepath.EvalSymlinks(within); err != nil {
		return nil, err
	}

	if err := f.enter(within); err != nil {
		return nil, err
	}

	// Either the directory has a .git, or it is a git directory itself.
	dot, err := f.dotGit()
	if err != nil {
		return nil, err
	}

	for _, path := range []string{dot, f.root} {
		if path == "" {
			continue
		}
		if ok, err := f.openGitDir(path); ok || err != nil {
			return f, err
		}
	}
	return nil, fmt.Errorf("%s is not the root of a git repository: %w", f.asked, fs.ErrNotExist)
}

func (f *foreign) close() {
	for _, s := range f.stores {
		s.dir.Close()
	}
	for _, r := range []*os.Root{f.head, f.common} {
		if r != nil {
			r.Close()
		}
	}
	f.stores, f.head, f.common = nil, nil, nil
}

// enter finds the root. A symbolic link on the way from the directory of the
// connection to it has to belong to the owner of what it leads to, or to root.
func (f *foreign) enter(within string) (err error) {
	if f.root, err = filepath.EvalSymlinks(f.asked); err != nil {
		return err
	}
	info, err := os.Stat(f.root)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory: %w", f.asked, fs.ErrNotExist)
	}

	// Everything is compared with the owner of the root.
	f.owner = ownerOf(info)
	if !inside(f.within, f.root) {
		return f.outside(f.asked, f.root)
	}

	// Each link below the directory of the connection.
	rest, err := filepath.Rel(within, f.asked)
	if err != nil || !filepath.IsLocal(rest) {
		return f.outside(f.asked, f.root)
	}

	// Step by step, so that a link in the middle is seen too.
	at := within
	for name := range strings.SplitSeq(rest, string(filepath.Separator)) {
		at = filepath.Join(at, name)
		link, err := os.Lstat(at)
		if err != nil {
			return err
		}

		if owner := ownerOf(link); link.Mode()&fs.ModeSymlink != 0 && owner != 0 && owner != f.owner {
			return fmt.Errorf("%s is a symbolic link of user %d to a directory of user %d: %w", at, owner, f.owner, ErrOutside)
		}
	}
	return nil
}

// dotGit is where the .git of the root leads; empty when there is none.
func (f *foreign) dotGit() (string, error) {
	path := filepath.Join(f.root, ".git")
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case info.IsDir(), info.Mode()&fs.ModeSymlink != 0:
		return path, nil
	case !info.Mode().IsRegular():
		return "", nil
	}

	// A file with a line that names a directory, as added work trees have it.
	root, err := os.OpenRoot(f.root)
	if err != nil {
		return "", err
	}
	defer root.Close()

	text, err := pack.ReadFile(root, ".git", maxPointer)
	if errors.Is(err, pack.ErrSpecial) || errors.Is(err, pack.ErrTooLarge) {
		return "", nil
	}

	if err != nil {
		return "", err
	}

	// The line is "gitdir: <path>", relative to the work tree.
	to, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
	if !ok {
		return "", nil
	}
	return absolute(f.root, to), nil
}

// openGitDir opens a git directory if it is one by git's own test: it has
// HEAD, and objects and references, its own or those of the repository that a
// work tree belongs to.
func (f *foreign) openGitDir(path string) (ok bool, err error) {
	dir, err := f.place(path)
	if err != nil || dir == "" {
		return false, err
	}

	// Without HEAD it is no git directory, which is no error.
	if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err != nil {
		return false, nil
	}

	head, err := os.OpenRoot(dir)
	if err != nil {
		return false, err
	}

	// From here on closing f gives it back.
	f.head = head
	if ok, err = f.openCommon(dir); !ok {
		f.close()
	}
	return ok, err
}

// openCommon opens the directory that the work trees of a repository share, and
// its objects. commondir names it; without that file it is the git directory.
func (f *foreign) openCommon(gitDir string) (ok bool, err error) {
	dir := gitDir
	text, err := pack.ReadFile(f.head, "commondir", maxPointer)
	if err == nil {
		if dir, err = f.place(absolute(gitDir, strings.TrimSpace(string(text)))); err != nil || dir == "" {
			return false, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}

	// Opened once: what is looked at below is in this directory, whatever happens to its name.
	if f.common, err = os.OpenRoot(dir); err != nil {
		return false, err
	}

	for _, name := range []string{"objects", "refs"} {
		info, err := f.common.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}

		if info.Mode()&fs.ModeSymlink != 0 {
			return false, fmt.Errorf("%s is a symbolic link: %w", filepath.Join(dir, name), ErrOutside)
		}

		if !info.IsDir() {
			return false, nil
		}
	}
	return true, f.addStore(filepath.Join(dir, "objects"))
}

// addStore opens a directory of objects, and those that it borrows from.
func (f *foreign) addStore(path string) error {
	for _, s := range f.stores {
		if s.path == path {
			return nil
		}
	}

	if len(f.stores) == maxStores {
		return fmt.Errorf("%s borrows objects from more than %d directories: %w", f.asked, maxStores, ErrTooLarge)
	}

	// Kept open, so that what is read later lies in the same place.
	dir, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	f.stores = append(f.stores, store{path, dir})

	// Where it borrows objects from, if it does.
	text, err := pack.ReadFile(dir, "info/alternates", maxPointer)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}

	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}

		if line[0] == '"' {
			return fmt.Errorf("%s borrows objects from a directory of a quoted name: %w", f.asked, ErrOutside)
		}

		// Each of them may borrow from others in its turn.
		to, err := f.place(absolute(path, line))
		if err != nil {
			return fmt.Errorf("alternates: %w", err)
		}

		if to == "" {
			continue // git says what is missing
		}

		if err := f.addStore(to); err != nil {
			return err
		}
	}
	return nil
}

// place follows a path of the repository to a directory, without symbolic
// links; empty when there is none. One that is not for us to read is
// ErrOutside.
func (f *foreign) place(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", nil
	}
	if err != nil {
		return "", err
	}

	if !inside(f.within, real) {
		return "", f.outside(path, real)
	}

	info, err := os.Stat(real)
	if err != nil || !info.IsDir() {
		return "", nil
	}

	// What lies outside of the repository must belong to its owner.
	if owner := ownerOf(info); !inside(f.root, real) && owner != f.owner {
		return "", fmt.Errorf("%s of user %d leads to %s of user %d: %w", f.asked, f.owner, real, owner, ErrOutside)
	}
	return real, nil
}

func (f *foreign) outside(path, real string) error {
	switch path {
	// The repository itself may be meant: then its own place is what has to be named.
	case f.asked:
		return fmt.Errorf("%s leads to %s, which is not below %s: name %s in the url of a connection if it is meant: %w", f.asked, real, f.within, real, ErrOutside)
	case real:
		return fmt.Errorf("%s leads to %s, which is not below %s: %w", f.asked, real, f.within, ErrOutside)
	}
	return fmt.Errorf("%s (by %s) leads to %s, which is not below %s: %w", f.asked, path, real, f.within, ErrOutside)
}

// inside reports whether path is dir or below it. Both are clean, absolute and
// without symbolic links.
func inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func absolute(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

func ownerOf(info fs.FileInfo) uint32 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Uid
	}
	return 0
}

// config is the text of the configuration; empty when there is none.
func (f *foreign) config() ([]byte, error) {
	text, err := pack.ReadFile(f.common, "config", maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// has reports whether the repository has a file or directory.
func (f *foreign) has(name string) bool {
	_, err := f.common.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// partial reports whether its own packs need not hold whole histories.
func (f *foreign) partial() bool { return f.has("shallow") || len(f.stores) > 1 }

// scan looks at every file that git might open among the objects: all have to
// be ordinary ones. It adds up what they take on disk.
func (f *foreign) scan(ctx context.Context) error {
	f.bytes, f.loose = 0, false
	files := 0
	for _, s := range f.stores {
		err := pack.Walk(s.dir, ".", func(name string, d fs.DirEntry) error {
			if !d.Type().IsRegular() {
				return fmt.Errorf("%s: %w", name, pack.ErrSpecial)
			}

			if files++; files > maxStoreFiles {
				return fmt.Errorf("more than %d files of objects: %w", maxStoreFiles, ErrTooLarge)
			}

			if info, err := d.Info(); err == nil { // else it is gone meanwhile
				f.bytes += run.Occupied(info)
			}

			// A loose object lies in a directory named by the first byte of its id.
			f.loose = f.loose || len(path.Dir(name)) == 2
			return ctx.Err()
		})
		if err != nil {
			return fmt.Errorf("look through %s: %w", s.path, err)
		}
	}
	return nil
}

// listing reads the references; pack.ErrAskGit when git has to look at a view.
func (f *foreign) listing() (*listing, error) {
	text, err := f.config()
	if err != nil || f.head == nil || !ordinary(text) || f.has("commondir") {
		return nil, pack.ErrAskGit
	}

	// Loose and packed references, read without git.
	all, err := pack.Refs(f.common)
	if err != nil {
		return nil, err
	}

	// Branches and tags; without any, git knows better what HEAD is.
	there := &listing{refs: map[string]string{}}
	for name, oid := range all {
		if strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") {
			there.refs[name] = oid
		}
	}

	if len(there.refs) == 0 {
		return nil, pack.ErrAskGit
	}

	// HEAD is a branch or a commit.
	text, err = pack.ReadFile(f.head, "HEAD", maxHead)
	if err != nil {
		return nil, err
	}

	value := strings.TrimSpace(string(text))
	to, symbolic := strings.CutPrefix(value, "ref: ")
	switch {
	case symbolic && there.refs[to] != "":
		there.symref, there.head = to, there.refs[to]
	case symbolic: // unborn
	case pack.IsID(value):
		there.head = value
	default:
		return nil, pack.ErrAskGit
	}
	return there, nil
}

// ordinary reports whether nothing in a configuration changes what the
// references of a repository are, or which of them it shows.
func ordinary(config []byte) bool {
	small := bytes.ToLower(config)
	for _, word := range []string{"refstorage", "hiderefs", "namespace", "include", "worktreeconfig", "partialclone"} {
		if bytes.Contains(small, []byte(word)) {
			return false
		}
	}
	return true
}

// copyPacks copies the packs of a scanned repository into a directory of ours,
// with their indexes if they are believed, and returns their paths there. A
// pack without its index, one that promises objects of another place, or one
// with holes, which no pack of git has, ends it.
func (f *foreign) copyPacks(ctx context.Context, to string, indexes bool) (packs []string, err error) {
	own := f.stores[0].dir

	// Packs with all their objects; a promisor leaves some elsewhere.
	var names []string
	err = pack.Walk(own, "pack", func(name string, _ fs.DirEntry) error {
		if strings.HasSuffix(name, ".promisor") {
			return errors.New("a partial clone")
		}

		if base, ok := strings.CutSuffix(name, ".pack"); ok && strings.HasPrefix(name, "pack/pack-") {
			names = append(names, base)
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}

	for _, name := range names {
		at := filepath.Join(to, path.Base(name))

		if err := ctx.Err(); err != nil {
			return nil, err
		}

		if err := copyWhole(own, name+".pack", at+".pack"); err != nil {
			return nil, err
		}

		// The index last: git looks for a pack only where there is an index.
		if indexes {
			if err := copyWhole(own, name+".idx", at+".idx"); err != nil {
				return nil, err
			}
		}
		packs = append(packs, at)
	}
	return packs, nil
}

// trusted reports whether the indexes of the packs were made by somebody who
// may do with our files as he likes. An index says which object is where: a
// forged one would show other contents under the id of an object, also to
// those who have that object from elsewhere.
func (f *foreign) trusted() bool { return f.owner == 0 || int(f.owner) == os.Geteuid() }

// copyWhole copies a file that has no holes to a new one.
func copyWhole(from *os.Root, name, to string) error {
	in, info, err := pack.OpenFile(from, name)
	if err != nil {
		return err
	}
	defer in.Close()

	// Blocks may be compressed by the file system, which gains nothing on what
	// is compressed already.
	const slack = 1 << 20
	if info.Size() > 4*run.Occupied(info)+slack {
		return fmt.Errorf("%s has holes", name)
	}
	return copyTo(to, io.LimitReader(in, info.Size()))
}

func copyTo(to string, in io.Reader) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil { // copy_file_range: shared blocks where the file system can
		out.Close()
		return err
	}
	return out.Close()
}
