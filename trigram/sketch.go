package trigram

import (
	"bytes"
	"math/bits"
	"slices"
)

// A sketch has a bit for each two bytes of its text, up to a power of two and within
// these bounds: texts of many megabytes have 5,000 to 40,000 different trigrams, so that
// a trigram that is not there finds a bit of another one time in 14 at most.
const (
	leastSketch = 10 // log2 of bits
	mostSketch  = 19
)

// A Sketch is a small stand-in for a text that no index has: it tells that a formula
// has no match there, without the text. It is immutable and safe for concurrent use.
//
// It is the set of the text's trigrams by a hash of them, which may seem to hold more
// than was put in (a Bloom filter). It knows nothing of places, nor of runs.
type Sketch struct {
	bits    []uint64
	shift   int  // of a hash of 32 bits, to the number of a bit
	special bool // U+212A or U+017F is in the text
}

// NewSketch makes the sketch of a text, of at most 64 KiB.
func NewSketch(text []byte) *Sketch {
	log := min(max(bits.Len(uint(len(text)/2)), leastSketch), mostSketch)
	s := &Sketch{bits: make([]uint64, 1<<log/64), shift: 32 - log}

	// A newline is thought before the text, and two after it.
	s.add(s.add('\n', text), []byte("\n\n"))

	s.special = bytes.Contains(text, []byte(string(rune(kelvin)))) || bytes.Contains(text, []byte(string(rune(longS))))
	return s
}

// Size is the bytes of memory that the sketch takes.
func (s *Sketch) Size() int { return 8*len(s.bits) + 64 }

// add puts in the trigrams that end in a text. last is the two bytes before it, folded;
// those at its end are returned.
func (s *Sketch) add(last uint32, text []byte) uint32 {
	// The last three bytes, and a free one below them for the next.
	key := last << 8
	for _, c := range text {
		key = (key | uint32(foldByte[c])) << 8
		x := s.place(key)
		s.bits[x>>6] |= 1 << (x & 63)
	}
	return key >> 8 & 0xffff
}

// has reports whether a trigram may be in the text.
func (s *Sketch) has(key uint32) bool {
	x := s.place(key << 8)
	return s.bits[x>>6]&(1<<(x&63)) != 0
}

// place is the bit of the trigram in the upper bytes of a key: of its product with a
// large odd number the highest bits, in which all of its own are mixed.
func (s *Sketch) place(key uint32) uint32 { return key * 0x9e3779b1 >> (s.shift & 31) }

// MayMatch reports whether the text of a sketch may have a match; false is certain.
func (f *Formula) MayMatch(s *Sketch) bool { return f.root == nil || s.may(f.root) }

// may reports whether a condition may hold somewhere in the text.
func (s *Sketch) may(n *node) bool {
	switch n.op {
	case opNone:
		return false
	case opOr:
		return slices.ContainsFunc(n.subs, s.may)
	case opSeq:
		return !slices.ContainsFunc(n.subs, func(sub *node) bool { return !s.may(sub) })
	}

	// Characters beyond ASCII may stand for a letter of it: nothing is known then.
	// And a sketch knows nothing of runs.
	if n.special && s.special || n.op == opRun {
		return true
	}

	for _, i := range n.picks {
		if n.triple(i) <= someTriple && !s.hasAny(n.set[i], n.set[i+1], n.set[i+2]) {
			return false
		}
	}
	return true
}

// hasAny reports whether a trigram of three sets of bytes may be in the text.
func (s *Sketch) hasAny(first, second, third byteSet) bool {
	var buf [3][256]byte
	seconds, thirds := second.bytes(buf[1][:0]), third.bytes(buf[2][:0])
	for _, a := range first.bytes(buf[0][:0]) {
		for _, b := range seconds {
			for _, c := range thirds {
				if s.has(uint32(a)<<16 | uint32(b)<<8 | uint32(c)) {
					return true
				}
			}
		}
	}
	return false
}
