package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/shoalsearch/shoal/shard/git/run"
)

// updater changes a mirror.
type updater struct {
	*base
	disk  *diskRoom     // shared by the fetches of a node
	turn  chan struct{} // has one token; whoever takes it may change the mirror
	swept atomic.Bool   // sweep has removed the files of a killed process
}

// acquire waits until the caller may change the mirror. The caller must call release afterwards.
func (u *updater) acquire(ctx context.Context) (release func(), err error) {
	select {
	case <-u.turn:
		return func() { u.turn <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// headRef is a reference to the commit of a detached HEAD, so that git does not remove it as
// garbage.
const headRef = "refs/shoal/head"

// prepare makes sure that the mirror exists and has the hash algorithm format ("" means any), and
// removes what a killed process has left. It replaces a mirror with another algorithm. fresh reports
// whether it has made a new mirror.
func (u *updater) prepare(ctx context.Context, format string) (fresh bool, err error) {
	existing, err := formatOf(u.dir)
	if err != nil {
		return false, err
	}

	if existing != "" && (format == "" || existing == format) {
		return false, u.sweep()
	}

	// There is no mirror, it is incomplete, or it has another hash algorithm: make a new one. The
	// file mark says that a mirror is complete, so it is written last.
	if err := u.discard(); err != nil {
		return false, err
	}

	if format == "" {
		format = "sha1"
	}

	if err := u.initialize(format); err != nil {
		return false, err
	}
	return true, os.WriteFile(filepath.Join(u.dir, mark), []byte(format+"\n"), 0o644)
}

// initialize makes an empty repository, as git init --bare does without a template.
func (u *updater) initialize(format string) error {
	for _, dir := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(u.dir, dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(u.dir, "config"), []byte(configOf(format)), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(u.dir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644)
}

// discard removes the mirror. It renames it first, so that no reader sees an incomplete mirror.
func (u *updater) discard() error {
	u.pool.Reset() // idle processes have files of the mirror open
	u.dropCachedRefs()

	old := u.dir + ".old"
	if err := os.RemoveAll(old); err != nil {
		return err
	}

	if err := os.Rename(u.dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(old)
}

// sweep removes what a killed git has left: incomplete packs, and locks. No running git uses them,
// because only this process writes to the mirror. It works only once for each Mirror.
func (u *updater) sweep() error {
	if u.swept.Swap(true) {
		return nil
	}

	return filepath.WalkDir(u.dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}

		name := d.Name()
		if d.IsDir() && strings.HasPrefix(name, "tmp_objdir-") {
			os.RemoveAll(path)
			return fs.SkipDir
		}

		temporary := strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, ".tmp-")
		inObjects := strings.HasPrefix(path, filepath.Join(u.dir, "objects")+"/")
		if !d.IsDir() && (strings.HasSuffix(name, ".lock") || inObjects && temporary) {
			return os.Remove(path)
		}
		return nil
	})
}

// readRefNames reads the references of the mirror: the id of each by its full name.
func (u *updater) readRefNames(ctx context.Context) (map[string]string, error) {
	if refs, ok := u.refFiles(); ok {
		return refs, nil
	}

	// If the references are not in plain files, ask git.
	c := u.git("for-each-ref", "--format=%(refname)%00%(objectname)%00")
	c.Limit = 1 << 30
	refs := map[string]string{}
	err := c.Stream(ctx, func(r io.Reader) error {
		return eachRef(newRecords(r), 2, func(f []string) { refs[f[0]] = f[1] })
	})
	return refs, err
}

// setHEAD sets HEAD to the branch symref, or to commit if symref is empty. If both are empty it does
// nothing. moved reports whether HEAD has changed.
func (u *updater) setHEAD(ctx context.Context, symref, commit string) (moved bool, err error) {
	old, err := os.ReadFile(filepath.Join(u.dir, "HEAD"))
	if err != nil {
		return false, err
	}

	var want string
	var c *run.Command
	switch {
	case symref != "":
		want, c = "ref: "+symref, u.git("symbolic-ref", "HEAD", symref)
	case commit != "":
		want, c = commit, u.git("update-ref", "--no-deref", "HEAD", commit)
	default:
		return false, nil
	}

	// Do not write an unchanged file, because its new time would look like a change.
	if strings.TrimSpace(string(old)) == want {
		return false, nil
	}

	c.Writes = true
	return true, c.Run(ctx)
}

// writeRefs writes the first references of a mirror, and HEAD.
func (u *updater) writeRefs(refs map[string]string, head string) error {
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		fmt.Fprintf(&text, "%s %s\n", refs[name], name)
	}
	if err := u.replaceFile("packed-refs", text.Bytes()); err != nil {
		return err
	}
	return u.replaceFile("HEAD", []byte(head+"\n"))
}

// replaceFile writes a file of the mirror, unless it has the text already. Readers see either the old
// text or the new one. It takes the lock that git takes, too.
func (u *updater) replaceFile(name string, text []byte) error {
	path := filepath.Join(u.dir, name)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return nil
	}

	f, err := os.OpenFile(path+".lock", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}

	// Flush before the rename: a crash must not leave an empty file.
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path+".lock"))
	}
	return os.Rename(path+".lock", path)
}
