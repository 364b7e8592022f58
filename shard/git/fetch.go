package git

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/shard/git/run"
)

// Fetched is the result of a fetch.
type Fetched struct {
	Changed       bool   // a reference has changed
	Empty         bool   // the remote has no commit
	DefaultBranch string // short name; empty if HEAD is detached or the remote is empty
	Refs          int    // number of branches and tags in the mirror now
}

// Fetch updates the mirror to the state of the remote: all branches and tags, also changed and
// deleted ones, and HEAD. It makes the mirror if there is none, and makes it again if the hash
// algorithm of the remote has changed or objects of the mirror are damaged. It never prompts and
// never hangs (Timeout, Stall). After a failure, the mirror has its old state or a newer one. If
// nothing is new, it only lists the references of the remote.
//
// If HEAD leads to no commit but there are branches, then main, master or otherwise the first
// branch by name replaces it.
func (u *updater) Fetch(ctx context.Context, remote Remote, o FetchOptions) (Fetched, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout(), fmt.Errorf("the fetch took longer than %v: %w", o.timeout(), context.DeadlineExceeded))
	defer cancel()

	release, err := u.acquire(ctx)
	if err != nil {
		return Fetched{}, err
	}
	defer release()

	if dir, ok := remote.local(); ok {
		return u.fetchLocal(ctx, dir, remote, o)
	}

	from := source{Remote: remote}
	there, err := list(ctx, from, o)
	if err != nil {
		return Fetched{}, err
	}

	// A fetch cannot repair a damaged mirror, because the remote does not send objects that the
	// mirror seems to have. Make the mirror again, once.
	f, err := u.updateTo(ctx, from, o, there)
	if err != nil && ctx.Err() == nil && u.mayBeDamaged(ctx, err) {
		if err := u.discard(); err != nil {
			return Fetched{}, err
		}
		return u.updateTo(ctx, from, o, there)
	}
	return f, err
}

// mayBeDamaged reports whether a fetch may have failed with err because the mirror is damaged, and
// not because of the remote or a limit.
func (u *updater) mayBeDamaged(ctx context.Context, err error) bool {
	if errors.Is(err, ErrAuth) || errors.Is(err, ErrStalled) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrUnknown) || errors.Is(err, ErrDamaged) {
		return false
	}
	var failed *run.Failure
	return errors.As(err, &failed) && damage.MatchString(failed.Stderr) || !u.Sound(ctx)
}

// updateTo makes the references of the mirror equal to there, those of the remote, and fetches the
// objects that they need.
func (u *updater) updateTo(ctx context.Context, from source, o FetchOptions, there *listing) (Fetched, error) {
	if _, err := u.prepare(ctx, there.format()); err != nil {
		return Fetched{}, fmt.Errorf("prepare mirror: %w", err)
	}

	// Even a failed fetch may have changed references.
	defer u.dropCachedRefs()

	here, err := u.readRefNames(ctx)
	if err != nil {
		return Fetched{}, err
	}

	// A detached HEAD needs a reference of its own, or git would remove its commit as garbage.
	symref := there.defaultRef()
	f := Fetched{
		Refs:          len(there.refs),
		Empty:         len(there.refs) == 0 && there.head == "",
		DefaultBranch: strings.TrimPrefix(symref, "refs/heads/"),
	}

	detached := symref == "" && there.head != ""
	want := maps.Clone(there.refs)
	if detached {
		want[headRef] = there.head
	}

	if !maps.Equal(here, want) {
		f.Changed = true
		if err := u.transfer(ctx, from, o, detached); err != nil {
			return Fetched{}, err
		}
		if err := u.deleteRefs(ctx, here, want); err != nil {
			return Fetched{}, err
		}
	}

	moved, err := u.setHEAD(ctx, symref, there.head)
	f.Changed = f.Changed || moved
	return f, err
}

// defaultRef returns the full name of the branch for HEAD; empty if HEAD is detached or there is no
// branch. If HEAD names no existing branch, it chooses main, master or the first branch by name.
func (l *listing) defaultRef() string {
	if l.refs[l.symref] != "" && strings.HasPrefix(l.symref, "refs/heads/") {
		return l.symref
	}

	var branches, atHead []string // all branches, and those at the commit of HEAD
	for name, oid := range l.refs {
		if !strings.HasPrefix(name, "refs/heads/") {
			continue
		}
		branches = append(branches, name)

		if oid == l.head {
			atHead = append(atHead, name)
		}
	}

	candidates := branches
	if l.head != "" {
		// HEAD is detached, or the server is old and does not name its branch: choose a branch at
		// the same commit.
		candidates = atHead
	}
	slices.Sort(candidates)

	for _, name := range []string{"refs/heads/main", "refs/heads/master"} {
		if slices.Contains(candidates, name) {
			return name
		}
	}

	if len(candidates) != 0 {
		return candidates[0]
	}
	return ""
}

