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

// openForeign opens the repository whose root is dir. No path in it may lead out of within; if
// within is empty, that is the parent of dir. The error is fs.ErrNotExist if dir is not the root of
// a repository, and ErrOutside if something leads out.
func openForeign(dir, within string) (_ *foreign, err error) {
	f := &foreign{asked: filepath.Clean(dir)}
	defer func() {
		if err != nil {
			f.close()
		}
	}()

	// Find the directory that paths may not leave, then the root.
	within = filepath.Clean(cmp.Or(within, filepath.Dir(f.asked)))
	if f.within, err = filepath.EvalSymlinks(within); err != nil {
		return nil, err
	}

	if err := f.enter(within); err != nil {
		return nil, err
	}

	// The directory contains a .git, or is a git directory itself.
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

// enter finds the root. A symbolic link between the directory of the connection and the root has to
// belong to the owner of its target or to the user root.
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

	// From here on everything has to belong to the owner of the root.
	f.owner = ownerOf(info)
	if !inside(f.within, f.root) {
		return f.outside(f.asked, f.root)
	}

	// Check each link below the directory of the connection.
	rest, err := filepath.Rel(within, f.asked)
	if err != nil || !filepath.IsLocal(rest) {
		return f.outside(f.asked, f.root)
	}

	// Resolve one element at a time, to see links in the middle too.
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

// dotGit returns the path that the .git of the root leads to; empty if the root has no .git.
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

	// The line is "gitdir: <path>", relative to the work tree.
	to, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
	if !ok {
		return "", nil
	}
	return absolute(f.root, to), nil
}

// openGitDir opens a directory if git would take it for a git directory: it contains HEAD, and it
// has objects and references, its own or those of the repository that a work tree belongs to.
func (f *foreign) openGitDir(path string) (ok bool, err error) {
	dir, err := f.place(path)
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

	// From here on f.close closes it.
	f.head = head
	if ok, err = f.openCommon(dir); !ok {
		f.close()
	}
	return ok, err
}

// openCommon opens the directory that all work trees of a repository share, and its objects. The
// file commondir names it; without that file it is the git directory.
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

	// Open it once: later checks and reads use this handle, even if the name then leads elsewhere.
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

	// Keep the handle, so that later reads use the same directory.
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

		// Each of those may borrow from others.
		to, err := f.place(absolute(path, line))
		if err != nil {
			return fmt.Errorf("alternates: %w", err)
		}

		if to == "" {
			continue // git reports what is missing
		}

		if err := f.addStore(to); err != nil {
			return err
		}
	}
	return nil
}

// place resolves a path in the repository to a directory, without symbolic links; empty if there is
// none. The error is ErrOutside if we may not read that directory.
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

	// A directory outside of the repository must belong to the owner of the repository.
	if owner := ownerOf(info); !inside(f.root, real) && owner != f.owner {
		return "", fmt.Errorf("%s of user %d leads to %s of user %d: %w", f.asked, f.owner, real, owner, ErrOutside)
	}
	return real, nil
}

// outside returns the error for a path that leads out of the directory of the connection. real is
// where it leads.
func (f *foreign) outside(path, real string) error {
	switch path {
	// The path may lead to the repository itself: then the error names its real path.
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

// config returns the text of the configuration; empty if there is none.
func (f *foreign) config() ([]byte, error) {
	text, err := pack.ReadFile(f.common, "config", maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// has reports whether the repository contains a file or directory.
func (f *foreign) has(name string) bool {
	_, err := f.common.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// partial reports whether its own packs may lack a part of the history.
func (f *foreign) partial() bool { return f.has("shallow") || len(f.stores) > 1 }

// scan checks that every file git might open among the objects is an ordinary file. It adds up
// their sizes on disk.
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

			// A loose object lies in a directory whose name is the first byte of its id.
			f.loose = f.loose || len(path.Dir(name)) == 2
			return ctx.Err()
		})
		if err != nil {
			return fmt.Errorf("look through %s: %w", s.path, err)
		}
	}
	return nil
}

// listing reads the references. The error is pack.ErrAskGit if git has to read them from a view.
func (f *foreign) listing() (*listing, error) {
	text, err := f.config()
	if err != nil || f.head == nil || !ordinary(text) || f.has("commondir") {
		return nil, pack.ErrAskGit
	}

	// Read loose and packed references without git.
	all, err := pack.Refs(f.common)
	if err != nil {
		return nil, err
	}

	// Take branches and tags. If there are none, only git can say what HEAD is.
	there := &listing{refs: map[string]string{}}
	for name, oid := range all {
		if strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") {
			there.refs[name] = oid
		}
	}

	if len(there.refs) == 0 {
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
	case symbolic: // unborn
	case pack.IsID(value):
		there.head = value
	default:
		return nil, pack.ErrAskGit
	}
	return there, nil
}

// ordinary reports whether a configuration has no setting that changes the references of a
// repository or hides some of them.
func ordinary(config []byte) bool {
	small := bytes.ToLower(config)
	for _, word := range []string{"refstorage", "hiderefs", "namespace", "include", "worktreeconfig", "partialclone"} {
		if bytes.Contains(small, []byte(word)) {
			return false
		}
	}
	return true
}

// copyPacks copies the packs of a scanned repository into one of our directories, and their indexes
// if indexes is set. It returns the paths of the copies. It fails for a promisor pack, for a pack
// with holes, which git never writes, and, if indexes is set, for a pack without an index.
func (f *foreign) copyPacks(ctx context.Context, to string, indexes bool) (packs []string, err error) {
	own := f.stores[0].dir

	// A promisor pack lacks some of its objects.
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

		// Copy the index last: git uses a pack only if it has an index.
		if indexes {
			if err := copyWhole(own, name+".idx", at+".idx"); err != nil {
				return nil, err
			}
		}
		packs = append(packs, at)
	}
	return packs, nil
}

// trusted reports whether the indexes of the packs belong to root or to our own user. An index says
// where each object is. A forged one could show other contents under the id of an object, also to
// readers who have that object from another repository.
func (f *foreign) trusted() bool { return f.owner == 0 || int(f.owner) == os.Geteuid() }

// copyWhole copies a file into a new one. It fails if the file has holes.
func copyWhole(from *os.Root, name, to string) error {
	in, info, err := pack.OpenFile(from, name)
	if err != nil {
		return err
	}
	defer in.Close()

	// The file system may compress blocks. It saves little on a pack, which is compressed already.
	const slack = 1 << 20
	if info.Size() > 4*run.Occupied(info)+slack {
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
