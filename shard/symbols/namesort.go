package symbols

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"
)

// sortKey is what nameSorter compares: eight bytes of a name in lower case, from some offset on.
type sortKey struct {
	bytes  uint64
	number uint32
}

// sortNames returns the numbers of the names, sorted by lower case and then as they are.
// Names have long prefixes in common, so sortNames compares them eight bytes at a time. It sorts
// names that are equal so far again by the next eight bytes.
//
//	depth 0   "mutex_lo" "mutex_lo" "mutex_un"
//	depth 8   "ck"       "ck_slow"
func sortNames(t *interner) []uint32 {
	s := nameSorter{t: t, lower: map[uint32][]byte{}}
	keys := make([]sortKey, t.len())
	for i := range keys {
		n := uint32(i)

		// lower8 converts only ASCII. The lower case of other letters may have another length.
		if name := t.name(n); !isASCII(name) {
			s.lower[n] = []byte(strings.ToLower(string(name)))
		}
		keys[i].number = n
	}

	s.sort(keys, 0)
	order := make([]uint32, len(keys))
	for i, k := range keys {
		order[i] = k.number
	}
	return order
}

// nameSorter sorts names by multikey quicksort, eight bytes a key.
type nameSorter struct {
	t     *interner
	lower map[uint32][]byte // the lower case of names beyond ASCII
}

// sort sorts names that are equal in their first depth bytes.
func (s *nameSorter) sort(keys []sortKey, depth int) {
	for i := range keys {
		keys[i].bytes = s.keyAt(keys[i].number, depth)
	}
	slices.SortFunc(keys, func(a, b sortKey) int { return cmp.Compare(a.bytes, b.bytes) })

	// Sort each run of equal keys by the bytes that follow.
	for from := 0; from < len(keys); {
		to := from + 1
		for to < len(keys) && keys[to].bytes == keys[from].bytes {
			to++
		}

		switch {
		case to == from+1:
		case keys[from].bytes&0xff == 0: // the names end here
			slices.SortFunc(keys[from:to], func(a, b sortKey) int { return bytes.Compare(s.t.name(a.number), s.t.name(b.number)) })
		default:
			s.sort(keys[from:to], depth+8)
		}

		from = to
	}
}

// keyAt returns eight bytes of the lower case of a name, from offset depth on, as a number that
// sorts as they do. Zeros follow the end of the name; no name contains a zero.
func (s *nameSorter) keyAt(number uint32, depth int) uint64 {
	name := s.t.name(number)
	if len(s.lower) > 0 {
		if low, ok := s.lower[number]; ok {
			return firstEightBytes(low[min(depth, len(low)):])
		}
	}
	return lower8(firstEightBytes(name[min(depth, len(name)):]))
}

// firstEightBytes returns the first eight bytes of b as a number: the numbers sort as the bytes do.
func firstEightBytes(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var v uint64
	for i, c := range b {
		v |= uint64(c) << (56 - 8*i)
	}
	return v
}

// lower8 converts eight ASCII bytes to lower case. The top bit of a byte of fromA is set if the
// byte is at least 'A', that of afterZ if it is greater than 'Z'. A capital has the first without
// the second: moved right by two, that bit is 0x20, the difference to the small letter.
func lower8(v uint64) uint64 {
	const ones = 0x0101010101010101
	fromA, afterZ := v+ones*(0x80-'A'), v+ones*(0x80-'Z'-1)
	return v | (fromA&^afterZ&(ones*0x80))>>2
}

// isASCII reports whether all bytes are ASCII.
func isASCII(b []byte) bool {
	// Eight bytes at once, since millions of names come here.
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b)&0x8080808080808080 != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
