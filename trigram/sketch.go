package trigram

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// A set has a bit for each two bytes of its text, rounded up to a power of two, within these
// limits. Texts of many megabytes have 5,000 to 40,000 different trigrams. So at most one in 14 of
// the trigrams that the text lacks has the same bit as one that it has.
const (
	leastSketch = 10 // log2 of bits
	mostSketch  = 19
)

// bloom is a Bloom filter: it may seem to contain more than was added.
type bloom struct {
	bits  []byte
	shift int // a 32-bit hash shifted right by it is the number of a bit
}

// newBloom returns an empty filter for the strings of a text.
func newBloom(text int) bloom {
	log := min(max(bits.Len(uint(text/2)), leastSketch), mostSketch)
	return bloom{make([]byte, 1<<log/8), 32 - log}
}

func (b *bloom) insert(key uint32) {
	x := b.bitOf(key)
	b.bits[x>>3] |= 1 << (x & 7)
}

func (b *bloom) mayContain(key uint32) bool {
	x := b.bitOf(key)
	return b.bits[x>>3]&(1<<(x&7)) != 0
}

// bitOf returns the bit number of a key, which is a trigram in the upper bytes or a string of four
// bytes. It takes the highest bits of the product with a large odd number, because all bits of the
// key affect them.
func (b *bloom) bitOf(key uint32) uint32 { return key * 0x9e3779b1 >> (b.shift & 31) }

// A Set is a small summary of a text: which folded trigrams it may have. Without the text it can
// tell that a formula has no match there. It has no positions, and no runs of a class. It is
// immutable and safe for concurrent use.
type Set struct {
	trigrams bloom
	special  bool // the text has U+212A or U+017F
}

// NewSet returns the set of a text.
func NewSet(text []byte) *Set {
	s := &Set{trigrams: newBloom(len(text))}
	// As in the index, one newline precedes the text and two follow it.
	s.add(s.add('\n', text), []byte("\n\n"))
	s.special = bytes.Contains(text, []byte(string(rune(kelvin)))) || bytes.Contains(text, []byte(string(rune(longS))))
	return s
}

// add adds the trigrams that end in a text. lastTwo has the two folded bytes before the text. It
// returns the last two folded bytes of the text.
func (s *Set) add(lastTwo uint32, text []byte) uint32 {
	// key has the last three bytes, above a free byte for the next one.
	key := lastTwo << 8
	for _, c := range text {
		key = (key | uint32(foldByte[c])) << 8
		s.trigrams.insert(key)
	}
	return key >> 8 & 0xffff
}

// mayHaveTrigram reports whether a trigram may be in the text.
func (s *Set) mayHaveTrigram(key uint32) bool { return s.trigrams.mayContain(key << 8) }

// specialSet marks an encoded set whose text has U+212A or U+017F.
const specialSet = 0x80

// AppendTo appends the encoded set: a byte with the log2 of its number of bits and specialSet, then
// the bits.
func (s *Set) AppendTo(dst []byte) []byte {
	head := byte(32 - s.trigrams.shift)
	if s.special {
		head |= specialSet
	}
	return append(append(dst, head), s.trigrams.bits...)
}

// ReadSet reads the set at the start of b, and returns the bytes after it. The set refers to b.
func ReadSet(b []byte) (s *Set, rest []byte, err error) {
	if len(b) == 0 {
		return nil, nil, fmt.Errorf("%w: no set", ErrCorrupt)
	}
	log := int(b[0] &^ specialSet)
	if log < leastSketch || log > mostSketch || len(b) < 1+1<<log/8 {
		return nil, nil, fmt.Errorf("%w: set of 2^%d bits in %d bytes", ErrCorrupt, log, len(b))
	}
	end := 1 + 1<<log/8
	return &Set{bloom{b[1:end:end], 32 - log}, b[0]&specialSet != 0}, b[end:], nil
}

// A Sketch is a [Set] of a text that is not in the index, which also has the strings of four bytes
// with their case.
type Sketch struct {
	Set
	exact bloom
}

// NewSketch returns the sketch of a text.
func NewSketch(text []byte) *Sketch {
	s := &Sketch{*NewSet(text), newBloom(len(text))}
	if len(text) >= exactBytes {
		key := binary.BigEndian.Uint32(text) >> 8 // the first three bytes
		for _, c := range text[exactBytes-1:] {
			key = key<<8 | uint32(c)
			s.exact.insert(key)
		}
	}
	return s
}

// Size returns the bytes of memory that the sketch takes.
func (s *Sketch) Size() int { return len(s.trigrams.bits) + len(s.exact.bits) + 96 }

// exactBytes is the number of bytes of a literal that are looked up together.
const exactBytes = 4

// mayHaveLiteral reports whether a literal may occur in the text of a sketch with its case.
func (s *Sketch) mayHaveLiteral(text string) bool {
	for i := 0; i+exactBytes <= len(text); i++ {
		if !s.exact.mayContain(binary.BigEndian.Uint32([]byte(text[i : i+exactBytes]))) {
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
	return !slices.ContainsFunc(q.literals, func(text string) bool { return !s.mayHaveLiteral(text) }) && q.formula.MayMatch(&s.Set)
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

// MayMatch reports whether the text of a set may have a match; false is certain.
func (f *Formula) MayMatch(s *Set) bool { return f.root == nil || s.mayHold(f.root) }

// mayHold reports whether a condition may hold somewhere in the text.
func (s *Set) mayHold(n *node) bool {
	switch n.op {
	case opNone:
		return false
	case opOr:
		return slices.ContainsFunc(n.subs, s.mayHold)
	case opSeq:
		return !slices.ContainsFunc(n.subs, func(sub *node) bool { return !s.mayHold(sub) })
	}

	// Characters beyond ASCII may stand for an ASCII letter, and a set knows no runs: then
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
func (s *Set) hasAny(first, second, third byteSet) bool {
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
