package match

import "bytes"

// Prices in nanoseconds, measured: of a kernel per byte, and of a look at a
// candidate's line.
const (
	priceLook   = 60
	priceOne    = 0.04
	priceTriple = 0.07
)

// price estimates what it takes to find the places of n, per byte of text.
func (n *need) price() float64 {
	if len(n.strings) == 1 {
		return priceOne + priceLook*newLiteral(n.strings[0]).chance
	}
	_, c := window(n.strings)
	return priceTriple + priceLook*c
}

// window returns the place in strings at which three bytes in a row are
// rarest, taken together, and their chance.
func window(strings [][]elem) (at int, least float64) {
	shortest := maxBytes
	for _, s := range strings {
		shortest = min(shortest, len(s))
	}
	least = 2
	for o := 0; o == 0 || o+3 <= shortest; o++ {
		sum := 0.0
		for _, s := range strings {
			c := 1.0
			for i, e := range s[o:min(len(s), o+3)] {
				f := chance(e.b, e.fold)
				if i > 0 {
					f = min(1, 3*f)
				}
				c *= f
			}
			sum += c
		}
		if sum < least {
			at, least = o, sum
		}
	}
	return at, least
}

// A filter finds the places where a match may be: those of a need.
type filter struct {
	need
	one    *literal // when there is but one string
	many   []*literal
	tables [3]nibbles
	at     int // of the three bytes in the strings
}

func newFilter(n *need) *filter {
	f := &filter{need: *n}
	if len(n.strings) == 1 {
		f.one = newLiteral(n.strings[0])
		return f
	}
	f.at, _ = window(n.strings)
	for i, s := range n.strings {
		f.many = append(f.many, newLiteral(s))
		bucket := byte(1) << (i % 8)
		for k := range f.tables {
			t := &f.tables[k]
			if f.at+k >= len(s) {
				for i := range t.lo {
					t.lo[i] |= bucket
					t.hi[i] |= bucket
				}
				continue
			}
			e := s[f.at+k]
			t.add(e.b, bucket)
			t.add(e.b&^e.fold, bucket)
		}
	}
	return f
}

func (f *filter) reach() int {
	if f.one != nil {
		return f.one.reach()
	}
	return f.at + 2
}

func (f *filter) fill(dst *[64]uint64, src []byte, blocks int) uint64 {
	if f.one != nil {
		return f.one.fill(dst, src, blocks)
	}
	return findTriples(dst, src[f.at:], blocks, &f.tables)
}

// next returns the first place at from or later where a match could hold
// its string, or -1. c walks the candidates of f.
func (f *filter) next(c *cursor, from int) int {
	shift := 0
	if f.lead {
		shift = 1
		if from == 0 || bytes.IndexByte(c.text[:from], '\n') < 0 && from < len(c.text) {
			return from // the first line has no newline before it
		}
	}
	for at := c.next(from - shift); at >= 0; at = c.next(at + 1) {
		if f.verify(c.text, at) {
			return at + shift
		}
	}
	if f.trail && len(c.text) > 0 {
		last := max(from, bytes.LastIndexByte(c.text, '\n')+1)
		if last < len(c.text) {
			return last // the last line has none after it
		}
	}
	return -1
}

func (f *filter) verify(text []byte, at int) bool {
	if f.one != nil {
		return f.one.equal(text, at)
	}
	for _, l := range f.many {
		if l.equal(text, at) {
			return true
		}
	}
	return false
}
