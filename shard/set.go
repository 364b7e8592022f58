package shard

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/symbols"
)

// Set manages the index files of one node. It is safe for concurrent use.
type Set struct {
	*resources
	dir string
	opt SetOptions

	groupViewBytes atomic.Int64 // bytes of the cached group views of all files
	pathBytes      atomic.Int64 // bytes of the path indexes of all files

	mu         sync.Mutex // guards the fields below
	files      map[fileKey]*entry
	unreadable map[fileKey]time.Time // files of a version too old to read, and since when Retain finds each unused
	rebuild    Rebuild
	idle       sync.Cond // signalled when an entry loses its last reader
	closed     bool
}

// fileKey identifies a file of the set.
type fileKey struct {
	id   FileID
	kind FileKind
}

// keyOf returns the key of a file by its name; false if the name is not one of an index file.
func keyOf(name string) (fileKey, bool) {
	id, kind, ok := ParseFileName(name)
	return fileKey{id, kind}, ok
}

// SetOptions are the settings of a Set.
type SetOptions struct {
	Workers int // cores that all searches together may use; 0 means GOMAXPROCS
	Now     func() time.Time
	Formats *file.Formats // nil means those of this release

	// Level returns the level of the catalog, which decides the versions that are written. Nil
	// means the highest level.
	Level func() uint64
	// Damaged is called with each file that is found damaged and moved into quarantine, by the
	// goroutine that found it. It must not block. Nil means no call.
	Damaged func(name string, err error)
	// Unreadable is called with each file that could not be used though nothing shows that it is
	// damaged: the program has a mistake. The file stays. It must not block. Nil means no call.
	Unreadable func(name string, err error)
}

// quarantineDir is the directory for damaged files, inside the directory of the set, where an
// operator can examine them.
const quarantineDir = "damaged"

// OpenSet opens the files in dir, which it makes if it is missing. It removes files that a crash
// left half-written, and quarantines files that fail their header check. It leaves files of a
// version too old to read where they are. A file of a newer version gives a *file.VersionError.
func OpenSet(dir string, opt SetOptions) (*Set, error) {
	if opt.Now == nil {
		opt.Now = clock.Now
	}
	if opt.Formats == nil {
		opt.Formats = &file.Release
	}
	if opt.Level == nil {
		opt.Level = func() uint64 { return math.MaxUint64 }
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open index directory: %w", err)
	}

	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("open index directory: %w", err)
	}

	s := &Set{dir: dir, opt: opt, files: map[fileKey]*entry{}, unreadable: map[fileKey]time.Time{}}
	s.resources = &resources{gate: newGate(opt.Workers), cache: newBlockCache(), names: newPathSets(), tables: new(symbols.Tables), report: s.report, release: s.release}
	s.idle.L = &s.mu

	for _, d := range list {
		name := d.Name()
		if strings.HasPrefix(name, file.TempPrefix) {
			_ = os.Remove(filepath.Join(dir, name))
			continue
		}

		// Leave other files alone.
		key, ok := keyOf(name)
		if !ok {
			continue
		}
		switch err := s.Add(name); {
		case errors.Is(err, file.ErrOlder):
			s.unreadable[key] = time.Time{}
		case err != nil && !errors.Is(err, ErrDamaged):
			_ = s.Close()
			return nil, err
		}
	}
	return s, nil
}

// Close waits until all readers have released their files, and unmaps the files. A closed set gives
// no file to new readers.
func (s *Set) Close() error {
	s.mu.Lock()
	s.closed = true

	for key, e := range s.files {
		for e.refs > 0 {
			s.idle.Wait()
		}

		s.closeFile(e)
		delete(s.files, key)
	}
	s.mu.Unlock()
	return nil
}

// closeFile unmaps a file without readers.
func (s *Set) closeFile(e *entry) {
	e.f.Close()
	if e.sh != nil {
		e.sh.groupViews.drop(&s.groupViewBytes)
		e.sh.dropPathIndex()
	}
}

// Dir returns the directory of the set, where Build must write.
func (s *Set) Dir() string { return s.dir }

// Names returns the names of the files of the set, sorted.
func (s *Set) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.files))
	for _, e := range s.files {
		names = append(names, e.f.Name())
	}
	slices.Sort(names)
	return names
}

