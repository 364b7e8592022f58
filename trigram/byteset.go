package trigram

import (
	"math/bits"
	"strconv"
	"strings"
)

// byteSet is a set of bytes.
type byteSet [4]uint64

// add adds a byte, and has reports whether the set has it.
func (s *byteSet) add(b byte)     { s[b>>6] |= 1 << (b & 63) }
func (s byteSet) has(b byte) bool { return s[b>>6]&(1<<(b&63)) != 0 }

// addRange adds the bytes from lo to hi, both included.
func (s *byteSet) addRange(lo, hi byte) {
	for b := int(lo); b <= int(hi); b++ {
		s.add(byte(b))
	}
}

// or returns the union of two sets.
func (s byteSet) or(o byteSet) byteSet {
	for i := range s {
		s[i] |= o[i]
	}
	return s
}

// size returns the number of bytes in the set.
func (s byteSet) size() int {
	return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) + bits.OnesCount64(s[2]) + bits.OnesCount64(s[3])
}

func (s byteSet) isSubsetOf(o byteSet) bool { return s.or(o) == o }

// appendBytes appends the members in ascending order.
func (s byteSet) appendBytes(dst []byte) []byte {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			dst = append(dst, byte(i<<6+bits.TrailingZeros64(w)))
		}
	}
	return dst
}

// folded returns the set with each capital replaced by its small letter.
func (s byteSet) folded() byteSet {
	const capitals = 0x07fffffe
	s[1] = s[1]&^capitals | s[1]&capitals<<32
	return s
}

// String returns the only member as it is written in a formula. It returns several members in
// brackets, with neighbours as a range: [0-9_].
func (s byteSet) String() string {
	m := s.appendBytes(nil)
	if len(m) == 1 {
		return printByte(m[0])
	}

	var b strings.Builder
	b.WriteByte('[')

	// Neighbouring members form a range: m[i..j].
	for i := 0; i < len(m); {
		j := i
		for j+1 < len(m) && m[j+1] == m[j]+1 {
			j++
		}

		b.WriteString(printByte(m[i]))
		if j > i {
			if j > i+1 {
				b.WriteByte('-')
			}
			b.WriteString(printByte(m[j]))
		}

		i = j + 1
	}

	b.WriteByte(']')
	return b.String()
}

// printByte returns a byte as it is written in a formula.
func printByte(b byte) string {
	q := strconv.QuoteToASCII(string([]byte{b}))
	return q[1 : len(q)-1]
}

// runSets has the set of bytes of each run class.
var runSets = makeRunSets()

// makeRunSets makes the set of bytes of each run class.
func makeRunSets() (t [runClasses]byteSet) {
	for b, bits := range makeRunBits() {
		for c := range t {
			if bits&(1<<c) != 0 {
				t[c].add(byte(b))
			}
		}
	}
	return t
}

// min returns the smallest member; 0 if the set is empty.
func (s byteSet) min() byte {
	for i, w := range s {
		if w != 0 {
			return byte(i<<6 + bits.TrailingZeros64(w))
		}
	}
	return 0
}
