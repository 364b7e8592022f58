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

// foreign is a repository in a directory of this machine. Other users may write there, so nothing
// in it is trusted:
//
//   - Its parts may lead elsewhere: by a symbolic link, a .git file, commondir or alternates.
//     The targets must be inside the directory of the connection. Outside of the repository
//     itself they must belong to the owner of the repository. A user who may write one
//     directory must not be able to show others what only we may read.
//   - The package opens files below directory handles, opens only regular files, and limits
//     how much it reads.
//   - The package never runs git in it: see [foreign.makeView].
//
// The caller must close it.
type foreign struct {
	asked  string // the directory as the user named it
	root   string // without symbolic links
	within string // without symbolic links; no path may lead out of it
	owner  uint32 // of root

	head   *os.Root // the git directory, which has HEAD
	common *os.Root // has references and objects; the same as head except in an added work tree
	stores []store  // directories of objects: first its own, then those it borrows from
	bytes  int64    // of the objects; set by scan
	loose  bool     // some objects are in no pack; set by scan
}

// store is a directory of objects.
type store struct {
	path string
	dir  *os.Root
}

// Limits on what is read from a foreign repository.
const (
	maxPointer    = 64 << 10 // bytes of a file that names a directory
	maxHead       = 4 << 10
	maxConfig     = 1 << 20
	maxShallow    = 16 << 20
	maxViewRefs   = 256 << 20 // total bytes of copied references
	maxStores     = 16        // directories that objects are borrowed from
	maxStoreFiles = 20_000_000
)

