package pack

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Kind is the kind of an object.
type Kind uint8

// The values of Kind are those in packs.
const (
	Commit Kind = 1
	Tree   Kind = 2
	Blob   Kind = 3
	Tag    Kind = 4
)

// String returns the kind as git names it.
func (k Kind) String() string {
	switch k {
	case Commit:
		return "commit"
	case Tree:
		return "tree"
	case Blob:
		return "blob"
	case Tag:
		return "tag"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Store reads objects from the packs of a repository, which are mapped into memory. A read takes a
// few microseconds, about a hundredth of the time that asking a git process takes. It is not safe
// for concurrent use: each goroutine opens its own.
type Store struct {
	dir    string
	files  []*file   // those with most objects come first
	opened time.Time // modification time of the directory when the packs were mapped

	bases bases
	chain []entry   // see readChain
	buf   [2][]byte // results of the deltas of a chain
	delta []byte    // the delta that is being applied
}

// maxText is the greatest size, in bytes, of a result of a delta. Without it, a pack of some
// hundred bytes could make the store allocate any number of gigabytes.
const maxText = 16 << 20

// The greatest sizes of objects that the store reads, in bytes. For larger objects the caller asks
// git, and cuts its output.
const (
	maxMessage = 1 << 20 // commit or tag
	maxTree    = 32 << 20
)

// maxSizeOf returns the greatest size of an object of a kind that the store reads.
func maxSizeOf(kind Kind) int {
	switch kind {
	case Commit, Tag:
		return maxMessage
	case Tree:
		return maxTree
	}
	return maxObject
}

// Open maps the packs of the repository in dir whose format it knows. If the store cannot find an
// object later, it looks for new packs.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir}
	if err := s.mapPacks(); err != nil {
		return nil, err
	}
	return s, nil
}

// Close unmaps all files. Afterwards the store has no objects.
func (s *Store) Close() {
	for _, f := range s.files {
		f.close()
	}
	*s = Store{}
}

// mapPacks maps the packs that are in the directory now. If a pack disappears during this, that is
// no error, because git has moved its objects to another pack.
func (s *Store) mapPacks() error {
	dir := filepath.Join(s.dir, "objects", "pack")
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		s.files, s.opened = nil, time.Time{}
		return nil
	}
	if err != nil {
		return fmt.Errorf("packs: %w", err)
	}

	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("packs: %w", err)
	}

	var files []*file
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".idx") {
			continue
		}

		pack, err := openFile(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errDamaged) {
			continue // callers ask git about its objects, and git reports the damage
		}

		if err != nil {
			for _, f := range files {
				f.close()
			}
			return err
		}

		files = append(files, pack)
	}

	// Sort packs with many objects to the front, where findObject then finds most objects.
	slices.SortStableFunc(files, func(a, b *file) int { return cmp.Compare(b.objects, a.objects) })
	s.files, s.opened = files, info.ModTime()
	return nil
}

// reload maps the packs again if any were added or removed. It returns false if nothing has changed
// or it failed.
func (s *Store) reload() bool {
	info, err := os.Stat(filepath.Join(s.dir, "objects", "pack"))
	if err != nil || info.ModTime().Equal(s.opened) {
		return false
	}

	old := s.files
	if s.mapPacks() != nil {
		return false
	}
	s.bases = bases{} // its keys are the old files

	for _, f := range old {
		f.close()
	}
	return true
}

// FreeBuffers frees buffers and caches, before a time without reads.
func (s *Store) FreeBuffers() {
	s.bases, s.buf, s.delta = bases{}, [2][]byte{}, nil
	s.DropPages()
}

// DropPages drops the pages of all packs from memory. The kernel reads them again at the next
// access.
func (s *Store) DropPages() {
	for _, f := range s.files {
		f.dropPages()
	}
}

// findObject returns the pack that has an object, and the index of the object in it. If no pack has
// the object, findObject maps new packs and searches once more. Then it returns errMissing.
func (s *Store) findObject(id []byte) (*file, int, error) {
	const attempts = 2
	for range attempts {
		for _, f := range s.files {
			if len(id) != f.idBytes {
				continue
			}
			if i, found := f.find(id); found {
				return f, i, nil
			}
		}

		if s.dir == "" || !s.reload() {
			break
		}
	}
	return nil, 0, errMissing
}

// Info returns the kind of an object and the size of its text in bytes, without reading the text.
// Every error wraps ErrAskGit.
func (s *Store) Info(id []byte) (kind Kind, size int64, err error) {
	err = Protect(func() error {
		f, i, err := s.findObject(id)
		if err != nil {
			return err
		}
		kind, size, err = s.readInfo(f, i)
		return err
	})
	return kind, size, wrapAskGit(err)
}

