package trigram

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// Each set of a sketch has a bit for each two bytes of its text, up to a power of two and
// within these bounds: texts of many megabytes have 5,000 to 40,000 different trigrams, so
// that one that is not there finds a bit of another one time in 14 at most.
const (
	leastSketch = 10 // log2 of bits
	mostSketch  = 19
)

// A Sketch is a small stand-in for a text that no index has: it tells that a formula
// has no match there, without the text. It is immutable and safe for concurrent use.
//
// It is the set of the text's trigrams, and that of its runs of four bytes in their own
// case, by a hash of them: sets that may seem to hold more than was put in (Bloom
// filters). It knows nothing of places, nor of runs of a class.
type Sketch struct {
	bits    []uint64 // of folded trigrams
	exact   []uint64 // of four bytes as they stand
	shift   int      // of a hash of 32 bits, to the number of a bit
	special bool     // U+212A or U+017F is in the text
}

// NewSketch makes the sketch of a text, of at most 128 KiB.
func NewSketch(text []byte) *Sketch {
	log := min(max(bits.Len(uint(len(text)/2)), leastSketch), mostSketch)
	s := &Sketch{bits: make([]uint64, 1<<log/64), exact: make([]uint64, 1<<log/64), shift: 32 - log}

	if len(text) >= exactBytes {
		key := binary.BigEndian.Uint32(text) >> 8 // the first three
		for _, c := range text[exactBytes-1:] {
			key = key<<8 | uint32(c)
			s.put(s.exact, key)
		}
	}

	// A newline is thought before the text, and two after it.
	s.add(s.add('\n', text), []byte("\n\n"))

	s.special = bytes.Contains(text, []byte(string(rune(kelvin)))) || bytes.Contains(text, []byte(string(rune(longS))))
	return s
}

// Size is the bytes of memory that the sketch takes.
func (s *Sketch) Size() int { return 8*(len(s.bits)+len(s.exact)) + 96 }

// add puts in the trigrams that end in a text. last is the two bytes before it, folded;
// those at its end are returned.
func (s *Sketch) add(last uint32, text []byte) uint32 {
	// The last three bytes, and a free one below them for the next.
	key := last << 8
	for _, c := range text {
		key = (key | uint32(foldByte[c])) << 8
		s.put(s.bits, key)
	}
	return key >> 8 & 0xffff
}

// has reports whether a trigram may be in the text.
func (s *Sketch) has(key uint32) bool { return s.in(s.bits, key<<8) }

// put puts a key into one of the sets.
func (s *Sketch) put(set []uint64, key uint32) {
	x := s.place(key)
	set[x>>6] |= 1 << (x & 63)
}

// in reports whether a key may be in one of the sets.
func (s *Sketch) in(set []uint64, key uint32) bool {
	x := s.place(key)
	return set[x>>6]&(1<<(x&63)) != 0
}

// place is the bit of a key, a trigram in its upper bytes or four bytes: of its product
// with a large odd number the highest bits, in which all of its own are mixed.
func (s *Sketch) place(key uint32) uint32 { return key * 0x9e3779b1 >> (s.shift & 31) }

// exactBytes is how many bytes of a literal are looked up at a time.
const exactBytes = 4

// mayHave reports whether a text may stand in the text of a sketch, in this case.
func (s *Sketch) mayHave(text string) bool {
	for i := 0; i+exactBytes <= len(text); i++ {
		if !s.in(s.exact, binary.BigEndian.Uint32([]byte(text[i:i+exactBytes]))) {
			return false
		}
	}
	return true
}

// Question is what sketches are asked about an expression. It is immutable and safe for
// concurrent use.
type Question struct {
	formula  *Formula
	literals []string // that every match has, as they stand
}

// Ask makes the question of a parsed expression.
func Ask(re *syntax.Regexp) *Question {
	return &Question{FromRegexp(re, false), literalsOf(re, nil)}
}

// MayMatch reports whether the text of a sketch may have a match; false is certain.
func (q *Question) MayMatch(s *Sketch) bool {
	return !slices.ContainsFunc(q.literals, func(text string) bool { return !s.mayHave(text) }) && q.formula.MayMatch(s)
}

// literalsOf appends texts that every match of an expression has.
//
//	ext4_[a-z]+_inode    ext4_  _inode
//	(?:foo|bar)\.baz     .baz
//	(?i)foo              none: it may be FOO
func literalsOf(re *syntax.Regexp, out []string) []string {
	switch re.Op {
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		for _, sub := range re.Sub {
			out = literalsOf(sub, out)
		}

	case syntax.OpRepeat:
		if re.Min > 0 {
			out = literalsOf(re.Sub[0], out)
		}

	// A byte that is no UTF-8 is read as U+FFFD, and a line may end in two bytes.
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 && !slices.ContainsFunc(re.Rune, func(r rune) bool { return r == utf8.RuneError || r == '\n' || r == '\r' }) {
			out = append(out, string(re.Rune))
		}
	}
	return out
}

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
