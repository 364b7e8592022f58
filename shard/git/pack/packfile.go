package pack

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
)

// file is a pack with its index of version 2, both mapped into memory:
//
//	0     ff 74 4f 63, version=2
//	8     fanout: for each first byte of an id, how many ids begin with it or
//	      a lesser one; 256 numbers of 4 bytes
//	1032  the ids, sorted
//	      checksums (CRC-32) of the objects as they stand in the pack, in that order
//	      their offsets in the pack; with the highest bit set, an index into the next table
//	      offsets beyond 2 GiB, 8 bytes each
//	      checksum of the pack, checksum of the index
//
// All numbers have their highest byte first. For example, a pack that has only the blob "hello\n",
// whose id is ce013625030ba8dba906f756967f9e9ca394464a:
//
//	8     00 00 00 00 (206 times)    no id begins with 00 ... cd
//	832   00 00 00 01 (50 times)     one begins with ce or less, and so on to ff
//	1032  ce 01 36 25 ... 46 4a
//	1052  52 94 15 00                of the 15 bytes of the object
//	1056  00 00 00 0c                it begins after the head of the pack
type file struct {
	index, data []byte
	idBytes     int
	objects     int
	touched     int // about how many bytes reads have brought into memory since the last dropPages
	lastFault   int // offset of the last object, divided by aroundFault
}

const (
	packHeader  = 12
	indexHeader = 8
	indexIDs    = indexHeader + 256*4
	// maxChain is the greatest accepted number of deltas upon deltas.
	maxChain = 4096
	// maxObject is the greatest size of an object that the package reads.
	maxObject = 1 << 31
	// maxInMemory is how many bytes of a pack may be in memory before touch drops its pages, so that
	// they do not count as memory of this process.
	maxInMemory = 16 << 20
	// aroundFault is how many bytes the kernel maps at an access to a page that is not mapped.
	aroundFault = 64 << 10
	// maxMapped is the size of the largest file that is mapped: half of all addresses of a process.
	maxMapped = 1 << 46
)

// openFile maps a pack by the name of its index, which shows how long ids are.
func openFile(index string) (*file, error) {
	// The name contains a checksum, which is as long as an id.
	sum, ok := strings.CutPrefix(strings.TrimSuffix(filepath.Base(index), ".idx"), "pack-")
	if !ok || !IsID(sum) {
		return nil, errDamaged
	}

	f := &file{idBytes: len(sum) / 2}
	var err error
	if f.index, err = mapFile(index); err != nil {
		return nil, err
	}
	if f.data, err = mapFile(strings.TrimSuffix(index, "idx") + "pack"); err != nil {
		f.close()
		return nil, err
	}

	if err := Protect(f.check); err != nil {
		f.close()
		return nil, errDamaged
	}
	return f, nil
}

// check checks the fixed parts of both files. Afterwards the tables of the index are complete, and
//
//	0 <= fanout[i] <= fanout[i+1] <= objects
func (f *file) check() error {
	x, d, be := f.index, f.data, binary.BigEndian

	// Both files begin with a magic number and the version 2.
	if len(x) < indexIDs+2*f.idBytes || be.Uint32(x) != 0xff744f63 || be.Uint32(x[4:]) != 2 {
		return errDamaged
	}

	f.objects = int(be.Uint32(x[indexIDs-4:]))
	if len(x) < indexIDs+f.objects*(f.idBytes+8)+2*f.idBytes {
		return errDamaged
	}

	for i := range 255 {
		if be.Uint32(x[indexHeader+4*i:]) > be.Uint32(x[indexHeader+4*i+4:]) {
			return errDamaged
		}
	}

	if len(d) < packHeader+f.idBytes || string(d[:4]) != "PACK" || be.Uint32(d[4:]) != 2 || int(be.Uint32(d[8:])) != f.objects {
		return errDamaged
	}

	// The index ends with the checksum of the pack and its own.
	if !bytes.Equal(d[len(d)-f.idBytes:], x[len(x)-2*f.idBytes:len(x)-f.idBytes]) {
		return errDamaged
	}
	return nil
}

// mapFile maps an ordinary file into memory. It does not block if the file is a pipe.
func mapFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	info, err := f.Stat()
	if err != nil {
		return nil, err
	}

	if !info.Mode().IsRegular() || info.Size() == 0 || info.Size() > maxMapped {
		return nil, errDamaged
	}

	data, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", filepath.Base(name), err)
	}
	return data, nil
}

// close unmaps the pack and its index.
func (f *file) close() {
	for _, b := range [][]byte{f.index, f.data} {
		if b != nil {
			_ = syscall.Munmap(b)
		}
	}
	*f = file{}
}

