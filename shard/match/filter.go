package match

import "bytes"

// Prices in nanoseconds, measured: of a kernel per byte, and of a look at a
// candidate's line.
const (
	priceLook   = 120
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

// A filter finds the places where a match may be: the ends of matches as a
// program has them, or the strings of a need.
type filter struct {
	need
	lines    bool    // matches hold no newline
	alphabet byteSet // the bytes that matches hold

	program *program
	one     *literal // when there is but one string
	many    []*literal
	tables  [3]nibbles
	at      int // of the three bytes in the strings
}

// filterOf returns the cheapest filter for p, or nil.
func filterOf(p *plan) *filter {
	if p.empty {
		return nil
	}
	re := p.re.Simplify()
	n, price := needOf(re)
	if n != nil && price < priceOne+0.2 {
		return newFilter(n, p)
	}
	if prog := programOf(re); prog != nil && (n == nil || prog.price() < price) {
		return &filter{need: need{before: -1}, program: prog, lines: !p.crosses, alphabet: alphabet(re)}
	}
	if n == nil || price > 3 {
		return nil
	}
	return newFilter(n, p)
}

func newFilter(n *need, p *plan) *filter {
	f := &filter{need: *n, lines: !p.crosses, alphabet: alphabet(p.re)}
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
	switch {
	case f.program != nil:
		return f.program.reach()
	case f.one != nil:
		return f.one.reach()
	}
	return f.at + 2
}

func (f *filter) fill(c *cursor, src []byte, blocks int, follows bool) uint64 {
	switch {
	case f.program != nil:
		return f.program.fill(c, src, blocks, follows)
	case f.one != nil:
		return f.one.fill(c, src, blocks, follows)
	}
	return findTriples(&c.bits, src[f.at:], blocks, &f.tables)
}

// next returns a place that the first match from a place on holds or begins
// after, or -1 if there is none. c walks the candidates of f.
func (f *filter) next(c *cursor, from int) int {
	if f.program != nil {
		at := c.next(from)
		if at == from {
			at = c.next(from + 1)
		}
		if at > len(c.text) {
			return -1 // a match that holds newlines after the end
		}
		return max(-1, at-1)
	}
	shift := 0
	if f.lead {
		shift = 1
		if from == 0 && f.first(c.text) {
			return 0
		}
	}
	for at := c.next(max(0, from-shift)); at >= 0; at = c.next(at + 1) {
		if f.verify(c.text, at) {
			return at + shift
		}
	}
	if f.trail {
		return f.last(c.text, from)
	}
	return -1
}

// first reports whether text begins with a string of f, but for its newline.
func (f *filter) first(text []byte) bool {
	for _, s := range f.strings {
		if n := matchAt(s[1:], text); n == len(s)-1 || f.trail && n == len(s)-2 && n == len(text) {
			return true
		}
	}
	return false
}

// last returns the place from a place on of a string of f that ends the text
// instead of standing before a newline, or -1.
func (f *filter) last(text []byte, from int) int {
	shift := 0
	if f.lead {
		shift = 1
	}
	least := -1
	for _, s := range f.strings {
		n := len(s) - 1
		at := len(text) - n
		if at >= 0 && at+shift >= from && matchAt(s[:n], text[at:]) == n && (least < 0 || at+shift < least) {
			least = at + shift
		}
	}
	return least
}

// matchAt returns how many of s stand at the start of text.
func matchAt(s []elem, text []byte) int {
	for i, e := range s {
		if i >= len(text) || text[i]|e.fold != e.b {
			return i
		}
	}
	return len(s)
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

// lowest returns a place at or before the start of any match that goes on to
// at, and not before lo: as far back as the bytes could belong to one.
func (f *filter) lowest(text []byte, lo, at int) int {
	low := at
	switch {
	case f.lines:
		low = lo + bytes.LastIndexByte(text[lo:at], '\n') + 1
	case f.before < 0:
		for low > lo && f.alphabet.has(text[low-1]) {
			low--
		}
	default:
		low = lo
	}
	if f.before >= 0 {
		low = max(low, boundary(text, lo, at-f.before))
	}
	return low
}
