package git

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"github.com/shoalsearch/shoal/shard/git/run"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Fetched is what a fetch did.
type Fetched struct {
	Changed       bool   // some reference differs from before
	Empty         bool   // the remote has no commit
	DefaultBranch string // short name; empty when HEAD is detached or the remote is empty
	Refs          int    // branches and tags of the mirror now
}

// headRef keeps the commit of a detached HEAD alive.
const headRef = "refs/shoal/head"

// damage is what git says when objects of the mirror itself are missing.
var damage = regexp.MustCompile(`(?i)object file .* is empty|bad object|loose object .* is corrupt|packfile .* (cannot be accessed|is far too short)|is corrupt|missing (blob|tree|commit)|did not send all necessary objects|unresolved deltas|bad tree object|could not parse`)

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
	if err != nil && ctx.Err() == nil && u.suspect(ctx, err) {
		if err := u.discard(); err != nil {
			return Fetched{}, err
		}
		return u.follow(ctx, from, o, there)
	}
	return f, err
}

// suspect reports whether a fetch may have failed because the mirror is
// damaged, and not because of the remote or a bound.
func (u *updater) suspect(ctx context.Context, err error) bool {
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
		c.File, done = u.all.disk.take(u.dir, run.FreeAt(u.dir), received)
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

// point sets HEAD: to a branch, or else to a commit. Without either it stays.
func (u *updater) point(ctx context.Context, symref, commit string) (moved bool, err error) {
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

	// Writing it anew would be a change for whoever watches the mirror.
	if strings.TrimSpace(string(old)) == want {
		return false, nil
	}

	c.Writes = true
	return true, c.Run(ctx)
}

// heads reads the references of the mirror.
func (u *updater) heads(ctx context.Context) (map[string]string, error) {
	if refs, ok := u.refFiles(); ok {
		return refs, nil
	}

	// Kept in another form than in plain files, the references are git's to tell.
	c := u.git("for-each-ref", "--format=%(refname)%00%(objectname)%00")
	c.Limit = 1 << 30
	refs := map[string]string{}
	err := c.Stream(ctx, func(r io.Reader) error {
		return eachRef(newRecords(r), 2, func(f []string) { refs[f[0]] = f[1] })
	})
	return refs, err
}

// prepare makes sure that there is a repository with the right hash algorithm,
// "" for any, and that nothing of a killed process is in the way. fresh tells
// that the repository was made now.
func (u *updater) prepare(ctx context.Context, format string) (fresh bool, err error) {
	have, err := formatOf(u.dir)
	if err != nil {
		return false, err
	}

	if have != "" && (format == "" || have == format) {
		return false, u.sweep()
	}

	// No complete mirror, or one of another hash algorithm: a new one. The mark
	// is written last, so that a mirror which has it is complete.
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

// initialize makes an empty repository, as git init --bare does without a
// template.
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

// configOf is the configuration of a mirror.
func configOf(format string) string {
	version, extensions := "0", ""
	if format != "sha1" {
		version, extensions = "1", "[extensions]\n\tobjectformat = "+format+"\n"
	}
	return "[core]\n\trepositoryformatversion = " + version + "\n\tfilemode = true\n\tbare = true\n" + extensions
}

// mark is the file that says, once all else is there, that a directory is a
// mirror, and with which hash algorithm.
const mark = "shoal-mirror"

// discard removes the mirror: first its name, so that no reader meets half of it.
func (u *updater) discard() error {
	// Processes have files of the mirror open, and would go on to answer from them.
	u.pool.Reset()
	u.forget()

	// What an earlier call has left under the name would be in the way.
	old := u.dir + ".old"
	if err := os.RemoveAll(old); err != nil {
		return err
	}

	if err := os.Rename(u.dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(old)
}

// formatOf is the hash algorithm of the mirror in dir; empty when there is no
// complete one.
func formatOf(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, mark))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}

	// A directory that somebody has cleared in part is no mirror.
	for _, name := range []string{"HEAD", "objects", "refs", "config"} {
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			return "", nil
		} else if err != nil {
			return "", err
		}
	}
	return strings.TrimSpace(string(text)), nil
}

// sweep removes what a killed git left behind: half packs, and locks, which
// nobody can hold since only this process writes here. It looks once in the life
// of a Mirror.
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

		// Half packs, and objects that were being received.
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

// forget drops what is remembered of the references.
func (b *base) forget() {
	b.mu.Lock()
	b.state, b.fetched = nil, b.fetched+1
	b.mu.Unlock()
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
