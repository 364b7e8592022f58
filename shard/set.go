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

// Set is the index files of one node. It is safe for concurrent use.
type Set struct {
	*resources
	dir string
	opt SetOptions

	joinBytes atomic.Int64 // of the joins of all files

	mu      sync.Mutex // guards the fields below
	files   map[fileKey]*entry
	unread  map[fileKey]time.Time // files of a version too old to be read, and since when Retain finds each unused
	rebuild Rebuild
	idle    sync.Cond // signalled when an entry loses its last reader
	closed  bool
}

// fileKey is what a file of the set is found by.
type fileKey struct {
	id   FileID
	kind FileKind
}

// keyOf returns the key of a file by its name; false if no index file has such a
// name.
func keyOf(name string) (fileKey, bool) {
	id, kind, ok := ParseFileName(name)
	return fileKey{id, kind}, ok
}

// SetOptions are the settings of a Set.
type SetOptions struct {
	Workers int // cores that searches may use together; 0 means GOMAXPROCS
	Now     func() time.Time
	Formats *file.Formats // nil means those of this release

	// Level is the level of the catalog, on which the versions depend that are written.
	// Nil means the highest.
	Level func() uint64
	// Damaged, when not nil, is called with each file that was found damaged and
	// moved into quarantine, by the goroutine that found it. It must not block.
	Damaged func(name string, err error)
}

// quarantineDir is where damaged files go, inside the directory of the set, for
// somebody to look at.
const quarantineDir = "damaged"

// OpenSet opens the files that lie in dir, which is made if it is missing.
// Files left half-written by a crash are removed; files that fail their
// header check are quarantined. Files of a version too old to be read are left where
// they are; one of a newer version is a *file.VersionError.
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

	s := &Set{dir: dir, opt: opt, files: map[fileKey]*entry{}, unread: map[fileKey]time.Time{}}
	s.resources = &resources{gate: newGate(opt.Workers), cache: newBlockCache(), names: newPathSets(), quarantine: s.quarantine, release: s.release}
	s.idle.L = &s.mu

	for _, d := range list {
		name := d.Name()
		if strings.HasPrefix(name, file.TempPrefix) {
			_ = os.Remove(filepath.Join(dir, name))
			continue
		}

		// Names that are not ours are left alone.
		key, ok := keyOf(name)
		if !ok {
			continue
		}
		switch err := s.Add(name); {
		case errors.Is(err, file.ErrOlder):
			s.unread[key] = time.Time{}
		case err != nil && !errors.Is(err, ErrDamaged):
			_ = s.Close()
			return nil, err
		}
	}
	return s, nil
}

