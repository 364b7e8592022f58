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

// Store reads objects from the packs of a repository, which are mapped. That takes microseconds,
// while asking git takes a hundred. It is not safe for concurrent use: each goroutine opens its
// own.
type Store struct {
	dir    string
	files  []*file   // those with most objects come first
	opened time.Time // modification time of the directory when the packs were mapped

	bases bases
	chain []entry
	buf   [2][]byte // texts between the deltas of a chain
	delta []byte
}

// maxText is the greatest size, in bytes, of a text that is made from deltas here, including
// intermediate texts. A pack of some hundred bytes can ask for any number of gigabytes.
const maxText = 16 << 20

// The greatest sizes of whole objects that are read here, in bytes. Nobody needs all of a longer
// message: git reads it, and its output is cut.
const (
	maxMessage = 1 << 20 // commit or tag
	maxTree    = 32 << 20
)

// mostOf returns the greatest size of an object of a kind.
func mostOf(kind Kind) int {
	switch kind {
	case Commit, Tag:
		return maxMessage
	case Tree:
		return maxTree
	}
	return maxObject
}

// Open maps the packs of the repository in dir whose form it knows. The store looks for new packs
// when it cannot find an object.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir}
	if err := s.load(); err != nil {
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

// load maps the present packs. A pack that disappears meanwhile is no error, because its objects
// are in another.
func (s *Store) load() error {
	dir := filepath.Join(s.dir, "objects", "pack")
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		s.files, s.opened = nil, time.Time{}
		return nil
	}
	if err != nil {
		return fmt.Errorf("packs: %w", err)
	}

	// Each index stands for a pack.
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("packs: %w", err)
	}

	var files []*file
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".idx") {
			continue
		}

		one, err := openFile(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errDamaged) {
			continue // git says what is wrong with it
		}

		if err != nil {
			for _, f := range files {
				f.close()
			}
			return err
		}

		files = append(files, one)
	}

	// Sort the largest to the front: most objects are there.
	slices.SortStableFunc(files, func(a, b *file) int { return cmp.Compare(b.objects, a.objects) })
	s.files, s.opened = files, info.ModTime()
	return nil
}

// reload maps the packs again if any were added or removed.
func (s *Store) reload() bool {
	info, err := os.Stat(filepath.Join(s.dir, "objects", "pack"))
	if err != nil || info.ModTime().Equal(s.opened) {
		return false
	}

	old := s.files
	if s.load() != nil {
		return false
	}
	s.bases = bases{} // cached bases belong to files that are gone

	for _, f := range old {
		f.close()
	}
	return true
}

// Rest frees memory that only makes a series of reads faster.
func (s *Store) Rest() {
	s.bases, s.buf, s.delta = bases{}, [2][]byte{}, nil
	s.Release()
}

// Release releases the memory in which parts of the files are mapped.
func (s *Store) Release() {
	for _, f := range s.files {
		f.release()
	}
}

// lookup returns the file that has an object, and the index of the object in it.
func (s *Store) lookup(id []byte) (*file, int, error) {
	for range 2 {
		for _, f := range s.files {
			if len(id) != f.idBytes {
				continue
			}
			if i, found := f.find(id); found {
				return f, i, nil
			}
		}

		// It may be in a pack that has come meanwhile.
		if s.dir == "" || !s.reload() {
			break
		}
	}
	return nil, 0, errMissing
}

// Info returns the kind of an object and the size of its text in bytes, without reading the text.
// The error is ErrAskGit.
func (s *Store) Info(id []byte) (kind Kind, size int64, err error) {
	err = Protect(func() error {
		f, i, err := s.lookup(id)
		if err != nil {
			return err
		}
		kind, size, err = s.info(f, i)
		return err
	})
	return kind, size, ask(err)
}

// info reads headers. A text made of deltas has its size at the start of the last delta.
func (s *Store) info(f *file, i int) (kind Kind, size int64, err error) {
	at, err := f.offset(i)
	if err != nil {
		return 0, 0, err
	}

	e, err := f.entry(at)
	if err != nil {
		return 0, 0, err
	}

	// Follow the chain: the kind is that of its last base, the size that of the first delta.
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

		if e, err = f.entry(e.base); err != nil {
			return 0, 0, err
		}
	}

	if e.kind < Commit || e.kind > Tag {
		return 0, 0, errDamaged
	}
	return e.kind, size, nil
}

// resultSize returns the size of the text that a delta makes.
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

// Read appends the text of an object of a kind to dst. The error is ErrAskGit; then dst has its old
// length.
func (s *Store) Read(dst []byte, kind Kind, id []byte) (out []byte, err error) {
	out = dst

	// Truncating a mapped pack causes a fault, which Protect turns into an error.
	err = Protect(func() error {
		f, i, err := s.lookup(id)
		if err != nil {
			return err
		}
		out, err = s.read(dst, kind, f, i, id)
		return err
	})

	if err != nil {
		return dst, ask(fmt.Errorf("read object %x: %w", id, err))
	}
	return out, nil
}

// Get appends the text of an object of any kind to dst, if it has at most most bytes. The error is
// ErrAskGit.
func (s *Store) Get(dst []byte, id []byte, most int64) (Kind, []byte, error) {
	kind, size, err := s.Info(id)
	if err == nil && size > most {
		err = ask(errLarge)
	}
	if err != nil {
		return 0, dst, err
	}
	dst, err = s.Read(dst, kind, id)
	return kind, dst, err
}

// read appends the object with index i of a file. It checks everything: an object stored whole has
// a checksum in the index. An object made of deltas must have its id, because many bytes contribute
// to it.
func (s *Store) read(dst []byte, kind Kind, f *file, i int, id []byte) ([]byte, error) {
	at, err := f.offset(i)
	if err != nil {
		return dst, err
	}

	e, err := f.entry(at)
	if err != nil {
		return dst, err
	}

	from := len(dst)
	if e.kind == kind {
		// An object stored whole has its checksum in the index.
		dst, end, err := s.inflate(dst, f, e, mostOf(kind))
		if err == nil && crc32.ChecksumIEEE(f.data[at:end]) != f.sum(i) {
			err = errDamaged
		}
		if err != nil {
			return dst[:from], err
		}
		return dst, nil
	}

	// For an object made of deltas the id is the checksum.
	if dst, err = s.resolve(dst, kind, f, e); err == nil && !HasID(kind, dst[from:], id) {
		err = errDamaged
	}

	if err != nil {
		return dst[:from], err
	}
	return dst, nil
}

// HasID reports whether an object has the given id.
func HasID(kind Kind, text, id []byte) bool {
	var sum hash.Hash = sha1.New()
	if len(id) == sha256.Size {
		sum = sha256.New()
	}
	fmt.Fprintf(sum, "%s %d\x00", kind, len(text))
	sum.Write(text)
	return bytes.Equal(sum.Sum(nil), id)
}

// inflate appends the text in the stream of an entry, if it has at most most bytes, and returns
// where the stream ends.
func (s *Store) inflate(dst []byte, f *file, e entry, most int) ([]byte, int, error) {
	stream := f.data[e.body : len(f.data)-f.idBytes]
	if e.size > most {
		return dst, 0, errLarge
	}
	// A byte of a stream gives at most 1,032 bytes of text: 258 for two bits.
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
