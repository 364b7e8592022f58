package trigram

import (
	"encoding/binary"
	"math/bits"
)

// A segment is
//
//	head        40 bytes, see below
//	columns     runClasses times one byte a unit: its longest run of the class
//	blocks      12 bytes each: key of the first entry u32, its offset in
//	            entries u32, its offset in lists u32
//	entries     a posting list for each trigram, ascending by key, 16 to a block:
//	              uvarint  key minus that of the entry before (0 for the first of a block) <<3 | kind
//	              inline1  u16 unit
//	              inline2  u16 unit, u16 unit
//	              others   uvarint number of units, uvarint bytes in lists
//	lists       the bytes of the posting lists, in the order of their entries
//
// All numbers are little-endian. Two keys are greater than any trigram: the list of keyDocStart has
// the units that begin a document, and that of keyNoNewline the units that own no newline.
//
// An example. "abc" is in the units 5 and 9, "abd" in 3, 4 and 300, and these are the
// first two trigrams of all:
//
//	blocks      63 62 61 00   00 00 00 00   00 00 00 00     key 0x616263, offsets 0 and 0
//	entries     01  05 00  09 00                            0<<3 | inline2, units 5 and 9
//	            0a  03  04                                  1<<3 | varint, 3 units in 4 bytes
//	lists       03  00  a7 02                               3; 4 is the next; 295 are left out to 300
//
// As a sliced list the second would be (it never is: see varintMax)
//
//	lists       03 00 .. 00                                 32 bytes: slices 0 and 1 have units
//	            01  03 04                                   2 units: 3 and 4
//	            00  2c                                      1 unit: 256 + 44
const (
	headBytes  = 40
	blockBytes = 12
	blockKeys  = 16
	magic      = 0x31475254 // "TRG1"
)

const (
	keyDocStart  = 1 << 24
	keyNoNewline = 1<<24 + 1
	keyEnd       = 1<<24 + 2
)

// Kinds of posting lists. Ids are unit numbers in the segment.
const (
	kindInline1 = iota // one id, in the entry
	kindInline2        // two ids, in the entry
	kindVarint         // ids as differences minus one, uvarint
	// kindSliced cuts the ids by their high byte into 256 slices. 32 bytes of bits say which slices
	// have ids. Each of those has a byte with the number of its ids minus one. Then follow the low
	// bytes of the ids, or 32 bytes of bits if that is shorter.
	kindSliced
	kindFlat // a bitmap, 64-bit words up to the last unit of the segment
	kinds
)

// varintMax is the number of ids up to which a list is a varint list, unless a bitmap of the segment
// is not longer. Such a list is smaller than a sliced one, but can only be read from its beginning.
const varintMax = 256

// Parts of a sliced list. A slice with at least sliceBytes units is a bitmap, because the low bytes
// of its units would not be shorter.
const (
	directoryBytes = 32 // a bit for each of 256 slices
	sliceBytes     = 32 // a bit for each of the 256 units of a slice
	wordsPerSlice  = 4
)

// head is the fixed first part of a segment.
type head struct {
	units, keys, blocks        uint32
	entriesBytes, listsBytes   uint32
	columnsAt, blocksAt        uint32
	entriesAt, listsAt, length uint64
}

// computeOffsets computes where the parts of the segment begin.
func (h *head) computeOffsets() {
	h.columnsAt = headBytes
	h.blocks = (h.keys + blockKeys - 1) / blockKeys
	h.blocksAt = h.columnsAt + runClasses*h.units
	h.entriesAt = uint64(h.blocksAt) + uint64(h.blocks)*blockBytes
	h.listsAt = h.entriesAt + uint64(h.entriesBytes)
	h.length = h.listsAt + uint64(h.listsBytes)
}

// appendTo appends the encoded head.
func (h *head) appendTo(dst []byte) []byte {
	for _, v := range []uint32{magic, h.units, h.keys, h.entriesBytes, h.listsBytes, runClasses, 0, 0, 0, 0} {
		dst = binary.LittleEndian.AppendUint32(dst, v)
	}
	return dst
}

// encoder builds the parts of a segment that grow with the keys: blocks, entries and lists. The
// lists are in pieces, because those of rows stay where they were built.
type encoder struct {
	words   int // length of a flat list in 64-bit words
	blocks  []byte
	entries []byte
	lists   []byte   // lists that the encoder made
	inParts int      // lists[:inParts] are in parts already
	parts   [][]byte // all lists, in order
	total   int      // bytes of all lists
	keys    uint32   // number of entries so far
	lastKey uint32   // key of the last entry
	buf     []byte   // reused for the list that is being encoded
}

