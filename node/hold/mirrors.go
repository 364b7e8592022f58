package hold

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard/git"
)

// Mirrors is the bare repositories of this node. Each has a directory named by the id of the
// repository. It is safe for concurrent use.
type Mirrors struct {
	dir   string
	procs *git.Processes // git processes that read objects, for all mirrors

	mu     sync.Mutex // guards the fields below
	opened map[catalog.RepoID]*git.Mirror
	sizes  map[catalog.RepoID]mirrorSize
}

// mirrorSize is the size of a mirror on disk when it was last measured.
type mirrorSize struct {
	bytes int64
	next  time.Time // time of the next measurement
}

// Limits of measuring mirrors. The collector measures a few in each round, so that the round stays
// short. Between fetches a mirror hardly grows.
const (
	measureEvery     = time.Minute
	maxMeasured      = 32      // mirrors in one round
	maxMeasuredFiles = 100_000 // files of one mirror; a packed mirror has a few dozen
)

// OpenMirrors returns the mirrors in dir, which it makes if it is missing.
func OpenMirrors(dir string) (*Mirrors, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("mirrors: %w", err)
	}
	return &Mirrors{dir: dir, procs: git.NewProcesses(max(16, 4*runtime.GOMAXPROCS(0)), clock.Now), opened: map[catalog.RepoID]*git.Mirror{}, sizes: map[catalog.RepoID]mirrorSize{}}, nil
}

// Get returns the mirror of a repository, which need not exist yet. All callers get the same
// object.
func (ms *Mirrors) Get(id catalog.RepoID) *git.Mirror {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.opened[id]
	if m == nil {
		m = ms.procs.Open(ms.path(id))
		ms.opened[id] = m
	}
	return m
}

// Has reports whether the mirror is on this disk.
func (ms *Mirrors) Has(id catalog.RepoID) bool {
	_, err := os.Stat(filepath.Join(ms.path(id), "HEAD"))
	return err == nil
}

// Names returns the ids of the repositories with a directory here, and the names of other entries.
func (ms *Mirrors) Names() (ids []catalog.RepoID, others []string, err error) {
	entries, err := os.ReadDir(ms.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("mirrors: %w", err)
	}

	// Return other entries separately: the collector decides about them.
	for _, e := range entries {
		n, err := strconv.ParseUint(strings.TrimSuffix(e.Name(), ".git"), 10, 32)
		if err != nil || !strings.HasSuffix(e.Name(), ".git") {
			others = append(others, e.Name())
			continue
		}

		ids = append(ids, catalog.RepoID(n))
	}
	return ids, others, nil
}

// Drop closes a mirror and deletes it.
func (ms *Mirrors) Drop(id catalog.RepoID) error {
	ms.mu.Lock()
	m := ms.opened[id]
	delete(ms.opened, id)
	delete(ms.sizes, id)
	ms.mu.Unlock()
	if m != nil {
		m.Close()
	}
	// Rename it first, so that a crash leaves no half mirror under its name.
	renamed := ms.path(id) + ".gone"
	if err := os.Rename(ms.path(id), renamed); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("mirror %d: %w", id, err)
	}
	return os.RemoveAll(renamed)
}

// dropOther deletes an entry that is not a mirror.
func (ms *Mirrors) dropOther(name string) error {
	return os.RemoveAll(filepath.Join(ms.dir, filepath.Base(name)))
}

// Bytes returns the size of the mirrors on disk, as last measured: it follows a fetch by about a
// second.
func (ms *Mirrors) Bytes() int64 {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	var sum int64
	for _, s := range ms.sizes {
		sum += s.bytes
	}
	return sum
}

// Changed marks a mirror for measuring.
func (ms *Mirrors) Changed(id catalog.RepoID) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	s := ms.sizes[id]
	s.next = time.Time{}
	ms.sizes[id] = s
}

// measureDue measures up to maxMeasured mirrors that are due, those waiting longest first.
func (ms *Mirrors) measureDue(ids []catalog.RepoID, now time.Time) {
	ms.mu.Lock()

	known := make(map[catalog.RepoID]bool, len(ids))
	var due []catalog.RepoID
	for _, id := range ids {
		known[id] = true
		if !now.Before(ms.sizes[id].next) {
			due = append(due, id)
		}
	}

	for id := range ms.sizes {
		if !known[id] {
			delete(ms.sizes, id)
		}
	}

	slices.SortFunc(due, func(a, b catalog.RepoID) int {
		return cmp.Or(ms.sizes[a].next.Compare(ms.sizes[b].next), cmp.Compare(a, b))
	})
	due = due[:min(len(due), maxMeasured)]

	for _, id := range due {
		// Set the time before the walk: a fetch that ends during the walk marks the mirror again.
		ms.sizes[id] = mirrorSize{bytes: ms.sizes[id].bytes, next: now.Add(measureEvery)}
	}

	ms.mu.Unlock()

	for _, id := range due {
		bytes := dirSize(ms.path(id))
		ms.mu.Lock()
		if s, ok := ms.sizes[id]; ok {
			s.bytes = bytes
			ms.sizes[id] = s
		}
		ms.mu.Unlock()
	}
}

// dirSize returns the bytes of the files below dir. Files that come and go meanwhile do not matter.
func dirSize(dir string) (sum int64) {
	files := 0
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}

		// An estimate of a huge mirror is enough.
		if files++; files > maxMeasuredFiles {
			return filepath.SkipAll
		}

		if info, err := d.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

// Close ends the git processes of all mirrors.
func (ms *Mirrors) Close() {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, m := range ms.opened {
		m.Close()
	}
	ms.opened = map[catalog.RepoID]*git.Mirror{}
}

func (ms *Mirrors) path(id catalog.RepoID) string {
	return filepath.Join(ms.dir, strconv.FormatUint(uint64(id), 10)+".git")
}
