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

// For a repository in a directory of this machine, fetchLocal avoids the dozen processes of git's
// transport if nothing is new, and for the first copy:
//
//	nothing new    no process: the reference files of both sides are compared
//	first copy     one process: git checks the copied packs; or, if there are none,
//	               git packs the loose objects into the mirror
//
// In all other cases git does the work.

// fetchLocal fetches from a repository in a directory of this machine. If git must do it, git gets
// a view of the directory (view.go).
func (u *updater) fetchLocal(ctx context.Context, dir string, remote Remote, o FetchOptions) (Fetched, error) {
	f, err := openForeign(dir, remote.Within)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", ErrNoRemote, err)
	}
	if err != nil {
		return Fetched{}, fmt.Errorf("list %s: %w", remote, err)
	}
	defer f.close()

	there, err := f.readRefs()
	if errors.Is(err, pack.ErrManyRefs) {
		return Fetched{}, fmt.Errorf("list %s: %w", remote, errManyRefs)
	}
	if err == nil && !f.mayLackHistory() {
		if done, ok := u.fetchWithoutGit(ctx, f, there); ok {
			return done, nil
		}
	}

	// Let git fetch from a view. As in Fetch, make a damaged mirror again, once.
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

// fetchView fetches from a view of a directory, which it makes inside the mirror and removes at the
// end. If it has made the mirror and the fetch fails, it removes the mirror.
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

	// Git trusts the view, because this process has made it.
	view := filepath.Join(u.dir, viewName)
	if err := os.RemoveAll(view); err != nil { // from a fetch that was killed
		return Fetched{}, err
	}

	defer os.RemoveAll(view)

	if err := f.makeView(ctx, view, config); err != nil {
		return Fetched{}, fmt.Errorf("show %s to git: %w", remote, err)
	}

	if fresh {
		u.copyPacksIfPossible(ctx, f)
	}

	from := source{Remote: Remote{URL: LocalURL(view)}, shown: remote.String(), local: f}
	there, err := list(ctx, from, o)
	if err != nil {
		return Fetched{}, err
	}
	return u.updateTo(ctx, from, o, there)
}

// copyPacksIfPossible copies the packs of a directory into a new mirror, so that the first fetch
// finds nearly all objects there: copying is much faster than packing and indexing. It never makes
// links to foreign files. If anything fails, it leaves the work to the fetch, which also checks
// that all objects are there.
func (u *updater) copyPacksIfPossible(ctx context.Context, f *foreign) {
	if f.mayLackHistory() {
		return
	}
	if _, err := u.copyPacks(ctx, f); err != nil {
		run.EachPack(u.dir, func(path string, _ os.DirEntry) { os.Remove(path) })
	}
}

// copyPacks copies the packs of a scanned repository into the mirror, and returns the paths of the
// copies without an ending. It makes new indexes for packs whose own indexes are not trusted.
func (u *updater) copyPacks(ctx context.Context, f *foreign) ([]string, error) {
	packs, err := f.copyPacks(ctx, filepath.Join(u.dir, "objects", "pack"), f.hasTrustedIndexes())
	if err != nil || f.hasTrustedIndexes() {
		return packs, err
	}

	// The indexes may be forged, so let git make new ones.
	for _, name := range packs {
		c := u.git("index-pack", "-o", name+".idx", name+".pack")
		c.Timeout, c.Writes = copyTime, true
		if err := c.Run(ctx); err != nil {
			return nil, err
		}
	}
	return packs, nil
}

// fetchWithoutGit fetches without the transport of git, if that is possible: if nothing is new, or
// if there is no mirror yet. Otherwise it changes nothing and returns false.
func (u *updater) fetchWithoutGit(ctx context.Context, f *foreign, there *listing) (Fetched, bool) {
	existing, err := formatOf(u.dir)
	if err != nil || existing != "" && existing != there.format() {
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

	if existing != "" {
		return done, u.hasRefs(want, head)
	}

	if err := f.scan(ctx); err != nil {
		return Fetched{}, false
	}
	if _, err := u.prepare(ctx, there.format()); err != nil {
		return Fetched{}, false
	}

	defer u.dropCachedRefs()

	if err := u.fillMirror(ctx, f, want, head); err != nil {
		_ = u.discard()
		return Fetched{}, false
	}

	done.Changed = true
	return done, true
}

// hasRefs removes what a killed git has left, and reports whether the mirror has exactly the
// references in want, and the given text in its file HEAD.
func (u *updater) hasRefs(want map[string]string, head string) bool {
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

// fillMirror fills a new mirror with the objects of a scanned directory, and sets its references
// and HEAD.
func (u *updater) fillMirror(ctx context.Context, f *foreign, refs map[string]string, head string) error {
	packs, err := u.copyPacks(ctx, f)
	if err != nil {
		return err
	}
	if len(packs) == 0 || f.loose {
		onlyLoose := len(packs) > 0
		if err := u.packFrom(ctx, f, refs, onlyLoose); err != nil {
			return err
		}
	}

	// Copied packs may lack objects. Packs that git has made are complete.
	if len(packs) > 0 {
		if err := u.checkConnected(ctx, refs); err != nil {
			return err
		}
	}
	return u.writeRefs(refs, head)
}

// packFrom packs all objects that references of a foreign repository lead to into the mirror. If
// onlyLoose is set, it packs only objects that are in no pack there.
func (u *updater) packFrom(ctx context.Context, f *foreign, refs map[string]string, onlyLoose bool) error {
	objects := f.stores[0].path
	if strings.ContainsAny(objects, ":\"\n") { // the list of directories cannot contain these
		return pack.ErrAskGit
	}

	c := u.git("pack-objects", "--quiet", "--revs", "--non-empty", "--window=0", "--delta-base-offset", "--compression=1")
	if onlyLoose {
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