// reset starts a new segment.
func (e *encoder) reset(units int) {
	e.words = (units + 63) / 64
	e.blocks, e.entries, e.lists = e.blocks[:0], e.entries[:0], e.lists[:0]
	e.parts, e.inParts, e.total = e.parts[:0], 0, 0
	e.keys, e.lastKey = 0, 0
}

// endPart makes one part of the bytes in lists that are in no part yet.
func (e *encoder) endPart() {
	if len(e.lists) > e.inParts {
		e.parts = append(e.parts, e.lists[e.inParts:len(e.lists):len(e.lists)])
		e.inParts = len(e.lists)
	}
}

// startEntry starts the entry of a key, and a new block if the last one is full.
func (e *encoder) startEntry(key uint32, kind int) {
	delta := key - e.lastKey
	if e.keys%blockKeys == 0 {
		e.blocks = binary.LittleEndian.AppendUint32(e.blocks, key)
		e.blocks = binary.LittleEndian.AppendUint32(e.blocks, uint32(len(e.entries)))
		e.blocks = binary.LittleEndian.AppendUint32(e.blocks, uint32(e.total))
		delta = 0
	}

	e.entries = binary.AppendUvarint(e.entries, uint64(delta)<<3|uint64(kind))
	e.lastKey = key
	e.keys++
}

// endEntry writes the end of an entry: how many units its list has, and how many bytes.
func (e *encoder) endEntry(units, size int) {
	e.entries = binary.AppendUvarint(e.entries, uint64(units))
	e.entries = binary.AppendUvarint(e.entries, uint64(size))
	e.total += size
}

// addIDs appends the entry and the list of a key. ids has at least one unit, in ascending order.
func (e *encoder) addIDs(key uint32, ids []uint16) {
	from := len(e.lists)

	// The kind of list depends on the number of ids.
	switch {
	case len(ids) == 1:
		e.startEntry(key, kindInline1)
		e.entries = binary.LittleEndian.AppendUint16(e.entries, ids[0])
	case len(ids) == 2:
		e.startEntry(key, kindInline2)
		e.entries = binary.LittleEndian.AppendUint16(e.entries, ids[0])
		e.entries = binary.LittleEndian.AppendUint16(e.entries, ids[1])

	default:
		kind := kindVarint
		if len(ids) <= varintMax {
			e.lists = appendDeltas(e.lists, ids) // ascending ids have small differences, mostly of one byte
		} else {
			kind, e.lists = kindSliced, appendSliced(e.lists, ids)
		}
		if len(e.lists)-from >= 8*e.words {
			kind, e.lists = kindFlat, appendFlatIDs(e.lists[:from], ids, e.words)
		}
		e.startEntry(key, kind)
		e.endEntry(len(ids), len(e.lists)-from)
	}
}

// addBitmap appends the entry and the list of a key whose units are in a bitmap.
func (e *encoder) addBitmap(key uint32, b *Bitmap) {
	n, kind := b.Count(), 0
	kind, e.buf = appendBitmapList(e.buf[:0], b, n, e.words)
	e.addList(key, kind, n, e.buf, func() { e.lists = append(e.lists, e.buf...) })
}

// addRow appends the entry of a key and the encoded list of its row, which it does not copy.
func (e *encoder) addRow(key uint32, r *rowList, lists []byte) {
	data := lists[r.at:r.end]
	e.addList(key, r.kind, r.units, data, func() {
		e.endPart()
		e.parts = append(e.parts, data)
	})
}

// addList appends the entry of a key, whose list is encoded as data. An inline list goes into the
// entry. For any other kind addList calls appendData, which must append data to the lists.
func (e *encoder) addList(key uint32, kind, units int, data []byte, appendData func()) {
	// A trigram without units has no entry: a lookup then finds nothing.
	if units == 0 {
		return
	}

	e.startEntry(key, kind)

	// Short lists are in the entry itself.
	if kind < kindVarint {
		e.entries = append(e.entries, data...)
		return
	}

	appendData()
	e.endEntry(units, len(data))
}

