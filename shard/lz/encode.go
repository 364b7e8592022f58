package lz

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

const (
	hashBits  = 12 // of the table of the block
	dictBits  = 15 // of the table of the dictionary
	maxOffset = 1<<16 - 1
	skipShift = 5 // misses before the search takes larger steps, as a power of two
)

// Encoder compresses blocks. It is not safe for concurrent use. The same
// input gives the same output, always.
type Encoder struct {
	dict []byte
	best *chains // nil for the fast way
	out  writer

	inDict *[1 << dictBits]uint16 // by hash: 1 + position in dict
	table  [1 << hashBits]uint16  // by hash: 1 + position in src
}

// NewEncoder returns an encoder over a dictionary (nil for none, at most
// MaxDict bytes). With best it searches longer for better matches: several
// times slower, for compaction.
func NewEncoder(dict []byte, best bool) *Encoder {
	e := &Encoder{dict: dict[:min(len(dict), MaxDict)]}
	if best {
		e.best = newChains(e.dict)
		return e
	}
	e.inDict = new([1 << dictBits]uint16)
	for i := 0; i+8 <= len(e.dict); i++ {
		e.inDict[(binary.LittleEndian.Uint64(e.dict[i:])<<24*prime)>>(64-dictBits)] = uint16(i + 1)
	}
	return e
}

// prime spreads the first five bytes of eight; the top bits are the hash.
const prime = 0x9e3779b185ebca87

// Encode appends the compressed form of src (at most MaxBlock bytes) to dst.
func (e *Encoder) Encode(dst, src []byte) []byte {
	if len(src) > MaxBlock {
		panic("BUG: block of more than MaxBlock bytes")
	}
	e.out.reset()
	if e.best != nil {
		return e.out.finish(dst, src[e.best.encode(&e.out, src):])
	}
	clear(e.table[:])
	anchor, i, misses := 0, 0, 0
	base, dict := unsafe.Pointer(unsafe.SliceData(src)), unsafe.Pointer(unsafe.SliceData(e.dict))
	table, inDict := &e.table, e.inDict
	for i+8 < len(src) {
		// Positions in the tables have four bytes behind them in their text.
		x := load64(base, i)
		h := (x << 24 * prime) >> (64 - dictBits)
		at := int(table[h>>(dictBits-hashBits)]) - 1
		table[h>>(dictBits-hashBits)] = uint16(i + 1)
		offset, length := 0, 0
		if at >= 0 && uint32(x) == load32(base, at) {
			offset, length = i-at, 4+matchLength(src[i+4:], src[at+4:])
		} else if at = int(inDict[h]) - 1; at >= 0 && uint32(x) == load32(dict, at) {
			offset, length = i+len(e.dict)-at, 4+matchLength(src[i+4:], e.dict[at+4:])
		} else {
			i += 1 + misses>>skipShift
			misses++
			continue
		}
		misses = 0
		// Reach back over literals that match as well.
		from := e.before(i, offset)
		for i > anchor && from > 0 && src[i-1] == e.at(src, i, offset, from) {
			i, length, from = i-1, length+1, from-1
		}
		e.out.sequence(src, anchor, i, offset, length)
		end := i + length
		if end+8 < len(src) {
			table[(load64(base, end-2)<<24*prime)>>(64-hashBits)] = uint16(end - 1)
		}
		i, anchor = end, end
	}
	return e.out.finish(dst, src[anchor:])
}

func load64(p unsafe.Pointer, i int) uint64 { return *(*uint64)(unsafe.Add(p, i)) }
func load32(p unsafe.Pointer, i int) uint32 { return *(*uint32)(unsafe.Add(p, i)) }

// before is how many bytes precede the match of position i in its own text.
func (e *Encoder) before(i, offset int) int {
	if offset > i {
		return len(e.dict) - (offset - i)
	}
	return i - offset
}

// at is the byte before the match of position i.
func (e *Encoder) at(src []byte, i, offset, from int) byte {
	if offset > i {
		return e.dict[from-1]
	}
	return src[from-1]
}

// matchLength is the number of bytes in which a and b begin alike.
func matchLength(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)>>3
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
