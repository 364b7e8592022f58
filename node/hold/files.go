package hold

import (
	"fmt"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard"
)

// Files is what this node has on disk. It knows which index files must stay although the catalog
// does not name them yet. It is safe for concurrent use.
//
//	an attempt writes a file      Adopt: guarded until the attempt releases it, by then a view names it
//	another node will publish it  awaitPublication: stays until the repository has a later generation, or for a minute
type Files struct {
	*shard.Set
	Mirrors *Mirrors

	now func() time.Time

	mu      sync.Mutex // guards the fields below
	guarded map[string]int
	awaited map[string]awaitedFile
}

// awaitedFile says how long to keep a file whose generation is not published yet.
type awaitedFile struct {
	repo  catalog.RepoID
	after uint64 // index of the generation that will be replaced
	until time.Time
}

// NewFiles returns the Files of a set of index files and the mirrors.
func NewFiles(set *shard.Set, mirrors *Mirrors, now func() time.Time) *Files {
	return &Files{Set: set, Mirrors: mirrors, now: now, guarded: map[string]int{}, awaited: map[string]awaitedFile{}}
}

// Complete reports whether this node has every file of a repository's live generation.
func (f *Files) Complete(repo *catalog.Repo) bool {
	for _, s := range repo.Shards {
		for _, file := range FilesOf(repo.ID, s) {
			if !f.Has(file) {
				return false
			}
		}
	}
	return true
}

// Adopt opens files that were written into the directory, and guards them until release is called.
// No view names them before the end of the attempt that wrote them, which may be many minutes away.
// release is never nil.
func (f *Files) Adopt(names ...string) (release func(), err error) {
	// Guard the files before opening them: otherwise the collector might remove them in between.
	release = f.Guard(names)
	if err := f.Add(names...); err != nil {
		return release, fmt.Errorf("open the new shards: %w", err)
	}
	return release, nil
}

// Guard keeps files from being deleted until release is called.
func (f *Files) Guard(names []string) (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	// Count the guards: two jobs may need the same file.
	for _, n := range names {
		f.guarded[n]++
	}

	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, n := range names {
			if f.guarded[n]--; f.guarded[n] == 0 {
				delete(f.guarded, n)
			}
		}
	}
}

// awaitPublication keeps the files of a generation that another node is about to publish.
func (f *Files) awaitPublication(call prefetchCall, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range call.Names {
		f.awaited[n] = awaitedFile{call.Repo, call.Generation, until}
	}
}

// unpublishedFiles returns the files that must stay although no view up to this one names them: guarded
// files, and those that another node is about to publish. It forgets awaited files that expired.
func (f *Files) unpublishedFiles(view *catalog.View) map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()

	names := make(map[string]bool, len(f.guarded)+len(f.awaited))
	for n := range f.guarded {
		names[n] = true
	}

	// An awaited file stays until a view names it or its time is over.
	for n, a := range f.awaited {
		if a.expired(view, f.now()) {
			delete(f.awaited, n)
			continue
		}
		names[n] = true
	}
	return names
}

// expired reports whether waiting for a file is over: the repository is gone or has a later
// generation, or the time is up.
func (a awaitedFile) expired(view *catalog.View, now time.Time) bool {
	repo := view.Repo(a.repo)
	return repo == nil || repo.GenerationAt > a.after || now.After(a.until)
}
