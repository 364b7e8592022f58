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
//	entries     per trigram, ascending by key, 16 to a block:
//	              uvarint  key delta to the entry before (0 for the first of a block) <<3 | kind
//	              inline1  u16 unit
//	              inline2  u16 unit, u16 unit
//	              others   uvarint number of units, uvarint bytes in lists
//	lists       the bytes of the lists in the order of their entries
//
// and all numbers are little-endian. Two keys beyond the 24 bits of trigrams
// hold facts about units: [keyFirst] those that begin a document, and
// [keyNoNewline] those that own no newline.
const (
	headBytes  = 40
	blockBytes = 12
	blockKeys  = 16
	magic      = 0x31475254 // "TRG1"
)

const (
	keyFirst     = 1 << 24
	keyNoNewline = 1<<24 + 1
	keyEnd       = 1<<24 + 2
)

// Kinds of lists. Ids are those of units in the segment.
const (
	kindInline1 = iota // one id, in the entry
	kindInline2        // two ids, in the entry
	kindVarint         // ids as differences minus one, uvarint
	// kindSliced cuts the ids by their high byte: 32 bytes tell which of the
	// 256 slices have ids; each of them has a byte, the number of ids less
	// one, and then the low bytes, or where these would take more than 32
	// bytes a bitmap of 32.
	kindSliced
	kindFlat // a bitmap, 64-bit words up to the last unit of the segment
	kinds
)

// varintMax is the number of ids up to which varint lists are used: they are
// smaller, but cannot be read from the middle.
const varintMax = 256

// head is the fixed beginning of a segment.
type head struct {
	units, keys, blocks        uint32
	entriesBytes, listsBytes   uint32
	columnsAt, blocksAt        uint32
	entriesAt, listsAt, length uint64
}

func (h *head) layout() {
	h.columnsAt = headBytes
	h.blocks = (h.keys + blockKeys - 1) / blockKeys
	h.blocksAt = h.columnsAt + runClasses*h.units
	h.entriesAt = uint64(h.blocksAt) + uint64(h.blocks)*blockBytes
	h.listsAt = h.entriesAt + uint64(h.entriesBytes)
	h.length = h.listsAt + uint64(h.listsBytes)
}

func (h *head) append(dst []byte) []byte {
	for _, v := range []uint32{magic, h.units, h.keys, h.entriesBytes, h.listsBytes, runClasses, 0, 0, 0, 0} {
		dst = binary.LittleEndian.AppendUint32(dst, v)
	}
	return dst
}

// encoder builds the three parts of a segment that grow with the keys.
type encoder struct {
	words    int // in a flat list
	blocks   []byte
	entries  []byte
	lists    []byte
	keys     uint32
	last     uint32
	listsAt  int
	sliceBuf []byte
}

func (e *encoder) reset(units int) {
	e.words = (units + 63) / 64
	e.blocks, e.entries, e.lists = e.blocks[:0], e.entries[:0], e.lists[:0]
	e.keys, e.last, e.listsAt = 0, 0, 0
}

// entry opens the entry of a key, beginning a block where one is due.
func (e *encoder) entry(key uint32, kind int) {
	delta := key - e.last
	if e.keys%blockKeys == 0 {
		e.blocks = binary.LittleEndian.AppendUint32(e.blocks, key)
		e.blocks = binary.LittleEndian.AppendUint32(e.blocks, uint32(len(e.entries)))
		e.blocks = binary.LittleEndian.AppendUint32(e.blocks, uint32(len(e.lists)))
		delta = 0
	}
	e.entries = binary.AppendUvarint(e.entries, uint64(delta)<<3|uint64(kind))
	e.last = key
	e.keys++
}

// list closes the entry of a list whose bytes begin at from.
func (e *encoder) list(units, from int) {
	e.entries = binary.AppendUvarint(e.entries, uint64(units))
	e.entries = binary.AppendUvarint(e.entries, uint64(len(e.lists)-from))
}

