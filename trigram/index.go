package trigram

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Index answers formulas from the segments of one shard. It refers to slices of the given bytes and
// allocates next to nothing else. It is immutable and safe for concurrent use.
type Index struct{ segs []segment }

// segment is one segment, split into its parts.
type segment struct {
	number                          int
	touch                           Touch
	units                           int
	columns, blocks, entries, lists []byte
	listsAt, entriesAt              int // where these parts begin in the segment
}

// Touch is called before n bytes of a segment are read, starting at offset from. It returns an
// error if they are damaged, so that a caller with checksums checks only the bytes that are read.
// Its error is returned unchanged.
type Touch func(segment, from, n int) error

// Open reads the heads of the segments, in the order in which a [Writer] emitted them. The bytes
// must stay unchanged while the index is in use. Lists are checked when they are read. touch may be
// nil.
func Open(segments [][]byte, touch Touch) (*Index, error) {
	if touch == nil {
		touch = func(int, int, int) error { return nil }
	}
	x := &Index{segs: make([]segment, 0, len(segments))}

	for i, b := range segments {
		// Check only the head here. Readers check the other bytes.
		if err := touch(i, 0, min(headBytes, len(b))); err != nil {
			return nil, err
		}

		s, err := openSegment(b)
		if err != nil {
			return nil, fmt.Errorf("segment %d: %w", i, err)
		}

		s.number, s.touch = i, touch
		x.segs = append(x.segs, s)
	}
	return x, nil
}

// openSegment splits a segment into its parts.
func openSegment(b []byte) (segment, error) {
	if len(b) < headBytes || binary.LittleEndian.Uint32(b) != magic {
		return segment{}, fmt.Errorf("%w: no head", ErrCorrupt)
	}

	u32 := func(i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
	h := head{units: u32(1), keys: u32(2), entriesBytes: u32(3), listsBytes: u32(4)}

	if h.units == 0 || h.units > SegmentUnits || h.keys > keyEnd || u32(5) != runClasses || h.entriesBytes > math.MaxInt32 {
		return segment{}, fmt.Errorf("%w: head out of bounds", ErrCorrupt)
	}

	// The counts of the head determine the length of the segment.
	h.computeOffsets()
	if h.length != uint64(len(b)) {
		return segment{}, fmt.Errorf("%w: %d bytes of %d", ErrCorrupt, len(b), h.length)
	}

	return segment{
		units:   int(h.units),
		columns: b[h.columnsAt:h.blocksAt:h.blocksAt],
		blocks:  b[h.blocksAt:h.entriesAt:h.entriesAt],
		entries: b[h.entriesAt:h.listsAt:h.listsAt],
		lists:   b[h.listsAt:],

		entriesAt: int(h.entriesAt), listsAt: int(h.listsAt),
	}, nil
}

// readColumn returns the column of longest runs of a class.
func (s *segment) readColumn(class int) ([]byte, error) {
	from := class * s.units
	return s.columns[from : from+s.units], s.touch(s.number, headBytes+from, s.units)
}

// Segments returns the number of segments.
func (x *Index) Segments() int { return len(x.segs) }

// Units returns the number of units in a segment.
func (x *Index) Units(seg int) int { return x.segs[seg].units }

// HasByte reports whether b, a folded byte, occurs in the documents of a segment. It needs only one
// lookup in the dictionary, because a trigram begins at every occurrence of b.
func (x *Index) HasByte(seg int, b byte) (bool, error) {
	c := cursor{s: &x.segs[seg]}
	key := uint32(b) << 16
	return c.seek(key) && c.entry.key>>16 == uint32(b), c.err
}

// Work counts the cost of answering formulas.
type Work struct {
	Lookups int   // trigrams looked up
	Lists   int   // posting lists read
	Bytes   int64 // of the lists read
}

// list is an entry of the dictionary: a posting list that is not read yet. Call
// [list.countAndCheck] before reading it.
type list struct {
	key  uint32
	kind uint8
	n    int // number of units
	data []byte
	at   int // offset in the lists of the segment; unused for an inline list
	s    *segment
}

// findList looks up a key and returns its posting list, which has no units if the key has no entry.
func (s *segment) findList(key uint32, w *Work) (list, error) {
	w.Lookups++
	c := cursor{s: s}
	if !c.seek(key) {
		return list{}, c.err
	}
	if c.entry.key != key {
		return list{}, nil
	}
	return c.entry, nil
}

// cursor walks the entries of the dictionary.
type cursor struct {
	s     *segment
	block int  // number of the next block
	left  int  // entries of this block that next has not read
	at    int  // offset of the next entry in s.entries
	lists int  // offset of its list in s.lists
	entry list // the present entry
	err   error
}

// seek moves to the first entry whose key is at least key, and reports whether there is one.
func (c *cursor) seek(key uint32) bool {
	if c.err = c.s.touch(c.s.number, c.s.entriesAt-len(c.s.blocks), len(c.s.blocks)); c.err != nil {
		return false
	}

	// Find the last block whose first key is at most key, by binary search: blocks[:lo] begin at
	// most at key, blocks[hi:] begin after it.
	lo, hi := 0, len(c.s.blocks)/blockBytes
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if binary.LittleEndian.Uint32(c.s.blocks[m*blockBytes:]) <= key {
			lo = m + 1
		} else {
			hi = m
		}
	}

	c.block, c.left, c.entry = max(lo-1, 0), 0, list{}
	for c.next() {
		if c.entry.key >= key {
			return true
		}
	}
	return false
}

