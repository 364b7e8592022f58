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

// Fetched is what a fetch did.
type Fetched struct {
	Changed       bool   // some reference differs from before
	Empty         bool   // the remote has no commit
	DefaultBranch string // short name; empty when HEAD is detached or the remote is empty
	Refs          int    // branches and tags of the mirror now
}

// Fetch brings the mirror to the state of the remote: all branches and tags,
// moved and deleted ones too, and HEAD. It makes the mirror when there is
// none, and anew when the remote's hash algorithm has changed or objects of
// the mirror are found damaged. It never prompts, never hangs (Timeout, Stall), and
// on failure leaves a mirror that is as it was or further ahead. A remote
// with nothing new costs one listing.
//
// When HEAD leads to no commit but there are branches, main, master or else
// the first branch by name stands in for it.
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

	// Objects that are missing or damaged are not sent again: the mirror counts as
	// having them. So it is made anew, once.
	f, err := u.follow(ctx, from, o, there)
	if err != nil && ctx.Err() == nil && u.mayBeDamaged(ctx, err) {
		if err := u.discard(); err != nil {
			return Fetched{}, err
		}
		return u.follow(ctx, from, o, there)
	}
	return f, err
}

// mayBeDamaged reports whether a fetch may have failed because the mirror is
// damaged, and not because of the remote or a bound.
func (u *updater) mayBeDamaged(ctx context.Context, err error) bool {
	if errors.Is(err, ErrAuth) || errors.Is(err, ErrStalled) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrUnknown) || errors.Is(err, ErrDamaged) {
		return false
	}
	var failed *run.Failure
	return errors.As(err, &failed) && damage.MatchString(failed.Stderr) || !u.Sound(ctx)
}

// follow brings the mirror from here, the references that it has, to there, the
// references of the remote.
func (u *updater) follow(ctx context.Context, from source, o FetchOptions, there *listing) (Fetched, error) {
	if _, err := u.prepare(ctx, there.format()); err != nil {
		return Fetched{}, fmt.Errorf("prepare mirror: %w", err)
	}

	// Even a fetch that fails may have moved some references.
	defer u.forget()

	here, err := u.heads(ctx)
	if err != nil {
		return Fetched{}, err
	}

	// What the mirror is to have: a detached HEAD needs a reference of its own,
	// or git would take its commit for garbage.
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
		if err := u.drop(ctx, here, want); err != nil {
			return Fetched{}, err
		}
	}

	moved, err := u.point(ctx, symref, there.head)
	f.Changed = f.Changed || moved
	return f, err
}

// defaultRef is the branch that HEAD stands for; empty when HEAD is detached
// or there is no branch.
func (l *listing) defaultRef() string {
	if l.refs[l.symref] != "" && strings.HasPrefix(l.symref, "refs/heads/") {
		return l.symref
	}

	// The branches at HEAD, and all.
	var same, all []string
	for name, oid := range l.refs {
		if !strings.HasPrefix(name, "refs/heads/") {
			continue
		}
		all = append(all, name)

		if oid == l.head {
			same = append(same, name)
		}
	}

	candidates := all
	if l.head != "" {
		// HEAD is detached, or an old server does not say its branch. A branch
		// at the same commit shows the same files.
		candidates = same
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

// transfer runs git fetch.
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

	// A remote that sends without end must not fill the disk.
	if c.File = o.Most; c.File <= 0 {
		var done func()
		c.File, done = u.disk.take(u.dir, run.FreeAt(u.dir), received)
		defer done()
	}

	// The bound of memory comes from the size of the mirror, which is empty at
	// the first copy of a large repository. Git has said by now how many objects
	// there are: once more, with what these may take.
	err = c.Run(ctx)
	if errors.Is(err, ErrTooLarge) {
		if memory := u.announced(); memory > c.Allowance() {
			c.Memory = memory
			err = c.Run(ctx)
		}
	}

	if err == nil {
		return nil
	}

	// What git has received of a pack lies there until somebody takes it away, and
	// the next try brings as much again.
	largest, left := u.takeAwayHalves()
	if c.File > 0 && largest >= c.File {
		err = fmt.Errorf("the remote sends more than %d MB, which is all that may be received with the room that is free on the disk and that no other fetch may need: %w", c.File>>20, ErrTooLarge)
	}
	return errors.Join(fmt.Errorf("fetch %s: %w", from, err), left)
}

// takeAwayHalves removes packs that were not received to their end, and returns
// the bytes of the largest. Nothing is being received when it is called.
func (u *updater) takeAwayHalves() (largest int64, err error) {
	var errs []error
	eachHalf(u.dir, func(path string, size int64) {
		largest = max(largest, size)
		errs = append(errs, os.Remove(path))
	})
	return largest, errors.Join(errs...)
}

// received returns the bytes of the packs that a fetch writes and has not finished.
func received(dir string) (bytes int64) {
	eachHalf(dir, func(_ string, size int64) { bytes += size })
	return bytes
}

// eachHalf calls use with the packs of a repository that were not received to their end,
// and their bytes.
func eachHalf(dir string, use func(path string, size int64)) {
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

// drop deletes the references that git fetch --prune leaves: all of them when
// the remote is empty, and that of a HEAD that is no longer detached.
func (u *updater) drop(ctx context.Context, here, want map[string]string) error {
	var script bytes.Buffer

	// The reference of a HEAD is named by no refspec when HEAD is a branch, so no fetch prunes it.
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

// announced is how many bytes of memory a fetch needs that ran out of memory. The
// half pack that it left says in its first bytes how many objects the remote
// announced. The result is 0 when that does not explain it. The half pack is
// removed.
func (u *updater) announced() (memory int64) {
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

	// What fits into the usual memory did not run out of it for that.
	if memory < run.GitMemory/4 {
		return 0
	}
	return run.GitMemory + min(memory, run.MostReceive)
}
