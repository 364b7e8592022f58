package trigram

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// Each set of a sketch has a bit for each two bytes of its text, rounded up to a power of two,
// within these limits. Texts of many megabytes have 5,000 to 40,000 different trigrams. So at most
// one in 14 of the trigrams that the text lacks has the same bit as one that it has.
const (
	leastSketch = 10 // log2 of bits
	mostSketch  = 19
)

// A Sketch is a small summary of a text that is not in the index. Without the text it can tell that
// a formula has no match there. It is immutable and safe for concurrent use.
//
// It has two Bloom filters: of the trigrams of the text, and of its strings of four bytes with
// their case. A Bloom filter may seem to contain more than was added. The sketch has no positions,
// and no runs of a class.
type Sketch struct {
	bits    []uint64 // folded trigrams
	exact   []uint64 // strings of four bytes with their case
	shift   int      // a 32-bit hash shifted right by it is the number of a bit
	special bool     // the text has U+212A or U+017F
}

// NewSketch returns the sketch of a text of at most 128 KiB.
func NewSketch(text []byte) *Sketch {
	log := min(max(bits.Len(uint(len(text)/2)), leastSketch), mostSketch)
	s := &Sketch{bits: make([]uint64, 1<<log/64), exact: make([]uint64, 1<<log/64), shift: 32 - log}

	if len(text) >= exactBytes {
		key := binary.BigEndian.Uint32(text) >> 8 // the first three bytes
		for _, c := range text[exactBytes-1:] {
			key = key<<8 | uint32(c)
			s.insert(s.exact, key)
		}
	}

	// As in the index, one newline precedes the text and two follow it.
	s.addTrigrams(s.addTrigrams('\n', text), []byte("\n\n"))

	s.special = bytes.Contains(text, []byte(string(rune(kelvin)))) || bytes.Contains(text, []byte(string(rune(longS))))
	return s
}

// Size returns the bytes of memory that the sketch takes.
func (s *Sketch) Size() int { return 8*(len(s.bits)+len(s.exact)) + 96 }

// addTrigrams adds the trigrams that end in a text. lastTwo has the two folded bytes before the
// text. It returns the last two folded bytes of the text.
func (s *Sketch) addTrigrams(lastTwo uint32, text []byte) uint32 {
	// key has the last three bytes, above a free byte for the next one.
	key := lastTwo << 8
	for _, c := range text {
		key = (key | uint32(foldByte[c])) << 8
		s.insert(s.bits, key)
	}
	return key >> 8 & 0xffff
}

// mayHaveTrigram reports whether a trigram may be in the text.
func (s *Sketch) mayHaveTrigram(key uint32) bool { return s.mayContain(s.bits, key<<8) }

// insert adds a key to one of the sets.
func (s *Sketch) insert(set []uint64, key uint32) {
	x := s.bitOf(key)
	set[x>>6] |= 1 << (x & 63)
}

// mayContain reports whether a key may be in one of the sets.
func (s *Sketch) mayContain(set []uint64, key uint32) bool {
	x := s.bitOf(key)
	return set[x>>6]&(1<<(x&63)) != 0
}

// bitOf returns the bit number of a key, which is a trigram in the upper bytes or a string of four
// bytes. It takes the highest bits of the product with a large odd number, because all bits of the
// key affect them.
func (s *Sketch) bitOf(key uint32) uint32 { return key * 0x9e3779b1 >> (s.shift & 31) }

// exactBytes is the number of bytes of a literal that are looked up together.
const exactBytes = 4

// mayHaveLiteral reports whether a literal may occur in the text of a sketch with its case.
func (s *Sketch) mayHaveLiteral(text string) bool {
	for i := 0; i+exactBytes <= len(text); i++ {
		if !s.mayContain(s.exact, binary.BigEndian.Uint32([]byte(text[i:i+exactBytes]))) {
			return false
		}
	}
	return true
}

// Question is an expression, prepared so that sketches tell quickly whether their texts may match
// it. It is immutable and safe for concurrent use.
type Question struct {
	formula  *Formula
	literals []string // texts that every match contains, with their case
}

// Ask returns the question of a parsed expression.
func Ask(re *syntax.Regexp) *Question {
	return &Question{FromRegexp(re, false), literalsOf(re, nil)}
}

// MayMatch reports whether the text of a sketch may have a match; false is certain.
func (q *Question) MayMatch(s *Sketch) bool {
	return !slices.ContainsFunc(q.literals, func(text string) bool { return !s.mayHaveLiteral(text) }) && q.formula.MayMatch(s)
}

// literalsOf appends texts that every match of an expression contains.
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

	// Skip literals with a byte that is not UTF-8, which is parsed as U+FFFD, and those with a line
	// end, which may be two bytes.
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 && !slices.ContainsFunc(re.Rune, func(r rune) bool { return r == utf8.RuneError || r == '\n' || r == '\r' }) {
			out = append(out, string(re.Rune))
		}
	}
	return out
}

// MayMatch reports whether the text of a sketch may have a match; false is certain.
func (f *Formula) MayMatch(s *Sketch) bool { return f.root == nil || s.mayHold(f.root) }

// mayHold reports whether a condition may hold somewhere in the text.
func (s *Sketch) mayHold(n *node) bool {
	switch n.op {
	case opNone:
		return false
	case opOr:
		return slices.ContainsFunc(n.subs, s.mayHold)
	case opSeq:
		return !slices.ContainsFunc(n.subs, func(sub *node) bool { return !s.mayHold(sub) })
	}

	// Characters beyond ASCII may stand for an ASCII letter, and a sketch knows no runs: then
	// nothing can be ruled out.
	if n.special && s.special || n.op == opRun {
		return true
	}

	for _, i := range n.picks {
		if n.countTrigrams(i) <= someTriple && !s.hasAny(n.set[i], n.set[i+1], n.set[i+2]) {
			return false
		}
	}
	return true
}

// hasAny reports whether a trigram with bytes of three sets may be in the text.
func (s *Sketch) hasAny(first, second, third byteSet) bool {
	var buf [3][256]byte
	seconds, thirds := second.appendBytes(buf[1][:0]), third.appendBytes(buf[2][:0])
	for _, a := range first.appendBytes(buf[0][:0]) {
		for _, b := range seconds {
			for _, c := range thirds {
				if s.mayHaveTrigram(uint32(a)<<16 | uint32(b)<<8 | uint32(c)) {
					return true
				}
			}
		}
	}
	return false
}
