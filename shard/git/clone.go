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

// A repository in a directory of this machine is compared, and copied for the first time, without
// the dozen processes of git's transport:
//
//	nothing new    no process: the reference files of both sides are compared
//	first copy     one process: git checks the copied packs; or, if there are none,
//	               git packs the loose objects into the mirror
//
// Everything unusual is left to git.

// fetchLocal fetches from a repository in a directory of this machine. If git is needed, it sees a
// view of the directory.
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

	// Otherwise git fetches from a view. As in Fetch, a damaged mirror is made again once.
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

// fetchView fetches from a view of a directory, which it puts into the mirror meanwhile. It removes
// a mirror that it made if that got nothing.
func (u *updater) fetchView(ctx context.Context, f *foreign, remote Remote, o FetchOptions) (done Fetched, err error) {
	config, err := f.viewConfig(ctx)
	if err != nil {
		return Fetched{}, fmt.Errorf("read the configuration of %s: %w", remote, err)
	}

	// A new mirror gets the hash algorithm of the repository.
	fresh, err := u.prepare(ctx, formatOfConfig(config))
	if err != nil {
		return Fetched{}, fmt.Errorf("prepare mirror: %w", err)
	}

	defer func() {
		if err != nil && fresh {
			err = errors.Join(err, u.discard())
		}
	}()

	// The view is a directory of ours, which git trusts.
	view := filepath.Join(u.dir, viewName)
	if err := os.RemoveAll(view); err != nil { // from a fetch that was killed
		return Fetched{}, err
	}

	defer os.RemoveAll(view)

	if err := f.view(ctx, view, config); err != nil {
		return Fetched{}, fmt.Errorf("show %s to git: %w", remote, err)
	}

	// A new mirror starts with the packs that may be copied; git fetches the rest.
	if fresh {
		u.seed(ctx, f)
	}

	// From here on it is an ordinary fetch.
	from := source{Remote: Remote{URL: LocalURL(view)}, shown: remote.String(), local: f}
	there, err := list(ctx, from, o)
	if err != nil {
		return Fetched{}, err
	}
	return u.follow(ctx, from, o, there)
}

// seed copies the packs of a directory into a new mirror, so that the first fetch finds nearly all
// objects there: copying bytes costs much less than packing and indexing them. The copies are our
// own files, never links. If anything fails, the fetch only has more to do, and it checks that
// everything is there.
func (u *updater) seed(ctx context.Context, f *foreign) {
	if f.partial() {
		return
	}
	if _, err := u.copyPacks(ctx, f); err != nil {
		run.EachPack(u.dir, func(path string, _ os.DirEntry) { os.Remove(path) })
	}
}

// copyPacks copies the packs of a scanned repository into the mirror. It makes new indexes for
// packs whose own indexes are not trusted.
func (u *updater) copyPacks(ctx context.Context, f *foreign) ([]string, error) {
	packs, err := f.copyPacks(ctx, filepath.Join(u.dir, "objects", "pack"), f.trusted())
	if err != nil || f.trusted() {
		return packs, err
	}

	// An index that somebody else made may be forged, so git makes a new one.
	for _, name := range packs {
		c := u.git("index-pack", "-o", name+".idx", name+".pack")
		c.Timeout, c.Writes = copyTime, true
		if err := c.Run(ctx); err != nil {
			return nil, err
		}
	}
	return packs, nil
}

// quick fetches without the transport of git, if that is possible. It reports false if it did
// nothing.
func (u *updater) quick(ctx context.Context, f *foreign, there *listing) (Fetched, bool) {
	have, err := formatOf(u.dir)
	if err != nil || have != "" && have != there.format() {
		return Fetched{}, false
	}

	// Find what HEAD and the references of the mirror must be.
	symref := there.defaultRef()
	head, want := "ref: "+symref, maps.Clone(there.refs)
	if symref == "" {
		if there.head == "" {
			return Fetched{}, false
		}
		head, want[headRef] = there.head, there.head
	}

	done := Fetched{Refs: len(there.refs), DefaultBranch: strings.TrimPrefix(symref, "refs/heads/")}

	// For an existing mirror this works only if nothing is new.
	if have != "" {
		return done, u.shows(want, head)
	}

	// There is no mirror: copy the repository.
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

// shows reports whether the mirror has exactly these references and this HEAD.
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

	// Objects that git packed are complete; copied packs must be checked.
	if len(packs) > 0 {
		if err := u.checkConnected(ctx, refs); err != nil {
			return err
		}
	}
	return u.writeRefs(refs, head)
}

// packFrom packs all objects that the references of another directory lead to into the mirror. With
// rest it packs only objects in no copied pack.
func (u *updater) packFrom(ctx context.Context, f *foreign, refs map[string]string, rest bool) error {
	objects := f.stores[0].path
	if strings.ContainsAny(objects, ":\"\n") { // the list of directories cannot contain these
		return pack.ErrAskGit
	}

	c := u.git("pack-objects", "--quiet", "--revs", "--non-empty", "--window=0", "--delta-base-offset", "--compression=1")
	if rest {
		c.Args = append(c.Args, "--incremental")
	}
	c.Args = append(c.Args, filepath.Join(u.dir, "objects", "pack", "pack"))
	c.Env = []string{"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + objects}

	// Pass ids, because names of the other directory mean nothing here.
	var tips bytes.Buffer
	for _, oid := range slices.Compact(slices.Sorted(maps.Values(refs))) {
		fmt.Fprintln(&tips, oid)
	}
	c.Stdin = &tips
	c.Timeout, c.Writes, c.Stored = copyTime, true, f.bytes
	return c.Run(ctx)
}
