package shard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Set is the index files of one node. It is safe for concurrent use.
type Set struct {
	dir  string
	opt  SetOptions
	gate *gate

	cache *blockCache
	spare sync.Pool // of *evaluator
	known patterns

	mu     sync.Mutex // guards the fields below
	files  map[string]*entry
	idle   sync.Cond // signalled when an entry loses its last reader
	closed bool
}

// entry is an open file of the set.
type entry struct {
	name string
	size int64
	f    *file
	sh   *shard       // of a .shard
	dead *deadFile    // of a .dead
	sym  *symbolsFile // of a .symbols

	refs   int       // readers; guarded by Set.mu
	gone   bool      // no longer in Set.files: unmap with the last reader
	unused time.Time // since when Retain finds it dead; zero: alive
}

// SetOptions are the settings of a Set.
type SetOptions struct {
	Workers int // cores that searches may use together; 0 means GOMAXPROCS
	Now     func() time.Time
	// Damaged, when not nil, is told of each file that was found damaged and
	// moved into quarantine. It is called on a goroutine of its own.
	Damaged func(name string, err error)
}

// quarantineDir is where damaged files go, inside the directory of the set:
// somebody may want to know what happened to them.
const quarantineDir = "damaged"

// OpenSet opens the files that lie in dir, which is made if it is missing.
// Files left half-written by a crash are removed; files that fail their
// header check are quarantined.
func OpenSet(dir string, opt SetOptions) (*Set, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("open index directory: %w", err)
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("open index directory: %w", err)
	}
	s := &Set{dir: dir, opt: opt, gate: newGate(opt.Workers), cache: newBlockCache(), files: map[string]*entry{}}
	s.idle.L = &s.mu
	for _, d := range list {
		name := d.Name()
		if strings.HasPrefix(name, tempPrefix) {
			_ = os.Remove(filepath.Join(dir, name))
			continue
		}
		if _, ok := kindOf(name); !ok {
			continue
		}
		if err := s.Add(name); err != nil && !errors.Is(err, ErrDamaged) {
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
	for name, e := range s.files {
		for e.refs > 0 {
			s.idle.Wait()
		}
		e.f.close()
		delete(s.files, name)
	}
	s.mu.Unlock()
	return nil
}

// Dir is the directory of the set, where Build must write.
func (s *Set) Dir() string { return s.dir }

// Names lists the files of the set, sorted.
func (s *Set) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.files))
	for name := range s.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Has tells whether the set holds a file.
func (s *Set) Has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[name] != nil
}

// Size is the number of bytes of a file of the set, 0 for one it has not.
func (s *Set) Size(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.files[name]; e != nil {
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
		if _, ok := kindOf(d.Name()); ok {
			n++
		}
	}
	return n
}

// Add opens files that were put into the directory, by Build or by Update.
// A name that is already open is fine. A damaged file is quarantined.
func (s *Set) Add(names ...string) error {
	for _, name := range names {
		if s.Has(name) {
			continue
		}
		e, err := openEntry(filepath.Join(s.dir, name), name)
		if err != nil {
			if errors.Is(err, ErrDamaged) {
				s.quarantine(name, err)
			}
			return err
		}
		s.mu.Lock()
		if s.closed || s.files[name] != nil {
			e.f.close()
		} else {
			s.files[name] = e
		}
		s.mu.Unlock()
	}
	return nil
}

func openEntry(path, name string) (*entry, error) {
	f, err := openFile(path, name)
	if err != nil {
		return nil, err
	}
	e := &entry{name: name, size: int64(len(f.data)), f: f}
	switch kind, _ := kindOf(name); kind {
	case kindShard:
		e.sh = &shard{f: f}
	case kindDead:
		e.dead = &deadFile{f: f}
	case kindSymbols:
		e.sym = &symbolsFile{f: f}
	}
	return e, nil
}

// quarantine moves a damaged file aside and tells about it. Readers that have
// it open keep their view of it.
func (s *Set) quarantine(name string, cause error) {
	s.mu.Lock()
	if e := s.files[name]; e != nil {
		delete(s.files, name)
		e.gone = true
		if e.refs == 0 {
			e.f.close()
		}
	}
	s.mu.Unlock()
	from, to := filepath.Join(s.dir, name), filepath.Join(s.dir, quarantineDir)
	err := os.MkdirAll(to, 0o755)
	if err == nil {
		err = os.Rename(from, filepath.Join(to, name))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return // somebody else did it
	}
	if s.opt.Damaged != nil {
		go s.opt.Damaged(name, errors.Join(cause, err))
	}
}

// Import copies a file from r, checks that its bytes have the hash of its
// name, and adds it. A wrong hash is ErrDamaged and leaves nothing behind.
func (s *Set) Import(ctx context.Context, name string, r io.Reader) error {
	if _, ok := kindOf(name); !ok {
		return fmt.Errorf("import %q: not the name of an index file: %w", name, fs.ErrInvalid)
	}
	if s.Has(name) {
		return nil
	}
	f, err := os.CreateTemp(s.dir, tempPrefix+"*")
	if err != nil {
		return fmt.Errorf("import index file: %w", err)
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, sum), contextReader{ctx, r})
	if err == nil && !strings.HasPrefix(name, hex.EncodeToString(sum.Sum(nil))) {
		err = fmt.Errorf("%w: other bytes than its name says", ErrDamaged)
	}
	if err == nil {
		err = publish(f, filepath.Join(s.dir, name))
	}
	if err != nil {
		_ = f.Close()
		_ = os.Remove(f.Name())
		return fmt.Errorf("import %s: %w", name, err)
	}
	return s.Add(name)
}

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

// Export opens a file for copying to another node, with its size.
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

// Retain is garbage collection: files for which live says no, and have said
// no for the grace time, leave the set at once and are deleted when their
// last reader is done. Call it again and again; it gives the names that were
// removed. live must also say yes for the files of jobs that still run.
func (s *Set) Retain(live func(name string) bool, grace time.Duration) (removed []string, err error) {
	now := s.opt.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, e := range s.files {
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
		// The name goes now, the bytes with the last mapping.
		if rm := os.Remove(filepath.Join(s.dir, name)); rm != nil && !errors.Is(rm, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("remove index file: %w", rm))
			continue
		}
		delete(s.files, name)
		e.gone = true
		if e.refs == 0 {
			e.f.close()
		}
		removed = append(removed, name)
	}
	slices.Sort(removed)
	return removed, err
}

// Verify reads every byte of a file and compares it with its name; a damaged
// file is quarantined.
func (s *Set) Verify(ctx context.Context, name string) error {
	r, _, err := s.Export(name)
	if err != nil {
		return err
	}
	defer r.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, contextReader{ctx, r}); err != nil {
		return fmt.Errorf("verify %s: %w", name, err)
	}
	if !strings.HasPrefix(name, hex.EncodeToString(sum.Sum(nil))) {
		err := fmt.Errorf("verify %s: %w: other bytes than its name says", name, ErrDamaged)
		s.quarantine(name, err)
		return err
	}
	return nil
}

// release gives references back.
func (s *Set) release(entries []*entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		e.refs--
		if e.refs == 0 {
			if e.gone {
				e.f.close()
			}
			s.idle.Broadcast()
		}
	}
}
