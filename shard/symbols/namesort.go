package symbols

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"
)

// sortKey stands for a name while names are sorted: eight bytes of its lower case from some
// depth on, and its number.
type sortKey struct {
	bytes  uint64
	number uint32
}

// sortedNames returns the numbers of the names, sorted by lower case and then as they are.
// Names have long prefixes in common, so they are compared eight bytes at a time: those
// that are equal so far are sorted again by the next eight.
//
//	depth 0   "mutex_lo" "mutex_lo" "mutex_un"
//	depth 8   "ck"       "ck_slow"
func sortedNames(t *interner) []uint32 {
	s := nameSorter{t: t, low: map[uint32][]byte{}}
	keys := make([]sortKey, t.len())
	for i := range keys {
		n := uint32(i)

		// lower8 knows only ASCII; elsewhere the lower case may even have another length.
		if name := t.name(n); !isASCII(name) {
			s.low[n] = []byte(strings.ToLower(string(name)))
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
	t   *interner
	low map[uint32][]byte // the lower case of names beyond ASCII
}

// sort sorts names that are equal in their first depth bytes.
func (s *nameSorter) sort(keys []sortKey, depth int) {
	// The next eight bytes of each, as a number that sorts alike.
	for i := range keys {
		keys[i].bytes = s.at(keys[i].number, depth)
	}
	slices.SortFunc(keys, func(a, b sortKey) int { return cmp.Compare(a.bytes, b.bytes) })

	// Runs of equal keys: sort them by what follows.
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

// at returns eight bytes of the lower case of a name, the first one highest, with zeros
// after its end: no name has a zero.
func (s *nameSorter) at(number uint32, depth int) uint64 {
	name := s.t.name(number)
	if len(s.low) > 0 {
		if low, ok := s.low[number]; ok {
			return head(low[min(depth, len(low)):])
		}
	}
	return lower8(head(name[min(depth, len(name)):]))
}

// head returns the first eight bytes of b as a number: the numbers sort as the bytes do.
func head(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var v uint64
	for i, c := range b {
		v |= uint64(c) << (56 - 8*i)
	}
	return v
}

// lower8 converts eight ASCII bytes to lower case. In each byte, the top bit of fromA is set if it
// is at least 'A', and that of behindZ if it is beyond 'Z'. For letters between them, 0x80 >> 2 is
// the bit 0x20 to set.
func lower8(v uint64) uint64 {
	const ones = 0x0101010101010101
	fromA, behindZ := v+ones*(0x80-'A'), v+ones*(0x80-'Z'-1)
	return v | (fromA&^behindZ&(ones*0x80))>>2
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