// Has reports whether the set has a file.
func (s *Set) Has(name string) bool {
	key, ok := keyOf(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	return ok && s.files[key] != nil
}

// Size returns the number of bytes of a file; 0 if the set does not have it.
func (s *Set) Size(name string) int64 {
	key, _ := keyOf(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.files[key]; e != nil {
		return e.size
	}
	return 0
}

// Bytes returns the size of all files together.
func (s *Set) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum int64
	for _, e := range s.files {
		sum += e.size
	}
	return sum
}

// Quarantined returns the number of damaged files in quarantine, also those of an earlier process;
// 0 if the directory cannot be read.
func (s *Set) Quarantined() int {
	n := 0
	list, _ := os.ReadDir(filepath.Join(s.dir, quarantineDir))
	for _, d := range list {
		if _, ok := keyOf(d.Name()); ok {
			n++
		}
	}
	return n
}

// Add opens files that Build or Update put into the directory. It skips a file that is open
// already. It quarantines a damaged file.
func (s *Set) Add(names ...string) error {
	for _, name := range names {
		if s.Has(name) {
			continue
		}
		key, ok := keyOf(name)
		if !ok {
			return fmt.Errorf("open %q: not the name of an index file: %w", name, fs.ErrInvalid)
		}

		e, err := s.openEntry(filepath.Join(s.dir, name), key.kind)
		if err != nil {
			if errors.Is(err, ErrDamaged) {
				s.putAside(name, err)
			}
			return fmt.Errorf("open index file: %w", err)
		}

		// Another call may have opened the file meanwhile: keep the first.
		s.mu.Lock()
		if s.closed || s.files[key] != nil {
			e.f.Close()
		} else {
			if s.files[key] = e; e.sh != nil {
				e.sh.groupViewBytes, e.sh.pathBytes = &s.groupViewBytes, &s.pathBytes
			}
		}
		s.mu.Unlock()
	}
	return nil
}

// openEntry opens a file of the set.
func (s *Set) openEntry(path string, kind FileKind) (*entry, error) {
	f, err := file.Open(path, kind, s.opt.Formats)
	if err != nil {
		return nil, err
	}

	e := &entry{size: f.Size(), f: f}
	switch kind {
	case KindShard:
		e.sh = &shard{f: f}
	case KindDead:
		e.dead = &deadFile{f: f}
	case KindSymbols:
		e.sym = symbols.Open(f, s.tables)
	}
	return e, nil
}

// report handles an error of the files of a member. It puts a file aside only if the error shows that this
// file is damaged, because the same bytes would be built again.
func (s *Set) report(m *member, err error) {
	if e := m.damagedEntry(err); e != nil {
		s.quarantine(e, err)
	} else if s.opt.Unreadable != nil {
		s.opt.Unreadable(m.entry.f.Name(), err)
	}
}

// quarantine moves a damaged file into quarantineDir and reports it. Searches that have it open may
// continue to read it.
func (s *Set) quarantine(e *entry, cause error) {
	name := e.f.Name()
	key, _ := keyOf(name)

	// If the set has a new copy of the file, cause is about the old copy: do nothing.
	s.mu.Lock()
	if s.files[key] != e {
		s.mu.Unlock()
		return
	}

	delete(s.files, key)
	e.gone = true
	if e.refs == 0 {
		s.closeFile(e)
	}
	s.mu.Unlock()
	s.putAside(name, cause)
}

// putAside moves a file that is not in the set into quarantineDir and reports it.
func (s *Set) putAside(name string, cause error) {
	from, to := filepath.Join(s.dir, name), filepath.Join(s.dir, quarantineDir)
	err := os.MkdirAll(to, 0o700)
	if err == nil {
		err = os.Rename(from, filepath.Join(to, name))
	}

	if errors.Is(err, fs.ErrNotExist) {
		return // another goroutine has moved the file and reported it
	}

	if s.opt.Damaged != nil {
		s.opt.Damaged(name, errors.Join(cause, err))
	}
}

// Import copies a file from r, checks that its bytes have the hash in its name, and adds it. A
// wrong hash is ErrDamaged. Neither a wrong hash nor an unreadable version leaves a file behind.
func (s *Set) Import(ctx context.Context, name string, r io.Reader) error {
	key, ok := keyOf(name)
	if !ok {
		return fmt.Errorf("import %q: not the name of an index file: %w", name, fs.ErrInvalid)
	}
	if s.Has(name) {
		return nil
	}

	f, err := os.CreateTemp(s.dir, file.TempPrefix+"*")
	if err != nil {
		return fmt.Errorf("import index file: %w", err)
	}

	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, sum), contextReader{ctx, r})
	if err == nil && FileID(sum.Sum(nil)) != key.id {
		err = errOtherBytes
	}
	if err == nil {
		head := make([]byte, file.HeadBytes)
		n, _ := f.ReadAt(head, 0) // Add finds a file that is too short
		err = s.opt.Formats.Check(name, head[:n], key.kind)
	}

	if err == nil {
		err = file.Publish(f, filepath.Join(s.dir, name))
	}

	if err != nil {
		_ = f.Close()
		_ = os.Remove(f.Name())
		return fmt.Errorf("import %s: %w", name, err)
	}
	return s.Add(name)
}