// readInfo returns the kind and the size of the object with index i. For an object stored as a
// delta, the kind is that of the base at the end of its chain, and the size is at the start of its
// own delta.
func (s *Store) readInfo(f *file, i int) (kind Kind, size int64, err error) {
	at, err := f.offset(i)
	if err != nil {
		return 0, 0, err
	}

	e, err := f.readEntry(at)
	if err != nil {
		return 0, 0, err
	}

	size = int64(e.size)
	for deltas := 0; e.isDelta(); deltas++ {
		if deltas > maxChain {
			return 0, 0, errDamaged
		}

		if deltas == 0 {
			if size, err = s.resultSize(f, e); err != nil {
				return 0, 0, err
			}
		}

		if e, err = f.readEntry(e.base); err != nil {
			return 0, 0, err
		}
	}

	if e.kind < Commit || e.kind > Tag {
		return 0, 0, errDamaged
	}
	return e.kind, size, nil
}

// resultSize returns the size of the result of a delta.
func (s *Store) resultSize(f *file, e entry) (int64, error) {
	var err error
	if s.delta, _, err = s.inflate(s.delta[:0], f, e, maxText); err != nil {
		return 0, err
	}

	_, n := binary.Uvarint(s.delta)
	size, m := binary.Uvarint(s.delta[max(n, 0):])
	if n <= 0 || m <= 0 || size > maxObject {
		return 0, errDamaged
	}
	return int64(size), nil
}

// Read appends the text of an object of the given kind to dst. Every error wraps ErrAskGit; after
// it, the result has the length of dst.
func (s *Store) Read(dst []byte, kind Kind, id []byte) (out []byte, err error) {
	out = dst
	err = Protect(func() error {
		f, i, err := s.findObject(id)
		if err != nil {
			return err
		}
		out, err = s.readObject(dst, kind, f, i, id)
		return err
	})

	if err != nil {
		return dst, wrapAskGit(fmt.Errorf("read object %x: %w", id, err))
	}
	return out, nil
}

// Get appends the text of an object of any kind to dst, and returns the kind. It fails if the text
// has more than maxSize bytes. Every error wraps ErrAskGit; after it, the result has the length of
// dst.
func (s *Store) Get(dst []byte, id []byte, maxSize int64) (Kind, []byte, error) {
	kind, size, err := s.Info(id)
	if err == nil && size > maxSize {
		err = wrapAskGit(errLarge)
	}
	if err != nil {
		return 0, dst, err
	}
	dst, err = s.Read(dst, kind, id)
	return kind, dst, err
}

// readObject appends the object with index i of a pack, and checks it: for an object stored whole
// by the checksum in the index, for one made of deltas by its id.
func (s *Store) readObject(dst []byte, kind Kind, f *file, i int, id []byte) ([]byte, error) {
	at, err := f.offset(i)
	if err != nil {
		return dst, err
	}

	e, err := f.readEntry(at)
	if err != nil {
		return dst, err
	}

	from := len(dst)
	if e.kind == kind {
		dst, end, err := s.inflate(dst, f, e, maxSizeOf(kind))
		if err == nil && crc32.ChecksumIEEE(f.data[at:end]) != f.sum(i) {
			err = errDamaged
		}
		if err != nil {
			return dst[:from], err
		}
		return dst, nil
	}

	if dst, err = s.readDelta(dst, kind, f, e); err == nil && !HasID(kind, dst[from:], id) {
		err = errDamaged
	}

	if err != nil {
		return dst[:from], err
	}
	return dst, nil
}

// HasID reports whether an object with this kind and text has the given id, which is a hash of
// both.
func HasID(kind Kind, text, id []byte) bool {
	var sum hash.Hash = sha1.New()
	if len(id) == sha256.Size {
		sum = sha256.New()
	}
	fmt.Fprintf(sum, "%s %d\x00", kind, len(text))
	sum.Write(text)
	return bytes.Equal(sum.Sum(nil), id)
}

// inflate decompresses the stream of an entry, appends it, and returns the offset of its end in the
// pack. It returns errLarge if the text has more than maxSize bytes.
func (s *Store) inflate(dst []byte, f *file, e entry, maxSize int) ([]byte, int, error) {
	stream := f.data[e.body : len(f.data)-f.idBytes]
	if e.size > maxSize {
		return dst, 0, errLarge
	}

	// Two bits of a stream make at most 258 bytes of text, so a byte makes at most 1,032.
	if e.size/1032 > len(stream) {
		return dst, 0, errDamaged
	}

	at := len(dst)
	dst = slices.Grow(dst, e.size+fastOut)[:at+e.size]
	inf := inflaters.Get().(*inflater)
	defer inflaters.Put(inf)
	n, err := inf.inflate(dst[at:], stream)
	if err != nil {
		return dst[:at], 0, fmt.Errorf("%w: %w", errDamaged, err)
	}
	f.touch(e.body, n)
	return dst, e.body + n, nil
}
