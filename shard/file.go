package shard

import (
	"fmt"
	"hash/crc32"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// file is a mapped file of the index. Its pages are checked against their
// checksums when they are first touched, so that opening costs nothing and no
// byte is ever used unchecked.
type file struct {
	name string
	data []byte // the whole file
	t    *table

	checked []atomic.Uint64 // bit i: page i had the right checksum
	crc     *crc32.Table
}

// openFile maps a file and checks its table.
func openFile(path, name string) (*file, error) {
	kind, ok := kindOf(name)
	if !ok {
		return nil, fmt.Errorf("open %q: not the name of an index file", name)
	}
	fd, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open index file: %w", err)
	}
	defer fd.Close()
	st, err := fd.Stat()
	if err != nil {
		return nil, fmt.Errorf("open index file: %w", err)
	}
	if st.Size() < headBytes+tailBytes {
		return nil, fmt.Errorf("open %s: %w: too short", name, ErrDamaged)
	}
	data, err := unix.Mmap(int(fd.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map index file %s: %w", name, err)
	}
	t, err := readTable(data, kind)
	if err != nil {
		_ = unix.Munmap(data)
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return newFile(name, data, t), nil
}

func newFile(name string, data []byte, t *table) *file {
	return &file{
		name: name, data: data, t: t,
		checked: make([]atomic.Uint64, (len(t.pages)+63)/64),
		crc:     crc32.MakeTable(crc32.Castagnoli),
	}
}

func (f *file) close() {
	if f.data != nil {
		_ = unix.Munmap(f.data)
		f.data = nil
	}
}

// find gives the place of a section; a missing one is empty.
func (f *file) find(id sectionID) section {
	for _, s := range f.t.sections {
		if s.id == id {
			return s
		}
	}
	return section{id: id, offset: headBytes}
}

// raw gives the bytes of a section that are not yet checked: touch must be
// asked before any of them is believed.
func (f *file) raw(s section) []byte {
	return f.data[s.offset : s.offset+s.length : s.offset+s.length]
}

// bytes gives a section after checking all of it.
func (f *file) bytes(id sectionID) ([]byte, error) {
	s := f.find(id)
	if err := f.touch(s.offset, s.length); err != nil {
		return nil, err
	}
	return f.raw(s), nil
}

// touch checks the pages that hold n bytes from offset, those that nobody has
// checked before.
func (f *file) touch(offset, n int64) error {
	if n <= 0 {
		return nil
	}
	for p := offset / pageBytes; p <= (offset+n-1)/pageBytes; p++ {
		word, bit := &f.checked[p>>6], uint64(1)<<(p&63)
		if word.Load()&bit != 0 {
			continue
		}
		end := min((p+1)*pageBytes, f.t.end)
		if crc32.Checksum(f.data[p*pageBytes:end], f.crc) != f.t.pages[p] {
			return fmt.Errorf("%s: %w: checksum of page %d", f.name, ErrDamaged, p)
		}
		word.Or(bit)
	}
	return nil
}
