package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/shard/git/pack"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// A repository in a directory of this machine is compared, and copied for the
// first time, without the dozen processes of git's own transport:
//
//	nothing new    no process: the files of the references of both sides are compared
//	first copy     one process: the packs are copied and then walked by git; or, where
//	               there are none, git packs the loose objects into the mirror
//
// Whatever is out of the ordinary is left to git.

// fetchLocal is Fetch from a directory of this machine. Git is shown a view of
// it, where it is needed at all.
func (u *updater) fetchLocal(ctx context.Context, dir string, remote Remote, o FetchOptions) (Fetched, error) {
	f, err := openForeign(dir, remote.Within)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", ErrNoRemote, err)
	}
	if err != nil {
		return Fetched{}, fmt.Errorf("list %s: %w", remote, err)
	}
	defer f.close()

	there, err := f.listing()
	if errors.Is(err, pack.ErrManyRefs) {
		return Fetched{}, fmt.Errorf("list %s: %w", remote, errManyRefs)
	}
	if err == nil && !f.partial() {
		if done, ok := u.quick(ctx, f, there); ok {
			return done, nil
		}
	}

	// The long way: git fetches from a view. As in Fetch, a damaged mirror is
	// made anew once.
	if err := f.scan(ctx); err != nil {
		return Fetched{}, fmt.Errorf("list %s: %w", remote, err)
	}

	done, err := u.fetchView(ctx, f, remote, o)
	if err != nil && ctx.Err() == nil && u.mayBeDamaged(ctx, err) {
		if err := u.discard(); err != nil {
			return Fetched{}, err
		}
		done, err = u.fetchView(ctx, f, remote, o)
	}
	return done, err
}

// fetchView fetches from a view of a directory, which stands in the mirror
// meanwhile. A mirror that was made for it and got nothing is removed.
func (u *updater) fetchView(ctx context.Context, f *foreign, remote Remote, o FetchOptions) (done Fetched, err error) {
	config, err := f.viewConfig(ctx)
	if err != nil {
		return Fetched{}, fmt.Errorf("read the configuration of %s: %w", remote, err)
	}

	// A new mirror takes the hash algorithm of the repository.
	fresh, err := u.prepare(ctx, formatOfConfig(config))
	if err != nil {
		return Fetched{}, fmt.Errorf("prepare mirror: %w", err)
	}

	defer func() {
		if err != nil && fresh {
			err = errors.Join(err, u.discard())
		}
	}()

	// The view is a directory of ours, which git may trust.
	view := filepath.Join(u.dir, viewName)
	if err := os.RemoveAll(view); err != nil { // of a fetch that was killed
		return Fetched{}, err
	}

	defer os.RemoveAll(view)

	if err := f.view(ctx, view, config); err != nil {
		return Fetched{}, fmt.Errorf("show %s to git: %w", remote, err)
	}

	// A new mirror begins with the packs that may be copied; git fetches the rest.
	if fresh {
		u.seed(ctx, f)
	}

	// From here on it is a fetch like any other.
	from := source{Remote: Remote{URL: LocalURL(view)}, shown: remote.String(), local: f}
	there, err := list(ctx, from, o)
	if err != nil {
		return Fetched{}, err
	}
	return u.follow(ctx, from, o, there)
}

// seed copies the packs of a directory into a new mirror, so that the first
// fetch finds nearly everything there: copying bytes costs a fraction of
// packing and indexing them. The copies are files of our own, never links.
// Whatever goes wrong only means that the fetch has more to do; it checks
// that all is there.
func (u *updater) seed(ctx context.Context, f *foreign) {
	if f.partial() {
		return
	}
	if _, err := u.copyPacks(ctx, f); err != nil {
		run.EachPack(u.dir, func(path string, _ os.DirEntry) { os.Remove(path) })
	}
}

