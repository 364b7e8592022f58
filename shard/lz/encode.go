package lz

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
	"unsafe"
)

const (
	hashBits    = 12 // size of the table of the block
	dictBits    = 15 // size of the table of the dictionary
	hashedBytes = 7  // bytes of the text in a hash
	minEncoded  = 5  // shortest match to write: a shorter one saves too little beside its record of three bytes
	maxOffset   = 1<<16 - 1
	skipShift   = 3 // after each 1<<skipShift positions without a match, the search skips one more byte
	// margin is how many bytes beyond its ends the text may be read.
	margin = 32
	// prime is the multiplier of the hash. Only the upper bits of the product count.
	prime = 0x9e3779b185ebca87
)

// Encoder compresses blocks. It is not safe for concurrent use. The same input always gives the
// same output.
//
// Most of its time goes into branches that cannot be predicted, at each match and right after it.
// The later the processor decides such a branch, the more it costs. So the tables have 16 more bits of the
// hash, which tell whether a position is worth looking at before its text is read. Block and
// dictionary lie in one text, and choosing between them needs no branch. Neither do lengths up to
// 16, nor up to eight matching bytes before the found position.
type Encoder struct {
	dictLen int // of the dictionary in bytes
	out     writer

	text   []byte                 // a margin, the dictionary, the block, a margin
	inDict *[1 << dictBits]uint32 // by hash: the last position in the dictionary, in the low 16 bits; above it extraHashBits
	table  [1 << hashBits]uint32  // the same for the block
}

// encoders has released encoders for reuse: one takes more memory than a small repository.
var encoders = sync.Pool{New: func() any { return &Encoder{inDict: new([1 << dictBits]uint32)} }}

// Release gives back the memory of an encoder, which must not be used afterwards.
func (e *Encoder) Release() { encoders.Put(e) }

// NewEncoder returns an encoder with a dictionary of at most MaxDict bytes; nil means none. The
// caller should call Release.
func NewEncoder(dict []byte) *Encoder {
	e := encoders.Get().(*Encoder)
	e.setDict(dict)
	return e
}

// setDict sets the dictionary and clears the state of an earlier use.
func (e *Encoder) setDict(dict []byte) {
	dict = dict[:min(len(dict), MaxDict)]

	// A hash covers eight bytes, so a shorter dictionary cannot be used.
	if len(dict) < 8 {
		dict = nil
	}

	size := margin + len(dict) + MaxBlock + margin
	e.dictLen, e.text = len(dict), slices.Grow(e.text[:0], size)[:size]
	clear(e.text)
	clear(e.inDict[:])
	copy(e.text[margin:], dict)

	// Later positions win, because they are nearer to the block.
	for i := 0; i+8 <= len(dict); i++ {
		h := hash(binary.LittleEndian.Uint64(dict[i:]))
		e.inDict[h>>(64-dictBits)] = uint32(i) | extraHashBits(h)
	}
}

// hash returns the hash of the first seven bytes of eight.
func hash(x uint64) uint64 { return x << (64 - 8*hashedBytes) * prime }

// extraHashBits returns the 16 bits of a hash that a table stores above a position. If they
// differ from those of the current text, so does the text at that position: it need not be read.
func extraHashBits(h uint64) uint32 { return uint32(h>>16) & 0xffff0000 }

// Encode appends the compressed form of src (at most MaxBlock bytes) to dst.
func (e *Encoder) Encode(dst, src []byte) []byte {
	if len(src) > MaxBlock {
		panic("BUG: block of more than MaxBlock bytes")
	}

	e.out.reset()
	// An empty slot of a table means position 0, which the search compares like any other. Before
	// each round of the loop:
	//
	//	text[start:anchor] is in sequences, text[anchor:i] will be literals
	clear(e.table[:])
	start, end := e.dictLen, e.dictLen+len(src)
	copy(e.text[margin+start:], src)
	text := unsafe.Pointer(&e.text[margin])
	i, anchor, misses := max(start, 1), start, 0
	for i+8 <= end {
		// Take the position in the block, or that in the dictionary if the extra bits differ.
		h := hash(load64(text, i))
		extra := extraHashBits(h)
		slot := &e.table[h>>(64-hashBits)]
		found, inDict := *slot, e.inDict[h>>(64-dictBits)]
		*slot = uint32(i) | extra
		if found^extra > maxOffset {
			found = inDict
		}

		// Equal extra bits cancel out, and the position remains.
		at := int(found ^ extra)
		if at > maxOffset {
			i += 1 + misses>>skipShift
			misses++
			continue
		}

		length := e.matchLength(text, i, at, end)
		if length < minEncoded {
			i++
			continue
		}

		misses = 0
		back := e.matchLengthBefore(text, i, at, anchor)
		e.out.addSequence(e.text[margin:], anchor, i-back, i-at, length+back)

		i += length
		anchor = i
		if i+8 <= end { // so that later matches can begin inside this one
			h := hash(load64(text, i-2))
			e.table[h>>(64-hashBits)] = uint32(i-2) | extraHashBits(h)
		}
	}
	return e.out.appendBlock(dst, e.text[margin+anchor:margin+end])
}

// matchLength returns how many bytes from i on equal those from at on. It stops at end and, if at is
// in the dictionary, at the end of the dictionary.
func (e *Encoder) matchLength(text unsafe.Pointer, i, at, end int) int {
	// If at is in the block, dictLen-at is 0 or less, and the second line makes it large.
	limit := e.dictLen - at
	limit += int(uint64(limit-1)>>63) << 20
	limit = min(limit, end-i)

	// Compare the first sixteen bytes without a branch: most matches end there.
	x, y := load64(text, i)^load64(text, at), load64(text, i+8)^load64(text, at+8)
	length, longer := bits.TrailingZeros64(x)>>3, 8+bits.TrailingZeros64(y)>>3

	if x == 0 {
		length = longer
	}

	if length == 16 {
		for length < limit {
			if x = load64(text, i+length) ^ load64(text, at+length); x != 0 {
				length += bits.TrailingZeros64(x) >> 3
				break
			}
			length += 8
		}
	}
	return min(length, limit)
}

// matchLengthBefore returns how many bytes before i equal those before at, at most 8. It does not
// go back beyond anchor, nor from the block into the dictionary.
func (e *Encoder) matchLengthBefore(text unsafe.Pointer, i, at, anchor int) int {
	before := at
	if at >= e.dictLen {
		before = at - e.dictLen
	}
	equal := bits.LeadingZeros64(load64(text, i-8)^load64(text, at-8)) >> 3
	return min(equal, i-anchor, before)
}

// load64 reads eight bytes.
func load64(p unsafe.Pointer, i int) uint64 { return *(*uint64)(unsafe.Add(p, i)) }