// transfer runs git fetch for all branches and tags, and for HEAD if it is detached.
func (u *updater) transfer(ctx context.Context, from source, o FetchOptions, detached bool) error {
	c, addr, err := commandFor(from.Remote, o, "fetch", "--quiet", "--force", "--prune", "--no-tags", "--no-write-fetch-head",
		"--no-auto-maintenance", "--no-recurse-submodules", "--no-show-forced-updates", "--update-shallow", uploadPack, "--end-of-options")
	if err != nil {
		return err
	}

	c.Dir = u.dir
	c.Args = append(c.Args, addr, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
	if detached {
		c.Args = append(c.Args, "+HEAD:"+headRef)
	}

	c.Timeout = o.timeout()
	if from.local != nil {
		c.Stored = from.local.bytes
	}

	// A remote that never stops sending must not fill the disk.
	if c.File = o.Most; c.File <= 0 {
		var done func()
		c.File, done = u.disk.grant(u.dir, run.FreeAt(u.dir), receivedBytes)
		defer done()
	}

	// The memory limit depends on the size of the mirror, which is empty at the first copy of a
	// large repository. If memory ran out, git has said how many objects there are: try once more
	// with the memory for these.
	err = c.Run(ctx)
	if errors.Is(err, ErrTooLarge) {
		if memory := u.announcedMemory(); memory > c.Allowance() {
			c.Memory = memory
			err = c.Run(ctx)
		}
	}

	if err == nil {
		return nil
	}

	// Git leaves an incomplete pack behind, which the next fetch does not use.
	largest, removeErr := u.removeIncompletePacks()
	if c.File > 0 && largest >= c.File {
		err = fmt.Errorf("the remote sends more than %d MB, which is all that may be received with the room that is free on the disk and that no other fetch may need: %w", c.File>>20, ErrTooLarge)
	}
	return errors.Join(fmt.Errorf("fetch %s: %w", from, err), removeErr)
}

// removeIncompletePacks removes the incomplete packs of the mirror, and returns the size of the
// largest. No fetch of the mirror may be running.
func (u *updater) removeIncompletePacks() (largest int64, err error) {
	var errs []error
	eachIncompletePack(u.dir, func(path string, size int64) {
		largest = max(largest, size)
		errs = append(errs, os.Remove(path))
	})
	return largest, errors.Join(errs...)
}

// receivedBytes returns the size of the packs that a running fetch is writing into the mirror in dir.
func receivedBytes(dir string) (bytes int64) {
	eachIncompletePack(dir, func(_ string, size int64) { bytes += size })
	return bytes
}

// eachIncompletePack calls use with each incomplete pack of a repository and its size.
func eachIncompletePack(dir string, use func(path string, size int64)) {
	run.EachPack(dir, func(path string, e os.DirEntry) {
		if !strings.HasPrefix(e.Name(), "tmp_") {
			return
		}
		size := int64(0)
		if info, err := e.Info(); err == nil {
			size = info.Size()
		}
		use(path, size)
	})
}

// deleteRefs deletes the references that git fetch --prune does not delete: all of them if the
// remote is empty, and headRef if HEAD is no longer detached. here has the references of the
// mirror, want those that it must have.
func (u *updater) deleteRefs(ctx context.Context, here, want map[string]string) error {
	var script bytes.Buffer
	for name := range here {
		if want[name] == "" && (name == headRef || len(want) == 0) {
			fmt.Fprintf(&script, "delete %s\x00\x00", name)
		}
	}

	if script.Len() == 0 {
		return nil
	}

	c := u.git("update-ref", "-z", "--stdin")
	c.Stdin = &script
	c.Writes = true
	return c.Run(ctx)
}

// announcedMemory returns how many bytes of memory a fetch that ran out of memory needs for the
// objects that the remote has announced. Their number is at the start of the incomplete pack, which
// announcedMemory removes. It returns 0 if the objects are too few to be the reason.
func (u *updater) announcedMemory() (memory int64) {
	run.EachPack(u.dir, func(path string, _ os.DirEntry) {
		if !strings.HasPrefix(filepath.Base(path), "tmp_") {
			return
		}

		defer os.Remove(path)
		f, err := os.Open(path)
		if err != nil {
			return
		}
		defer f.Close()

		var head [12]byte
		if _, err := io.ReadFull(f, head[:]); err == nil && string(head[:4]) == "PACK" {
			memory = max(memory, run.ObjectMemory*int64(binary.BigEndian.Uint32(head[8:])))
		}
	})

	if memory < run.GitMemory/4 {
		return 0
	}
	return run.GitMemory + min(memory, run.MostReceive)
}