// Close waits for the readers to leave and unmaps every file.
func (s *Set) Close() error {
	s.mu.Lock()
	s.closed = true

	// Waiting gives the lock away, but closed lets nobody in any more.
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

// closeFile unmaps a file that nobody reads.
func (s *Set) closeFile(e *entry) {
	e.f.Close()
	if e.sh != nil {
		e.sh.joins.drop(&s.joinBytes)
	}
}

// Dir is the directory of the set, where Build must write.
func (s *Set) Dir() string { return s.dir }

// Names lists the files of the set, sorted.
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

// Has reports whether the set holds a file.
func (s *Set) Has(name string) bool {
	key, ok := keyOf(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	return ok && s.files[key] != nil
}

// Size is the number of bytes of a file of the set, 0 for one it has not.
func (s *Set) Size(name string) int64 {
	key, _ := keyOf(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.files[key]; e != nil {
		return e.size
	}
	return 0
}

// Bytes is the size of all files together.
func (s *Set) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum int64
	for _, e := range s.files {
		sum += e.size
	}
	return sum
}

// Quarantined is the number of damaged files that lie aside, also those that
// an earlier process has put there; 0 when that cannot be told.
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

// Add opens files that Build or Update put into the directory. A name that is
// open already is fine. A damaged file is quarantined.
func (s *Set) Add(names ...string) error {
	for _, name := range names {
		if s.Has(name) {
			continue
		}
		key, ok := keyOf(name)
		if !ok {
			return fmt.Errorf("open %q: not the name of an index file: %w", name, fs.ErrInvalid)
		}

		e, err := openEntry(filepath.Join(s.dir, name), key.kind, s.opt.Formats)
		if err != nil {
			if errors.Is(err, ErrDamaged) {
				s.putAside(name, err)
			}
			return fmt.Errorf("open index file: %w", err)
		}

		// Another call may have opened it meanwhile: the first one stays.
		s.mu.Lock()
		if s.closed || s.files[key] != nil {
			e.f.Close()
		} else {
			if s.files[key] = e; e.sh != nil {
				e.sh.joinBytes = &s.joinBytes
			}
		}
		s.mu.Unlock()
	}
	return nil
}

func openEntry(path string, kind FileKind, known *file.Formats) (*entry, error) {
	f, err := file.Open(path, kind, known)
	if err != nil {
		return nil, err
	}

	// The head was checked; what is in the file is read when a search asks.
	e := &entry{size: f.Size(), f: f}
	switch kind {
	case KindShard:
		e.sh = &shard{f: f}
	case KindDead:
		e.dead = &deadFile{f: f}
	case KindSymbols:
		e.sym = symbols.Open(f)
	}
	return e, nil
}

// quarantine moves a damaged file into quarantineDir and reports it. Those who
// have it open may go on reading.
func (s *Set) quarantine(e *entry, cause error) {
	name := e.f.Name()
	key, _ := keyOf(name)

	// Who reads the old file may find it damaged when a new copy has long taken its place.
	s.mu.Lock()
	if s.files[key] != e {
		s.mu.Unlock()
		return
	}

	// From here on no search takes it; the last that has it closes it.
	delete(s.files, key)
	e.gone = true
	if e.refs == 0 {
		s.closeFile(e)
	}
	s.mu.Unlock()
	s.putAside(name, cause)
}

// putAside moves a file that is not of the set into quarantineDir and reports it.
func (s *Set) putAside(name string, cause error) {
	from, to := filepath.Join(s.dir, name), filepath.Join(s.dir, quarantineDir)
	err := os.MkdirAll(to, 0o700)
	if err == nil {
		err = os.Rename(from, filepath.Join(to, name))
	}

	if errors.Is(err, fs.ErrNotExist) {
		return // another goroutine has moved it
	}

	if s.opt.Damaged != nil {
		s.opt.Damaged(name, errors.Join(cause, err))
	}
}

// Import copies a file from r, checks that its bytes have the hash in its name,
// and adds it. A wrong hash is ErrDamaged and leaves nothing behind, as does a version
// that is not read.
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

	// The name is the hash: another node cannot pass other bytes off as this file.
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, sum), contextReader{ctx, r})
	if err == nil && FileID(sum.Sum(nil)) != key.id {
		err = errOtherBytes
	}
	if err == nil {
		head := make([]byte, file.HeadBytes)
		n, _ := f.ReadAt(head, 0) // a short file is found by Add
		err = s.opt.Formats.Check(name, head[:n], key.kind)
	}

	// Only a whole file gets its name.
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

// contextReader ends with its context.
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

// Export opens a file, to be copied to another node, and returns its size.
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

// Retain collects garbage: files that live has denied for the grace time leave the
// set at once, and are deleted when their last reader is done. It returns the
// names that were removed. Call it again and again; live must also grant the files
// of jobs that still run.
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

		// Readers may have it mapped: the name goes now, the bytes with the last mapping.
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

	for key, since := range s.unread {
		name := key.id.Name(key.kind)
		if live(name) {
			continue
		}
		if since.IsZero() {
			s.unread[key] = now
		} else if now.Sub(since) >= grace && os.Remove(filepath.Join(s.dir, name)) == nil {
			delete(s.unread, key)
			removed = append(removed, name)
		}
	}
	s.older()

	slices.Sort(removed)
	return removed, err
}

// Verify reads every byte of a file and compares it with its name; a damaged
// file is quarantined.
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

	// The name is the hash of the bytes.
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

// release ends the use of entries. The last reader unmaps what has left the set.
func (s *Set) release(entries []*entry) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, e := range entries {
		e.refs--
		if e.refs == 0 {
			// Its name has left the set long ago: nobody can come to it any more.
			if e.gone {
				s.closeFile(e)
			}
			s.idle.Broadcast()
		}
	}
}

// CacheSize is the memory of a cache.
type CacheSize struct {
	Name        string
	Bytes, Most int64 // now, and at most
}

// Caches is the memory that searches of the set remember things in. It is safe for
// concurrent use.
func (s *Set) Caches() []CacheSize {
	return []CacheSize{
		{"blocks", s.cache.bytes.Load(), cacheRows * cacheWays * cacheBlock},
		{"groups", s.joinBytes.Load(), joinedBytes},
		{"paths", s.names.cache.Size(), pathSetBytes},
	}
}