// touch records that n bytes were read at an offset. If more than maxInMemory bytes are in memory,
// it drops the pages of the pack.
func (f *file) touch(at, n int) {
	f.touched += n
	if page := at / aroundFault; page != f.lastFault {
		f.lastFault = page
		f.touched += aroundFault
	}
	if f.touched > maxInMemory {
		f.dropPages()
	}
}

// dropPages drops the pages of the pack from memory. The kernel reads them again at the next
// access.
func (f *file) dropPages() {
	f.touched, f.lastFault = 0, -1
	_ = syscall.Madvise(f.data, syscall.MADV_DONTNEED)
}

// find returns the index of an object, and whether the pack has it. The ids that begin with the
// byte b are at
//
//	fanout[b-1] <= i < fanout[b]
func (f *file) find(id []byte) (int, bool) {
	be := binary.BigEndian
	from, to := 0, int(be.Uint32(f.index[indexHeader+4*int(id[0]):]))
	if id[0] > 0 {
		from = int(be.Uint32(f.index[indexHeader+4*int(id[0])-4:]))
	}

	ids := f.index[indexIDs:]
	i := from + sort.Search(to-from, func(i int) bool {
		return bytes.Compare(ids[(from+i)*f.idBytes:(from+i+1)*f.idBytes], id) >= 0
	})
	return i, i < to && bytes.Equal(ids[i*f.idBytes:(i+1)*f.idBytes], id)
}

// offset returns where an object begins in the pack.
func (f *file) offset(i int) (int, error) {
	be := binary.BigEndian
	offsets := indexIDs + f.objects*(f.idBytes+4)
	at := uint64(be.Uint32(f.index[offsets+4*i:]))

	// The highest bit says that the offset is in the table of 8-byte offsets.
	if at>>31 != 0 {
		large := uint64(offsets+4*f.objects) + 8*(at&0x7fffffff)
		if large+8 > uint64(len(f.index)-2*f.idBytes) {
			return 0, errDamaged
		}
		at = be.Uint64(f.index[large:])
	}

	if at < packHeader || at >= uint64(len(f.data)-f.idBytes) {
		return 0, errDamaged
	}
	return int(at), nil
}

// sum returns the checksum of the bytes of an object in the pack.
func (f *file) sum(i int) uint32 {
	return binary.BigEndian.Uint32(f.index[indexIDs+f.objects*f.idBytes+4*i:])
}

// Kinds of entries that are deltas of another text.
const (
	offDelta Kind = 6 // the header has the distance to the base, in bytes
	refDelta Kind = 7 // the header has the id of the base
)

// entry is an object as its header describes it.
type entry struct {
	at, body int // offsets of the entry and of its stream
	kind     Kind
	size     int // size of the decompressed stream
	base     int // for a delta: offset of its base
}

func (e entry) isDelta() bool { return e.kind == offDelta || e.kind == refDelta }

// readEntry reads the header of the object at an offset. For a delta it also finds the base.
func (f *file) readEntry(at int) (entry, error) {
	e := entry{at: at, body: at}
	end := len(f.data) - f.idBytes
	// next returns the next byte. At the end of the pack it returns 0 and moves body beyond the
	// end.
	next := func() uint64 {
		if e.body >= end {
			e.body = end + 1
			return 0
		}
		e.body++
		return uint64(f.data[e.body-1])
	}

	// Read the kind and the size: the first byte has 4 bits of the size, each further byte 7.
	c := next()
	e.kind = Kind(c >> 4 & 7)
	size := c & 15
	for shift := 4; c&0x80 != 0 && shift < 40; shift += 7 {
		c = next()
		size |= c & 0x7f << shift
	}
	if c&0x80 != 0 || size > maxObject {
		return e, errDamaged
	}
	e.size = int(size)

	// Find the base of a delta.
	switch e.kind {
	case offDelta:
		c = next()
		back := c & 0x7f
		for c&0x80 != 0 && back < 1<<46 {
			c = next()
			back = (back+1)<<7 | c&0x7f
		}
		if c&0x80 != 0 || back == 0 || back > uint64(at-packHeader) {
			return e, errDamaged
		}
		e.base = at - int(back)

	case refDelta:
		if end-e.body < f.idBytes {
			return e, errDamaged
		}

		// A pack on disk is complete, so the base is in the same pack.
		i, ok := f.find(f.data[e.body : e.body+f.idBytes])
		if !ok {
			return e, errDamaged
		}
		e.body += f.idBytes
		var err error
		if e.base, err = f.offset(i); err != nil {
			return e, err
		}
	}

	// The header itself must end before the pack does.
	if e.body > end {
		return e, errDamaged
	}
	return e, nil
}