// copyPacks copies the packs of a scanned repository into the mirror, and
// makes indexes of those whose own are not believed.
func (u *updater) copyPacks(ctx context.Context, f *foreign) ([]string, error) {
	packs, err := f.copyPacks(ctx, filepath.Join(u.dir, "objects", "pack"), f.trusted())
	if err != nil || f.trusted() {
		return packs, err
	}

	// An index that somebody else made may say anything, so git makes one of our own.
	for _, name := range packs {
		c := u.git("index-pack", "-o", name+".idx", name+".pack")
		c.Timeout, c.Writes = copyTime, true
		if err := c.Run(ctx); err != nil {
			return nil, err
		}
	}
	return packs, nil
}

// quick is a fetch of what there has, without the transport of git. It reports false when it did
// nothing.
func (u *updater) quick(ctx context.Context, f *foreign, there *listing) (Fetched, bool) {
	have, err := formatOf(u.dir)
	if err != nil || have != "" && have != there.format() {
		return Fetched{}, false
	}

	// What HEAD and the references of the mirror are to be.
	symref := there.defaultRef()
	head, want := "ref: "+symref, maps.Clone(there.refs)
	if symref == "" {
		if there.head == "" {
			return Fetched{}, false
		}
		head, want[headRef] = there.head, there.head
	}

	done := Fetched{Refs: len(there.refs), DefaultBranch: strings.TrimPrefix(symref, "refs/heads/")}

	// A mirror that is there is quick only when nothing is new.
	if have != "" {
		return done, u.shows(want, head)
	}

	// None is there: copy.
	if err := f.scan(ctx); err != nil {
		return Fetched{}, false
	}
	if _, err := u.prepare(ctx, there.format()); err != nil {
		return Fetched{}, false
	}

	defer u.forget()

	if err := u.clone(ctx, f, want, head); err != nil {
		_ = u.discard()
		return Fetched{}, false
	}

	done.Changed = true
	return done, true
}

// shows reports whether the mirror has exactly these references, and this HEAD.
func (u *updater) shows(want map[string]string, head string) bool {
	if u.sweep() != nil {
		return false
	}
	here, ok := u.refFiles()
	if !ok || !maps.Equal(here, want) {
		return false
	}

	text, err := os.ReadFile(filepath.Join(u.dir, "HEAD"))
	return err == nil && strings.TrimSpace(string(text)) == head
}

// clone fills a new mirror from a directory that was scanned.
func (u *updater) clone(ctx context.Context, f *foreign, refs map[string]string, head string) error {
	packs, err := u.copyPacks(ctx, f)
	if err != nil {
		return err
	}
	if len(packs) == 0 || f.loose {
		if err := u.packFrom(ctx, f, refs, len(packs) > 0); err != nil {
			return err
		}
	}

	// What was packed as a whole is whole; what was copied is looked through.
	if len(packs) > 0 {
		if err := u.connected(ctx, refs); err != nil {
			return err
		}
	}
	return u.writeRefs(refs, head)
}

// packFrom packs all objects that references of another directory lead to into
// the mirror; with rest only those that no copied pack has.
func (u *updater) packFrom(ctx context.Context, f *foreign, refs map[string]string, rest bool) error {
	objects := f.stores[0].path
	if strings.ContainsAny(objects, ":\"\n") { // the list of directories has no place for these
		return pack.ErrAskGit
	}

	c := u.git("pack-objects", "--quiet", "--revs", "--non-empty", "--window=0", "--delta-base-offset", "--compression=1")
	if rest {
		c.Args = append(c.Args, "--incremental")
	}
	c.Args = append(c.Args, filepath.Join(u.dir, "objects", "pack", "pack"))
	c.Env = []string{"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + objects}

	// By their ids: a name of the other directory means nothing here.
	var tips bytes.Buffer
	for _, oid := range slices.Compact(slices.Sorted(maps.Values(refs))) {
		fmt.Fprintln(&tips, oid)
	}
	c.Stdin = &tips
	c.Timeout, c.Writes, c.Stored = copyTime, true, f.bytes
	return c.Run(ctx)
}
