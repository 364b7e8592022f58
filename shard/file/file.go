package file

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// File is an open file: mapped into memory, with a checked table. It is safe for concurrent use.
type File struct {
	name  string
	kind  Kind
	data  []byte // the whole file
	table *table

	checked []atomic.Uint64 // bit i is set after the checksum of page i was found correct
	crc     *crc32.Table
}

// Open maps a file and checks its table. The last part of the path is the name of the file. The
// caller must close it.
func Open(path string, kind Kind, known *Formats) (*File, error) {
	name := filepath.Base(path)
	osFile, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open index file: %w", err)
	}
	defer osFile.Close()

	st, err := osFile.Stat()
	if err != nil {
		return nil, fmt.Errorf("open index file: %w", err)
	}
	if st.Size() < HeadBytes+tailBytes { // and a file of size 0 cannot be mapped
		return nil, &DamagedError{File: name, Err: errTooShort}
	}

	data, err := unix.Mmap(int(osFile.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map index file %s: %w", name, err)
	}

	f, err := FromBytes(name, data, kind, known)
	if err != nil {
		_ = unix.Munmap(data)
		return nil, err
	}
	return f, nil
}

// FromBytes returns a File for bytes in memory. It must not be closed. A *VersionError means that
// the file is intact but has an unknown version.
func FromBytes(name string, data []byte, kind Kind, known *Formats) (*File, error) {
	t, err := readTable(data, kind)
	if err != nil {
		return nil, &DamagedError{File: name, Err: err}
	}
	f := &File{
		name: name, kind: kind, data: data, table: t,
		checked: make([]atomic.Uint64, (len(t.pages)+63)/64),
		crc:     crc32.MakeTable(crc32.Castagnoli),
	}

	// Accept the version in the head only after checking the checksum of its page.
	if err := known.Check(name, data, kind); err != nil {
		return nil, cmp.Or(f.Touch(0, HeadBytes), err)
	}
	return f, nil
}

// Older reports whether the version of the file is older than the given one.
func (f *File) Older(than Versions) bool {
	return binary.LittleEndian.Uint32(f.data[8:]) < than[f.kind]
}

// Close unmaps the file. Afterwards nobody may read it.
func (f *File) Close() {
	if f.data != nil {
		_ = unix.Munmap(f.data)
		f.data = nil
	}
}

// Name returns the name of the file in its directory.
func (f *File) Name() string { return f.name }

// Size returns the number of bytes of the file.
func (f *File) Size() int64 { return int64(len(f.data)) }

// Find returns the place of a section. A missing section is empty.
func (f *File) Find(id SectionID) Section {
	for _, s := range f.table.sections {
		if s.ID == id {
			return s
		}
	}
	return Section{ID: id, Offset: HeadBytes}
}

// Raw returns the bytes of a section, which may be unchecked: call Touch before using them.
func (f *File) Raw(s Section) []byte {
	return f.data[s.Offset : s.Offset+s.Length : s.Offset+s.Length]
}

// Data returns the whole file. Call Touch before using any bytes.
func (f *File) Data() []byte { return f.data }

// Bytes returns a section after checking all of it.
func (f *File) Bytes(id SectionID) ([]byte, error) {
	s := f.Find(id)
	if err := f.Touch(s.Offset, s.Length); err != nil {
		return nil, err
	}
	return f.Raw(s), nil
}

// Touch checks the pages with the n bytes from offset, unless they were checked before.
func (f *File) Touch(offset, n int64) error {
	if n <= 0 {
		return nil
	}

	// Two goroutines may check a page at once: both get the same result.
	for p := offset / pageBytes; p <= (offset+n-1)/pageBytes; p++ {
		word, bit := &f.checked[p>>6], uint64(1)<<(p&63)
		if word.Load()&bit != 0 {
			continue
		}

		end := min((p+1)*pageBytes, f.table.end)
		if crc32.Checksum(f.data[p*pageBytes:end], f.crc) != f.table.pages[p] {
			return f.Damaged("checksum of page %d", p)
		}

		word.Or(bit)
	}
	return nil
}

// Holds reports whether a memory address lies in the file.
func (f *File) Holds(address uintptr) bool {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(f.data)))
	return address >= start && address-start < uintptr(len(f.data))
}
