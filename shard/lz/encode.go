package lz

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
	"unsafe"
)

const (
	hashBits  = 12 // size of the table of the block
	dictBits  = 15 // size of the table of the dictionary
	hashed    = 7  // bytes of the text in a hash
	least     = 5  // shortest match that is worth a record of three bytes
	maxOffset = 1<<16 - 1
	skipShift = 3 // after 1<<skipShift misses the search steps by one more byte
	// margin is how many bytes beyond its ends the text may be read.
	margin = 32
	// prime is the multiplier of the hash. Only the upper bits of the product count.
	prime = 0x9e3779b185ebca87
)

// Encoder compresses blocks. It is not safe for concurrent use. The same input always gives the
// same output.
//
// Most of its time goes into branches that cannot be predicted, at each match and right after it.
// The later such a branch is decided, the more it costs. So the tables have 16 more bits of the
// hash, which tell whether a position is worth looking at before its text is read. Block and
// dictionary lie in one text, and choosing between them needs no branch. Neither do lengths up to
// 16, nor up to eight matching bytes before the found position.
type Encoder struct {
	dict int // length of the dictionary in bytes
	out  writer

	text   []byte                 // a margin, the dictionary, the block, a margin
	inDict *[1 << dictBits]uint32 // by hash: position after the margin, with 16 more bits of the hash above it
	table  [1 << hashBits]uint32  // the same for the block
}

// encoders keeps the memory of encoders that were released: one takes more than a small repository.
var encoders = sync.Pool{New: func() any { return &Encoder{inDict: new([1 << dictBits]uint32)} }}

// Release gives back the memory of an encoder, which must not be used afterwards.
func (e *Encoder) Release() { encoders.Put(e) }

// NewEncoder returns an encoder with a dictionary of at most MaxDict bytes; nil means none. The
// caller should call Release.
func NewEncoder(dict []byte) *Encoder {
	e := encoders.Get().(*Encoder)
	e.load(dict)
	return e
}

// load makes the encoder one with a dictionary. Nothing of an earlier use has an effect.
func (e *Encoder) load(dict []byte) {
	dict = dict[:min(len(dict), MaxDict)]

	// A hash covers eight bytes, so a shorter dictionary cannot be used.
	if len(dict) < 8 {
		dict = nil
	}

	size := margin + len(dict) + MaxBlock + margin
	e.dict, e.text = len(dict), slices.Grow(e.text[:0], size)[:size]
	clear(e.text)
	clear(e.inDict[:])
	copy(e.text[margin:], dict)

	// Later positions win, because they are nearer to the block.
	for i := 0; i+8 <= len(dict); i++ {
		h := hash(binary.LittleEndian.Uint64(dict[i:]))
		e.inDict[h>>(64-dictBits)] = uint32(i) | further(h)
	}
}

// hash returns the hash of the first bytes of eight.
func hash(x uint64) uint64 { return x << (64 - 8*hashed) * prime }

// further returns the bits of a hash that are stored with a position.
func further(h uint64) uint32 { return uint32(h>>16) & 0xffff0000 }

// Encode appends the compressed form of src (at most MaxBlock bytes) to dst.
func (e *Encoder) Encode(dst, src []byte) []byte {
	if len(src) > MaxBlock {
		panic("BUG: block of more than MaxBlock bytes")
	}

	e.out.reset()
	// An empty slot of a table has position 0, which is as good a guess as any other. Before each
	// step
	//
	//	text[n:anchor] is in sequences, text[anchor:i] will be literals
	clear(e.table[:])
	n, end := e.dict, e.dict+len(src)
	copy(e.text[margin+n:], src)
	text := unsafe.Pointer(&e.text[margin])
	i, anchor, misses := max(n, 1), n, 0
	for i+8 <= end {
		// Choose between block and dictionary by the further bits.
		h := hash(load64(text, i))
		more := further(h)
		place := &e.table[h>>(64-hashBits)]
		found, other := *place, e.inDict[h>>(64-dictBits)]
		*place = uint32(i) | more
		if found^more > maxOffset {
			found = other
		}

		at := int(found ^ more)
		if at > maxOffset {
			i += 1 + misses>>skipShift
			misses++
			continue
		}

		length := e.match(text, i, at, end)
		if length < least {
			i++
			continue
		}

		misses = 0
		back := e.reach(text, i, at, anchor)
		e.out.sequence(e.text[margin:], anchor, i-back, i-at, length+back)

		i += length
		anchor = i
		if i+8 <= end { // so that the next match can begin inside this one
			h := hash(load64(text, i-2))
			e.table[h>>(64-hashBits)] = uint32(i-2) | further(h)
		}
	}
	return e.out.finish(dst, e.text[margin+anchor:margin+end])
}

// match returns how many bytes from i and from at are equal. A match that begins in the dictionary
// ends there.
func (e *Encoder) match(text unsafe.Pointer, i, at, end int) int {
	room := e.dict - at // 0 or less means that at is in the block
	room += int(uint64(room-1)>>63) << 20
	room = min(room, end-i)

	// Compare the first sixteen bytes without a branch: most matches end there.
	x, y := load64(text, i)^load64(text, at), load64(text, i+8)^load64(text, at+8)
	length, longer := bits.TrailingZeros64(x)>>3, 8+bits.TrailingZeros64(y)>>3

	if x == 0 {
		length = longer
	}

	if length == 16 {
		for length < room {
			if x = load64(text, i+length) ^ load64(text, at+length); x != 0 {
				length += bits.TrailingZeros64(x) >> 3
				break
			}
			length += 8
		}
	}
	return min(length, room)
}

// reach returns how many bytes before i match too. They would be literals otherwise.
func (e *Encoder) reach(text unsafe.Pointer, i, at, anchor int) int {
	before := at
	if at >= e.dict {
		before = at - e.dict
	}
	alike := bits.LeadingZeros64(load64(text, i-8)^load64(text, at-8)) >> 3
	return min(alike, i-anchor, before)
}

// load64 reads eight bytes.
func load64(p unsafe.Pointer, i int) uint64 { return *(*uint64)(unsafe.Add(p, i)) }