var errOtherBytes = fmt.Errorf("%w: other bytes than its name says", ErrDamaged)

// contextReader is a reader that fails when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// Export opens a file, so that it can be copied to another node, and returns its size.
func (s *Set) Export(name string) (io.ReadCloser, int64, error) {
	if !s.Has(name) {
		return nil, 0, fmt.Errorf("export %q: %w", name, fs.ErrNotExist)
	}
	f, err := os.Open(filepath.Join(s.dir, name))
	if err != nil {
		return nil, 0, fmt.Errorf("export index file: %w", err)
	}
	return f, s.Size(name), nil
}

// Retain collects garbage. A file for which live returns false throughout the grace time leaves the
// set, and is deleted when its last reader is done. Retain returns the removed names. Call it
// regularly. live must also return true for the files of running jobs.
func (s *Set) Retain(live func(name string) bool, grace time.Duration) (removed []string, err error) {
	now := s.opt.Now()

	s.mu.Lock()
	defer s.mu.Unlock()
	for key, e := range s.files {
		name := e.f.Name()
		if live(name) {
			e.unused = time.Time{}
			continue
		}

		if e.unused.IsZero() {
			e.unused = now
		}
		if now.Sub(e.unused) < grace {
			continue
		}

		// Readers may have the file mapped. The kernel keeps its bytes until the last of them ends.
		if rm := os.Remove(filepath.Join(s.dir, name)); rm != nil && !errors.Is(rm, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("remove index file: %w", rm))
			continue
		}

		delete(s.files, key)
		e.gone = true
		if e.refs == 0 {
			s.closeFile(e)
		}
		removed = append(removed, name)
	}

	for key, since := range s.unreadable {
		name := key.id.Name(key.kind)
		if live(name) {
			continue
		}
		if since.IsZero() {
			s.unreadable[key] = now
		} else if now.Sub(since) >= grace && os.Remove(filepath.Join(s.dir, name)) == nil {
			delete(s.unreadable, key)
			removed = append(removed, name)
		}
	}
	s.countOlder()

	slices.Sort(removed)
	return removed, err
}

// Verify reads every byte of a file and compares the hash with its name. It quarantines a damaged
// file.
func (s *Set) Verify(ctx context.Context, name string) error {
	key, _ := keyOf(name)
	s.mu.Lock()
	e := s.files[key]
	s.mu.Unlock()

	r, _, err := s.Export(name)
	if err != nil {
		return err
	}
	defer r.Close()

	sum := sha256.New()
	if _, err := io.Copy(sum, contextReader{ctx, r}); err != nil {
		return fmt.Errorf("verify %s: %w", name, err)
	}

	if FileID(sum.Sum(nil)) != key.id {
		err := fmt.Errorf("verify index file: %w", &DamagedError{File: name, Err: errOtherBytes})
		if e != nil {
			s.quarantine(e, err)
		}
		return err
	}
	return nil
}

// release drops the references to entries. The last reader of a file that has left the set unmaps
// it.
func (s *Set) release(entries []*entry) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, e := range entries {
		e.refs--
		if e.refs == 0 {
			// An entry that has left the set gets no new reader.
			if e.gone {
				s.closeFile(e)
			}
			s.idle.Broadcast()
		}
	}
}

// CacheSize is how much memory a cache takes.
type CacheSize struct {
	Name        string
	Bytes, Most int64 // the size now, and the greatest size
}

// Caches returns the size of each cache that searches of the set use. It is safe for concurrent
// use.
func (s *Set) Caches() []CacheSize {
	return []CacheSize{
		{"blocks", s.cache.bytes.Load(), cacheRows * cacheWays * cacheBlock},
		{"groups", s.groupViewBytes.Load(), maxGroupViewBytes},
		{"paths", s.names.cache.Size(), pathSetBytes},
		{"path postings", s.pathBytes.Load(), pathIndexBytes},
		{"codes of symbols", s.tables.Bytes(), symbols.TableBytes},
	}
}
