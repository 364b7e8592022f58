package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/shard/git/pack"
)

const (
	groomTime = time.Hour
	manyPacks = 20 // greatest number of packs; Groom joins more

	briefHistory = 16 // greatest number of commits of a mirror that needs no graph
)

// Groom makes the mirror fast to read: packed references, few packs, a commit graph with filters of
// changed paths. Call it after a fetch that changed something. Others may read the mirror meanwhile.
// Groom keeps objects that no reference leads to for two weeks.
func (u *updater) Groom(ctx context.Context) error {
	release, err := u.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()

	if format, err := formatOf(u.dir); err != nil || format == "" {
		return err
	}

	if u.hasLooseRefs() {
		if err := u.runStep(ctx, "pack-refs", "--all"); err != nil {
			return err
		}
	}

	// Join small packs so that each is at least twice the size of the next: git then writes an
	// object again only a logarithmic number of times.
	packs, err := u.packs()
	if err != nil {
		return err
	}

	if len(packs) > manyPacks {
		if err := u.runStep(ctx, "repack", "--quiet", "-d", "--geometric=2", "--write-midx"); err != nil {
			return err
		}
	}

	removed, err := u.prune(ctx)
	if err != nil {
		return err
	}

	// A mirror with no commit or few commits needs no graph.
	s, err := u.refs(ctx)
	if err != nil && !errors.Is(err, ErrEmpty) {
		return err
	}
	if s == nil || len(s.byName) == 0 && s.head == "" {
		return nil
	}
	if !removed && u.needsNoGraph(s) {
		return nil
	}

	// A fetch of a few commits adds a small layer. A graph that contains deleted commits must be
	// rewritten.
	split := "--split"
	if removed {
		split = "--split=replace"
	}
	return u.runStep(ctx, "commit-graph", "write", "--reachable", "--changed-paths", split, "--no-progress")
}

// needsNoGraph reports whether a mirror has no commit graph yet, and so few commits that reading
// them all is faster than writing one.
func (u *updater) needsNoGraph(s *refState) bool {
	if graphs, err := filepath.Glob(filepath.Join(escapeGlob(u.dir), "objects/info/commit-graph*")); err != nil || len(graphs) > 0 {
		return false
	}

	tips := slices.Collect(maps.Values(s.byName))
	if s.head != "" {
		tips = append(tips, s.head)
	}
	if len(tips) > fewRefs {
		return false
	}

	// Reading stops at the limit, so a long history costs no more than that.
	store, err := pack.Open(u.dir)
	if err != nil {
		return false
	}
	defer store.Close()
	return hasFewCommits(store, tips, briefHistory)
}

// runStep runs one step of Groom.
func (u *updater) runStep(ctx context.Context, args ...string) error {
	c := u.git(args...)
	c.Timeout, c.Writes = groomTime, true
	if err := c.Run(ctx); err != nil {
		return fmt.Errorf("groom: %w", err)
	}
	return nil
}

// packs returns the names of the mirror's packs.
func (u *updater) packs() ([]string, error) {
	return filepath.Glob(filepath.Join(escapeGlob(u.dir), "objects/pack/*.pack"))
}

// escapeGlob returns a glob that matches only the path itself.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// pruned is the name of a file whose modification time is that of the last prune.
const pruned = "shoal-pruned"

// prune removes, at most once a week, objects that no reference has led to for two weeks: the
// commits of forced pushes and deleted branches. removed is true if it may have removed some.
func (u *updater) prune(ctx context.Context) (removed bool, err error) {
	const week = 7 * 24 * time.Hour
	touched := filepath.Join(u.dir, pruned)
	info, err := os.Stat(touched)
	if errors.Is(err, fs.ErrNotExist) {
		return false, os.WriteFile(touched, nil, 0o644) // nothing can be old yet
	}
	if err != nil || u.now().Sub(info.ModTime()) < week {
		return false, err
	}

	// Unreachable objects become loose, unless they are old. Then git removes old loose objects.
	if err := u.runStep(ctx, "repack", "--quiet", "-d", "-A", "--unpack-unreachable=2.weeks.ago"); err != nil {
		return false, err
	}
	if err := u.runStep(ctx, "prune", "--expire=2.weeks.ago"); err != nil {
		return true, err
	}

	now := u.now()
	return true, os.Chtimes(touched, now, now)
}
