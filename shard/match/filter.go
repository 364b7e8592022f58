package match

import "bytes"

// Measured costs in nanoseconds.
const (
	priceLook   = 120  // to run the automaton over the line of a candidate
	priceOne    = 0.04 // to search one byte of text for one string
	priceTriple = 0.07 // to search one byte of text for several strings
	priceBest   = 0.24 // no program takes less for one byte of text
	priceMost   = 3    // the automaton alone takes less for one byte of text
)

// estimatePrice estimates the cost of a need for each byte of text: finding candidates and checking
// them.
func (n *need) estimatePrice() float64 {
	if len(n.strings) == 1 {
		return priceOne + priceLook*newLiteral(n.strings[0]).chance
	}
	_, c := rarestTriple(n.strings)
	return priceTriple + priceLook*c
}

// rarestTriple returns the offset in the strings at which the three bytes of all strings together
// are rarest, and the probability that one of these triples is at a given byte of text.
func rarestTriple(strings [][]elem) (at int, least float64) {
	shortest := maxBytes
	for _, s := range strings {
		shortest = min(shortest, len(s))
	}

	least = 2
	for o := 0; o == 0 || o+3 <= shortest; o++ {
		sum := 0.0

		// Add the products over the three bytes of each string.
		for _, s := range strings {
			c := 1.0
			for i, e := range s[o:min(len(s), o+3)] {
				f := chance(e.b, e.fold)
				if i > 0 { // neighbours occur together more often than by chance
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

// A filter finds candidates: places where a match may be. It has either a program, which finds the
// ends of matches, or a kernel, which finds the strings of a need.
type filter struct {
	need
	lines    bool    // no match contains a newline
	alphabet byteSet // the bytes that matches contain

	program *program
	one     *literal   // the only string of the need
	many    []*literal // the strings of the need, if there are several
	tables  [3]nibbles // for many: by three bytes in a row, the buckets of strings that may have them
	at      int        // offset of these bytes in the strings
}

// chooseFilter returns the cheapest filter for p; nil if searching without a filter is cheaper.
func chooseFilter(p *plan) *filter {
	if p.empty {
		return nil
	}
	re := p.re.Simplify()
	n, price := needOf(re)

	// No program can be cheaper than priceBest.
	if n != nil && price < priceBest {
		return newFilter(n, p)
	}

	if prog := programOf(re); prog != nil && (n == nil || prog.estimatePrice() < price) {
		return &filter{need: need{before: -1}, program: prog, lines: !p.crosses, alphabet: alphabet(re)}
	}

	if n == nil || price > priceMost {
		return nil
	}
	return newFilter(n, p)
}

// newFilter returns a filter for texts that contain one of the strings that n needs.
func newFilter(n *need, p *plan) *filter {
	f := &filter{need: *n, lines: !p.crosses, alphabet: alphabet(p.re)}
	if len(n.strings) == 1 {
		f.one = newLiteral(n.strings[0])
		return f
	}

	f.at, _ = rarestTriple(n.strings)
	for i, s := range n.strings {
		f.many = append(f.many, newLiteral(s))

		// Put the string into one of eight buckets. At positions after its end, any byte fits.
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

// reach returns how many bytes after an offset fill reads to decide whether it is a candidate.
func (f *filter) reach() int {
	switch {
	case f.program != nil:
		return f.program.reach()
	case f.one != nil:
		return f.one.reach()
	}
	return f.at + 2
}

// fill implements finder: it sets a bit of c.bits for each candidate in the next blocks of src. Bit
// k of the result says that block k has a candidate.
func (f *filter) fill(c *cursor, src []byte, blocks int, follows bool) uint64 {
	switch {
	case f.program != nil:
		return f.program.fill(c, src, blocks, follows)
	case f.one != nil:
		return f.one.fill(c, src, blocks, follows)
	}
	return findTriples(&c.bits, src[f.at:], blocks, &f.tables)
}

// next returns an offset in the first match that begins at from or later, or directly before that
// match; -1 if there is none. c is the cursor of f's candidates.
func (f *filter) next(c *cursor, from int) int {
	// A program finds the end of a match. Return the byte before it, which is in the match.
	if f.program != nil {
		at := c.next(from)
		if at == from {
			at = c.next(from + 1)
		}
		if at > len(c.text) {
			return -1 // the match would contain the newlines that the cursor adds after the text
		}
		return max(-1, at-1)
	}

	shift := 0
	if f.lead {
		shift = 1
		if from == 0 && f.matchesStart(c.text) {
			return 0
		}
	}

	for at := c.next(max(0, from-shift)); at >= 0; at = c.next(at + 1) {
		if f.matchesAt(c.text, at) {
			return at + shift
		}
	}

	if f.trail {
		return f.findAtEnd(c.text, from)
	}
	return -1
}

// matchesStart reports whether text begins with one of f's strings, if a newline is assumed before
// it.
func (f *filter) matchesStart(text []byte) bool {
	for _, s := range f.strings {
		if n := countMatching(s[1:], text); n == len(s)-1 || f.trail && n == len(s)-2 && n == len(text) {
			return true
		}
	}
	return false
}

// findAtEnd returns the least offset, from an offset on, at which one of f's strings matches up to
// the end of the text, if a newline is assumed after it. It returns -1 if there is none.
func (f *filter) findAtEnd(text []byte, from int) int {
	shift := 0
	if f.lead {
		shift = 1
	}

	// Of several matching strings, choose the one that begins first.
	least := -1
	for _, s := range f.strings {
		n := len(s) - 1
		at := len(text) - n
		if at >= 0 && at+shift >= from && countMatching(s[:n], text[at:]) == n && (least < 0 || at+shift < least) {
			least = at + shift
		}
	}
	return least
}

// countMatching returns how many elems of s the text begins with.
func countMatching(s []elem, text []byte) int {
	for i, e := range s {
		if i >= len(text) || text[i]|e.fold != e.b {
			return i
		}
	}
	return len(s)
}

// matchesAt reports whether a string of f is at an offset.
func (f *filter) matchesAt(text []byte, at int) bool {
	if f.one != nil {
		return f.one.hasCore(text, at)
	}
	for _, l := range f.many {
		if l.hasCore(text, at) {
			return true
		}
	}
	return false
}

// earliestStart returns the offset at which the automaton must start for the candidate at offset at;
// at least lo. No match that contains the candidate or ends there starts before that offset.
func (f *filter) earliestStart(text []byte, lo, at int) int {
	low := at
	switch {
	case f.lines:
		low = lo + bytes.LastIndexByte(text[lo:at], '\n') + 1

	// Without a limit, go back over all bytes that a match may contain.
	case f.before < 0:
		for low > lo && f.alphabet.has(text[low-1]) {
			low--
		}
	default:
		low = lo
	}

	// The automaton must not start inside a rune: it would read the rest as broken bytes.
	if f.before >= 0 {
		low = max(low, runeStart(text, lo, at-f.before))
	}
	return low
}