// fail ends the walk with an error. It returns false, as next does at the end.
func (c *cursor) fail(what string) bool {
	c.err = fmt.Errorf("%w: %s", ErrCorrupt, what)
	return false
}

// next moves to the next entry, and reports whether there is one.
func (c *cursor) next() bool {
	if c.err != nil {
		return false
	}
	if c.left == 0 && !c.nextBlock() {
		return false
	}

	if c.at == len(c.s.entries) { // the last block may be short
		return false
	}
	c.left--
	return c.readEntry()
}

// nextBlock starts the next block, and reports whether there is one.
func (c *cursor) nextBlock() bool {
	if (c.block+1)*blockBytes > len(c.s.blocks) {
		return false
	}
	b := c.s.blocks[c.block*blockBytes:]
	c.block++
	c.left = blockKeys

	key := binary.LittleEndian.Uint32(b)
	if key < c.entry.key || key >= keyEnd {
		return c.fail("keys out of order")
	}
	c.entry.key = key
	c.at, c.lists = int(binary.LittleEndian.Uint32(b[4:])), int(binary.LittleEndian.Uint32(b[8:]))
	if c.at > len(c.s.entries) || c.lists > len(c.s.lists) {
		return c.fail("block out of bounds")
	}

	// An entry has at most 16 bytes.
	n := min(16*blockKeys, len(c.s.entries)-c.at)
	c.err = c.s.touch(c.s.number, c.s.entriesAt+c.at, n)
	return c.err == nil
}

// readEntry reads the next entry of the segment into c.entry. It sets c.err and returns false if the
// entry is damaged.
func (c *cursor) readEntry() bool {
	x, ok := c.readUvarint()
	if !ok {
		return false
	}
	key := uint64(c.entry.key) + x>>3
	if key >= keyEnd {
		return c.fail("key out of bounds")
	}

	// Read the description of the list. The list itself is checked when it is read.
	c.entry = list{key: uint32(key), kind: uint8(x & 7), at: c.lists, s: c.s}

	switch c.entry.kind {
	// The ids are in the entry itself.
	case kindInline1, kindInline2:
		c.entry.n = 1 + int(c.entry.kind)
		if len(c.s.entries)-c.at < 2*c.entry.n {
			return c.fail("entry cut short")
		}
		c.entry.data = c.s.entries[c.at : c.at+2*c.entry.n]
		c.at += 2 * c.entry.n
		return true

	// The list starts where the list before it ends.
	case kindVarint, kindSliced, kindFlat:
		n, ok1 := c.readUvarint()
		size, ok2 := c.readUvarint()
		if !ok1 || !ok2 {
			return false
		}
		if n == 0 || n > uint64(c.s.units) || size > uint64(len(c.s.lists)-c.lists) {
			return c.fail("list out of bounds")
		}

		c.entry.n = int(n)
		c.entry.data = c.s.lists[c.lists : c.lists+int(size)]
		c.lists += int(size)
		return true
	}
	return c.fail("unknown kind of list")
}

// readUvarint reads a number at the cursor and moves past it.
func (c *cursor) readUvarint() (uint64, bool) {
	x, n := binary.Uvarint(c.s.entries[c.at:])
	if n <= 0 {
		return 0, c.fail("bad number")
	}
	c.at += n
	return x, true
}