// add appends a list given by its ids in ascending order, at least one.
func (e *encoder) add(key uint32, ids []uint16) {
	from := len(e.lists)
	switch {
	case len(ids) == 1:
		e.entry(key, kindInline1)
		e.entries = binary.LittleEndian.AppendUint16(e.entries, ids[0])
	case len(ids) == 2:
		e.entry(key, kindInline2)
		e.entries = binary.LittleEndian.AppendUint16(e.entries, ids[0])
		e.entries = binary.LittleEndian.AppendUint16(e.entries, ids[1])
	case len(ids) <= varintMax:
		e.entry(key, kindVarint)
		e.lists = appendDeltas(e.lists, ids)
		e.list(len(ids), from)
	default:
		e.sliceBuf = appendSliced(e.sliceBuf[:0], ids)
		if len(e.sliceBuf) >= 8*e.words {
			var b Bitmap
			for _, id := range ids {
				b.Set(id)
			}
			e.addFlat(key, &b, len(ids))
			return
		}
		e.entry(key, kindSliced)
		e.lists = append(e.lists, e.sliceBuf...)
		e.list(len(ids), from)
	}
}

// addBitmap appends a list given as a bitmap with n ids. ids is a buffer.
func (e *encoder) addBitmap(key uint32, b *Bitmap, n int, ids []uint16) []uint16 {
	if n == 0 {
		return ids
	}
	if n > varintMax {
		if slicedSize(b, e.words) >= 8*e.words {
			e.addFlat(key, b, n)
			return ids
		}
		e.entry(key, kindSliced)
		from := len(e.lists)
		e.lists = appendSlicedBitmap(e.lists, b, e.words)
		e.list(n, from)
		return ids
	}
	ids = ids[:0]
	for u := b.Next(0); u >= 0; u = b.Next(u + 1) {
		ids = append(ids, uint16(u))
	}
	e.add(key, ids)
	return ids
}

func (e *encoder) addFlat(key uint32, b *Bitmap, n int) {
	e.entry(key, kindFlat)
	from := len(e.lists)
	for _, w := range b[:e.words] {
		e.lists = binary.LittleEndian.AppendUint64(e.lists, w)
	}
	e.list(n, from)
}

func appendDeltas(dst []byte, ids []uint16) []byte {
	next := uint32(0)
	for _, id := range ids {
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

func appendSliced(dst []byte, ids []uint16) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, 32)...)
	for len(ids) > 0 {
		slice := ids[0] >> 8
		n := 1
		for n < len(ids) && ids[n]>>8 == slice {
			n++
		}
		dst[at+int(slice>>3)] |= 1 << (slice & 7)
		dst = append(dst, byte(n-1))
		if n < 32 {
			for _, id := range ids[:n] {
				dst = append(dst, byte(id))
			}
		} else {
			from := len(dst)
			dst = append(dst, make([]byte, 32)...)
			for _, id := range ids[:n] {
				dst[from+int(id&255)>>3] |= 1 << (id & 7)
			}
		}
		ids = ids[n:]
	}
	return dst
}

// slicedSize is the length of appendSlicedBitmap.
func slicedSize(b *Bitmap, words int) int {
	size := 32
	for s := 0; s < words; s += 4 {
		if n := sliceCount(b, s); n > 0 {
			size += 1 + min(n, 32)
		}
	}
	return size
}

func appendSlicedBitmap(dst []byte, b *Bitmap, words int) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, 32)...)
	for s := 0; s < words; s += 4 {
		n := sliceCount(b, s)
		if n == 0 {
			continue
		}
		dst[at+s>>5] |= 1 << (s >> 2 & 7)
		dst = append(dst, byte(n-1))
		if n >= 32 {
			for _, w := range b[s : s+4] {
				dst = binary.LittleEndian.AppendUint64(dst, w)
			}
			continue
		}
		for i, w := range b[s : s+4] {
			for ; w != 0; w &= w - 1 {
				dst = append(dst, byte(i<<6+bits.TrailingZeros64(w)))
			}
		}
	}
	return dst
}

func sliceCount(b *Bitmap, s int) int {
	return bits.OnesCount64(b[s]) + bits.OnesCount64(b[s+1]) + bits.OnesCount64(b[s+2]) + bits.OnesCount64(b[s+3])
}