// appendBitmapList appends the list of a bitmap with n units, in the smallest kind. words is the
// length of the segment in words; bits after it must be 0.
func appendBitmapList(dst []byte, b *Bitmap, n, words int) (kind int, _ []byte) {
	if n > varintMax {
		if slicedSize(b, words) >= 8*words {
			return kindFlat, appendFlat(dst, b, words)
		}
		return kindSliced, appendSlicedBitmap(dst, b, words)
	}

	// At most varintMax ids fit into a buffer on the stack.
	var buf [varintMax]uint16
	ids := buf[:0]
	for i, w := range b[:words] {
		for ; w != 0; w &= w - 1 {
			ids = append(ids, uint16(i<<6+bits.TrailingZeros64(w)))
		}
	}

	if n > 2 {
		from := len(dst)
		if dst = appendDeltas(dst, ids); len(dst)-from < 8*words {
			return kindVarint, dst
		}
		return kindFlat, appendFlat(dst[:from], b, words)
	}
	for _, id := range ids {
		dst = binary.LittleEndian.AppendUint16(dst, id)
	}

	// One unit gives kindInline1, two give kindInline2. For no unit any kind will do: see addList.
	return kindInline1 + max(n, 1) - 1, dst
}

// appendFlat appends a flat list: the first words of the bitmap.
func appendFlat(dst []byte, b *Bitmap, words int) []byte {
	for _, w := range b[:words] {
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	return dst
}

// appendFlatIDs appends a flat list of ids.
func appendFlatIDs(dst []byte, ids []uint16, words int) []byte {
	from := len(dst)
	dst = append(dst, make([]byte, 8*words)...)
	for _, id := range ids {
		dst[from+int(id>>3)] |= 1 << (id & 7)
	}
	return dst
}

// appendDeltas appends ascending ids, each as its difference to the one before.
func appendDeltas(dst []byte, ids []uint16) []byte {
	next := uint32(0)
	for _, id := range ids {
		// Store the difference to the least id that could follow: 0 for neighbours.
		d := uint32(id) - next
		for d >= 0x80 {
			dst = append(dst, byte(d)|0x80)
			d >>= 7
		}
		dst = append(dst, byte(d))

		next = uint32(id) + 1
	}
	return dst
}

// appendSliced appends a sliced list. It starts with a bit for each slice of 256 ids, set if the
// list has ids of the slice. Each of these slices has its number of ids minus one, then the low
// bytes of the ids, or a bitmap of 32 bytes if that is not longer:
//
//	5, 7, 258   03 00 ... 00    slices 0 and 1
//	            01  05 07       two ids of slice 0
//	            00  02          one of slice 1: 258 = 1<<8 + 2
func appendSliced(dst []byte, ids []uint16) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, directoryBytes)...)

	for len(ids) > 0 { // slice by slice
		slice := ids[0] >> 8
		n := 1
		for n < len(ids) && ids[n]>>8 == slice {
			n++
		}

		dst[at+int(slice>>3)] |= 1 << (slice & 7)
		dst = append(dst, byte(n-1))

		if n < sliceBytes {
			for _, id := range ids[:n] {
				dst = append(dst, byte(id))
			}
		} else {
			from := len(dst)
			dst = append(dst, make([]byte, sliceBytes)...)
			for _, id := range ids[:n] {
				dst[from+int(id&255)>>3] |= 1 << (id & 7)
			}
		}

		ids = ids[n:]
	}
	return dst
}

// slicedSize returns how many bytes appendSlicedBitmap appends.
func slicedSize(b *Bitmap, words int) int {
	size := directoryBytes
	for s := 0; s < words; s += wordsPerSlice {
		if n := countSliceUnits(b, s); n > 0 {
			size += 1 + min(n, sliceBytes) // the number of units, then low bytes or a bitmap
		}
	}
	return size
}

// appendSlicedBitmap appends the sliced list of the units in a bitmap, like appendSliced.
func appendSlicedBitmap(dst []byte, b *Bitmap, words int) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, directoryBytes)...)

	for s := 0; s < words; s += wordsPerSlice {
		n := countSliceUnits(b, s)
		if n == 0 {
			continue
		}

		dst[at+s>>5] |= 1 << (s >> 2 & 7)
		dst = append(dst, byte(n-1))
		if n >= sliceBytes {
			for _, w := range b[s : s+wordsPerSlice] {
				dst = binary.LittleEndian.AppendUint64(dst, w)
			}
			continue
		}

		for i, w := range b[s : s+wordsPerSlice] {
			for ; w != 0; w &= w - 1 {
				dst = append(dst, byte(i<<6+bits.TrailingZeros64(w)))
			}
		}
	}
	return dst
}

// countSliceUnits returns the number of units of the slice that begins at word s.
func countSliceUnits(b *Bitmap, s int) int {
	return bits.OnesCount64(b[s]) + bits.OnesCount64(b[s+1]) + bits.OnesCount64(b[s+2]) + bits.OnesCount64(b[s+3])
}