// openForeign opens the repository whose root is dir. No path in it may lead out of the directory
// within; empty means the parent of dir. The error is fs.ErrNotExist if dir is not the root of a
// repository, and ErrOutside if something leads out.
func openForeign(dir, within string) (_ *foreign, err error) {
	f := &foreign{asked: filepath.Clean(dir)}
	defer func() {
		if err != nil {
			f.close()
		}
	}()

	within = filepath.Clean(cmp.Or(within, filepath.Dir(f.asked)))
	if f.within, err = filepath.EvalSymlinks(within); err != nil {
		return nil, err
	}

	if err := f.findRoot(within); err != nil {
		return nil, err
	}

	// The directory contains a .git, or is a git directory itself.
	dot, err := f.gitDirOfDotGit()
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

// close closes all open directories.
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

// findRoot sets root and owner. A symbolic link between within, the directory of the connection,
// and the root has to belong to the owner of the root or to the user root.
func (f *foreign) findRoot(within string) (err error) {
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

	f.owner = ownerOf(info)
	if !inside(f.within, f.root) {
		return f.outsideError(f.asked, f.root)
	}

	below, err := filepath.Rel(within, f.asked)
	if err != nil || !filepath.IsLocal(below) {
		return f.outsideError(f.asked, f.root)
	}

	// Check each element of the path, because any of them may be a link.
	path := within
	for name := range strings.SplitSeq(below, string(filepath.Separator)) {
		path = filepath.Join(path, name)
		link, err := os.Lstat(path)
		if err != nil {
			return err
		}

		if owner := ownerOf(link); link.Mode()&fs.ModeSymlink != 0 && owner != 0 && owner != f.owner {
			return fmt.Errorf("%s is a symbolic link of user %d to a directory of user %d: %w", path, owner, f.owner, ErrOutside)
		}
	}
	return nil
}

// gitDirOfDotGit returns the git directory that the .git of the root is or names; empty if the root has no
// .git.
func (f *foreign) gitDirOfDotGit() (string, error) {
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

	// An added work tree has a file with one line that names a directory.
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

	// The line is "gitdir: <path>". The path may be relative to the work tree.
	to, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
	if !ok {
		return "", nil
	}
	return absolute(f.root, to), nil
}

// openGitDir opens a directory if it is a git directory: it has HEAD, and it has objects and
// references, either its own or those of the repository that a work tree belongs to.
func (f *foreign) openGitDir(path string) (ok bool, err error) {
	dir, err := f.resolveDir(path)
	if err != nil || dir == "" {
		return false, err
	}

	// A directory without HEAD is no git directory. That is no error.
	if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err != nil {
		return false, nil
	}

	head, err := os.OpenRoot(dir)
	if err != nil {
		return false, err
	}

	f.head = head // f.close closes it
	if ok, err = f.openCommon(dir); !ok {
		f.close()
	}
	return ok, err
}

// openCommon opens the directory that all work trees of a repository share, and its objects. The
// file commondir in the git directory names it; without that file it is the git directory itself.
// ok is false if it has no objects or no references.
func (f *foreign) openCommon(gitDir string) (ok bool, err error) {
	dir := gitDir
	text, err := pack.ReadFile(f.head, "commondir", maxPointer)
	if err == nil {
		if dir, err = f.resolveDir(absolute(gitDir, strings.TrimSpace(string(text)))); err != nil || dir == "" {
			return false, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}

	// Later checks and reads use this handle, because somebody may make the path lead elsewhere.
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

// addStore adds a directory of objects, and those that it borrows from, to the stores.
func (f *foreign) addStore(path string) error {
	for _, s := range f.stores {
		if s.path == path {
			return nil
		}
	}

	if len(f.stores) == maxStores {
		return fmt.Errorf("%s borrows objects from more than %d directories: %w", f.asked, maxStores, ErrTooLarge)
	}

	dir, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	f.stores = append(f.stores, store{path, dir})

	// The file alternates lists the directories it borrows from.
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

		to, err := f.resolveDir(absolute(path, line))
		if err != nil {
			return fmt.Errorf("alternates: %w", err)
		}

		if to == "" {
			continue // git reports what is missing
		}

		// That directory may borrow objects, too.
		if err := f.addStore(to); err != nil {
			return err
		}
	}
	return nil
}

// resolveDir returns the directory that a path in the repository leads to, without symbolic links;
// empty if there is none. The error is ErrOutside if this process may not show that directory.
func (f *foreign) resolveDir(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", nil
	}
	if err != nil {
		return "", err
	}

	if !inside(f.within, real) {
		return "", f.outsideError(path, real)
	}

	info, err := os.Stat(real)
	if err != nil || !info.IsDir() {
		return "", nil
	}

	// A directory outside of the repository must belong to the owner of the repository.
	if owner := ownerOf(info); !inside(f.root, real) && owner != f.owner {
		return "", fmt.Errorf("%s of user %d leads to %s of user %d: %w", f.asked, f.owner, real, owner, ErrOutside)
	}
	return real, nil
}

// outsideError returns the error for a path that leads to real, which is outside of the directory
// of the connection.
func (f *foreign) outsideError(path, real string) error {
	switch path {
	case f.asked:
		return fmt.Errorf("%s leads to %s, which is not below %s: name %s in the url of a connection if it is meant: %w", f.asked, real, f.within, real, ErrOutside)
	case real:
		return fmt.Errorf("%s leads to %s, which is not below %s: %w", f.asked, real, f.within, ErrOutside)
	}
	return fmt.Errorf("%s (by %s) leads to %s, which is not below %s: %w", f.asked, path, real, f.within, ErrOutside)
}

// inside reports whether path is dir or below it. Both paths are clean, absolute and without
// symbolic links.
func inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// absolute returns a path as it is, or below base if it is relative.
func absolute(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

// ownerOf returns the id of the user that a file belongs to.
func ownerOf(info fs.FileInfo) uint32 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Uid
	}
	return 0
}

// config reads the configuration; empty if there is none.
func (f *foreign) config() ([]byte, error) {
	text, err := pack.ReadFile(f.common, "config", maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// hasFile reports whether the common directory has a file or directory of this name.
func (f *foreign) hasFile(name string) bool {
	_, err := f.common.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// mayLackHistory reports whether the repository's own packs may lack a part of its history.
func (f *foreign) mayLackHistory() bool { return f.hasFile("shallow") || len(f.stores) > 1 }

// scan checks that every file of the stores is an ordinary file, because git may open any of them.
// It sets f.bytes and f.loose.
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

			if info, err := d.Info(); err == nil { // else the file has disappeared since
				f.bytes += run.Occupied(info)
			}

			// A loose object is in a directory whose name has the two digits of the first byte of
			// its id.
			f.loose = f.loose || len(path.Dir(name)) == 2
			return ctx.Err()
		})
		if err != nil {
			return fmt.Errorf("look through %s: %w", s.path, err)
		}
	}
	return nil
}

