package job

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard/git"
)

// Mirrors is the bare repositories of this node: one directory for each, named
// by the number of the repository. It is safe for concurrent use.
type Mirrors struct {
	dir string

	mu   sync.Mutex // guards the field below
	open map[catalog.RepoID]*git.Mirror
}

// OpenMirrors uses dir, which is made when it is missing.
func OpenMirrors(dir string) (*Mirrors, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("mirrors: %w", err)
	}
	return &Mirrors{dir: dir, open: map[catalog.RepoID]*git.Mirror{}}, nil
}

// Get returns the mirror of a repository, which need not exist yet. All
// callers share one.
func (ms *Mirrors) Get(id catalog.RepoID) *git.Mirror {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.open[id]
	if m == nil {
		m = git.Open(ms.path(id))
		ms.open[id] = m
	}
	return m
}

// Has tells whether the mirror is on this disk.
func (ms *Mirrors) Has(id catalog.RepoID) bool {
	_, err := os.Stat(filepath.Join(ms.path(id), "HEAD"))
	return err == nil
}

// Names lists the repositories with a directory here, and the names of
// entries that are none.
func (ms *Mirrors) Names() (ids []catalog.RepoID, strange []string, err error) {
	entries, err := os.ReadDir(ms.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("mirrors: %w", err)
	}
	for _, e := range entries {
		n, err := strconv.ParseUint(strings.TrimSuffix(e.Name(), ".git"), 10, 32)
		if err != nil || !strings.HasSuffix(e.Name(), ".git") {
			strange = append(strange, e.Name())
			continue
		}
		ids = append(ids, catalog.RepoID(n))
	}
	return ids, strange, nil
}

// Drop closes a mirror and deletes it.
func (ms *Mirrors) Drop(id catalog.RepoID) error {
	ms.mu.Lock()
	m := ms.open[id]
	delete(ms.open, id)
	ms.mu.Unlock()
	if m != nil {
		m.Close()
	}
	// A crash in the middle must not leave half a mirror under its name.
	gone := ms.path(id) + ".gone"
	if err := os.Rename(ms.path(id), gone); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("mirror %d: %w", id, err)
	}
	return os.RemoveAll(gone)
}

// dropStrange deletes an entry that is no mirror.
func (ms *Mirrors) dropStrange(name string) error {
	return os.RemoveAll(filepath.Join(ms.dir, filepath.Base(name)))
}

// Close ends the processes of all mirrors.
func (ms *Mirrors) Close() {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, m := range ms.open {
		m.Close()
	}
	ms.open = map[catalog.RepoID]*git.Mirror{}
}

func (ms *Mirrors) path(id catalog.RepoID) string {
	return filepath.Join(ms.dir, strconv.FormatUint(uint64(id), 10)+".git")
}
