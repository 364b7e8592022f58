package browse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/shard"
)

// Limits of the small indexes that a node keeps.
const (
	mostScratch  = 6 // small indexes; beyond that the least recently used goes
	scratchTime  = 25 * time.Second
	buildsAtOnce = 2
)

// scratch caches small indexes of files that no index has, so that the next query about the same
// commit reads nothing. They are in a directory of their own, which is emptied when the node
// starts and stops.
type scratch struct {
	dir    string
	build  chan struct{} // one place for each running build
	life   context.Context
	stop   context.CancelFunc
	builds sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	byKey  map[string]*scratched
	asked  uint64
	closed bool
}

// scratched is one small index. Its fields are valid once ready is closed.
type scratched struct {
	ready chan struct{}
	set   *shard.Set
	parts []shard.Part
	err   error

	users int    // guarded by scratch.mu, like last
	last  uint64 // value of scratch.asked at the last use
}

func newScratch(dir string) *scratch {
	s := &scratch{dir: dir, build: make(chan struct{}, buildsAtOnce), byKey: map[string]*scratched{}}
	s.life, s.stop = context.WithCancel(context.Background())
	return s
}

// acquireIndex returns the small index of a key, and builds it from source if needed. The build continues
// when the caller gives up, since a user who types asks again. The caller must release the
// result.
func (s *scratch) acquireIndex(ctx context.Context, key string, source func(context.Context) (shard.Source, error), opt shard.BuildOptions) (*scratched, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errors.New("the node stops")
	}

	// One build serves everybody who asks for the key.
	s.asked++
	k := s.byKey[key]
	if k == nil {
		k = &scratched{ready: make(chan struct{}), users: 1} // the build is a user too
		s.byKey[key] = k
		s.builds.Go(func() { s.addIndex(key, k, source, opt) })
	}

	k.users++
	k.last = s.asked
	s.mu.Unlock()

	select {
	case <-k.ready:
	case <-ctx.Done():
		s.release(k)
		return nil, context.Cause(ctx)
	}

	if k.err != nil {
		s.release(k)
		return nil, k.err
	}
	return k, nil
}

// addIndex builds a small index, and then removes the least recently used one if there are too many.
func (s *scratch) addIndex(key string, k *scratched, source func(context.Context) (shard.Source, error), opt shard.BuildOptions) {
	defer s.release(k)
	defer close(k.ready)
	ctx, cancel := context.WithTimeout(s.life, scratchTime)
	defer cancel()

	if k.err = s.buildAndStore(ctx, key, k, source, opt); k.err != nil {
		s.mu.Lock()
		if s.byKey[key] == k {
			delete(s.byKey, key) // the next caller tries again
		}
		s.mu.Unlock()
		return
	}
	s.trim()
}

// buildAndStore builds a small index and stores it under a key.
func (s *scratch) buildAndStore(ctx context.Context, key string, k *scratched, source func(context.Context) (shard.Source, error), opt shard.BuildOptions) error {
	// Limit the builds: each reads and indexes up to 20,000 files.
	select {
	case s.build <- struct{}{}:
		defer func() { <-s.build }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}

	// Hash the key for the directory name, since keys contain queries.
	name := sha256.Sum256([]byte(key))
	set, err := shard.OpenSet(filepath.Join(s.dir, hex.EncodeToString(name[:8])), shard.SetOptions{Workers: opt.Workers})
	if err != nil {
		return err
	}

	// Remove a failed build; the next caller starts afresh.
	built, err := s.buildFiles(ctx, set, source, opt)
	if err != nil {
		return errors.Join(err, closeAndRemove(set))
	}

	for _, b := range built {
		k.parts = append(k.parts, b.Part)
	}
	k.set = set
	return nil
}

// buildFiles builds the index files of a source.
func (s *scratch) buildFiles(ctx context.Context, set *shard.Set, source func(context.Context) (shard.Source, error), opt shard.BuildOptions) ([]shard.Built, error) {
	src, err := source(ctx)
	if err != nil {
		return nil, err
	}

	built, err := set.Build(ctx, src, opt)
	if err != nil {
		return nil, err
	}

	// Open the files now, so that a damaged file fails the build and not a search.
	for _, b := range built {
		if err := set.Add(b.Files()...); err != nil {
			return nil, err
		}
	}
	return built, nil
}

// trim drops the least recently used indexes while there are too many. One in use is removed by
// its last user.
func (s *scratch) trim() {
	// There are only a few, so a linear search is cheap.
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.byKey) > mostScratch {
		oldest := ""
		for key, k := range s.byKey {
			if oldest == "" || k.last < s.byKey[oldest].last {
				oldest = key
			}
		}

		k := s.byKey[oldest]
		delete(s.byKey, oldest)
		s.removeUnused(k)
	}
}

// release gives back an index from acquireIndex.
func (s *scratch) release(k *scratched) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.users--
	s.removeUnused(k)
}

// removeUnused removes a small index that nobody uses and the cache has dropped.
func (s *scratch) removeUnused(k *scratched) {
	if k.users > 0 || k.set == nil {
		return
	}
	for _, other := range s.byKey {
		if other == k {
			return
		}
	}
	_ = closeAndRemove(k.set)
	k.set = nil
}

// close ends the builds and drops all indexes. An index in use is removed by its last user.
func (s *scratch) close() {
	// Refuse new builds and wait for the running ones, since they use the directory.
	s.stop()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.builds.Wait()

	s.mu.Lock()
	indexes := s.byKey
	s.byKey = map[string]*scratched{}
	for _, k := range indexes {
		s.removeUnused(k)
	}
	s.mu.Unlock()
}

// closeAndRemove closes a set and removes its files.
func closeAndRemove(set *shard.Set) error { return errors.Join(set.Close(), os.RemoveAll(set.Dir())) }