// readRefs reads the branches, the tags and HEAD. The error is pack.ErrAskGit if git has to read
// them from a view.
func (f *foreign) readRefs() (*listing, error) {
	text, err := f.config()
	if err != nil || f.head == nil || !hasPlainRefs(text) || f.hasFile("commondir") {
		return nil, pack.ErrAskGit
	}

	all, err := pack.Refs(f.common)
	if err != nil {
		return nil, err
	}

	there := &listing{refs: map[string]string{}}
	for name, oid := range all {
		if strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") {
			there.refs[name] = oid
		}
	}

	if len(there.refs) == 0 { // only git can say what HEAD is
		return nil, pack.ErrAskGit
	}

	// HEAD names a branch or a commit.
	text, err = pack.ReadFile(f.head, "HEAD", maxHead)
	if err != nil {
		return nil, err
	}

	value := strings.TrimSpace(string(text))
	to, symbolic := strings.CutPrefix(value, "ref: ")
	switch {
	case symbolic && there.refs[to] != "":
		there.symref, there.head = to, there.refs[to]
	case symbolic: // its branch has no commit yet
	case pack.IsID(value):
		there.head = value
	default:
		return nil, pack.ErrAskGit
	}
	return there, nil
}

// hasPlainRefs reports whether a configuration has no setting that changes how references are
// stored, or hides some of them.
func hasPlainRefs(config []byte) bool {
	lower := bytes.ToLower(config)
	for _, word := range []string{"refstorage", "hiderefs", "namespace", "include", "worktreeconfig", "partialclone"} {
		if bytes.Contains(lower, []byte(word)) {
			return false
		}
	}
	return true
}

// copyPacks copies the packs of a repository into one of our directories, and their indexes if
// withIndexes is set. The caller must have called scan. It returns the paths of the copies without
// an ending. It fails for the packs of a partial clone, for a pack with holes, which git never
// writes, and, if withIndexes is set, for a pack without an index.
func (f *foreign) copyPacks(ctx context.Context, to string, withIndexes bool) (packs []string, err error) {
	own := f.stores[0].dir
	var names []string
	err = pack.Walk(own, "pack", func(name string, _ fs.DirEntry) error {
		// Such a file marks a pack of a partial clone, which lacks some objects.
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

		// Copy the index last: git uses a pack only if it has an index.
		if withIndexes {
			if err := copyWhole(own, name+".idx", at+".idx"); err != nil {
				return nil, err
			}
		}
		packs = append(packs, at)
	}
	return packs, nil
}

// hasTrustedIndexes reports whether the repository belongs to root or to our own user, so that the
// indexes of its packs can be used. An index says where each object is. A forged one could show
// other contents under the id of an object, also to readers who have that object from another
// repository.
func (f *foreign) hasTrustedIndexes() bool { return f.owner == 0 || int(f.owner) == os.Geteuid() }

// copyWhole copies a file into a new one. It fails if the file has holes.
func copyWhole(from *os.Root, name, to string) error {
	in, info, err := pack.OpenFile(from, name)
	if err != nil {
		return err
	}
	defer in.Close()

	// The file system may compress blocks, but a pack, which is compressed already, shrinks little.
	const slack, mostCompression = 1 << 20, 4
	if info.Size() > mostCompression*run.Occupied(info)+slack {
		return fmt.Errorf("%s has holes", name)
	}
	return copyTo(to, io.LimitReader(in, info.Size()))
}

// copyTo copies a stream to a new file.
func copyTo(to string, in io.Reader) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil { // copy_file_range: shares blocks if the file system supports it
		out.Close()
		return err
	}
	return out.Close()
}
