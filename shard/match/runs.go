package match

import "regexp/syntax"

// runs finds runs of bytes of one set: `[0-9]{8}`, `[A-Z]{20,}`, `\w+`.
type runs struct {
	set    byteSet
	least  int
	most   int // -1 means no limit
	filter int // fill searches for runs of this length
}

// runsOf returns re as runs; nil if it is something else.
func runsOf(re *syntax.Regexp) *runs {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}

	r := &runs{least: 1, most: 1}
	lazy := re.Flags&syntax.NonGreedy != 0

	// Find how often the class may repeat.
	switch re.Op {
	case syntax.OpPlus:
		r.most = -1
	case syntax.OpRepeat:
		r.least, r.most = re.Min, re.Max
	case syntax.OpCharClass:
		lazy = false
	default:
		return nil
	}

	// The class must be ASCII and repeat at least once.
	class := re
	if re.Op != syntax.OpCharClass {
		class = re.Sub[0]
	}

	if lazy {
		r.most = r.least
	}
	if class.Op != syntax.OpCharClass || r.least < 1 {
		return nil
	}

	// Add the members of the class.
	for i := 0; i+1 < len(class.Rune); i += 2 {
		if class.Rune[i+1] >= 0x80 {
			return nil
		}
		for b := class.Rune[i]; b <= class.Rune[i+1]; b++ {
			r.set.add(byte(b))
		}
	}

	r.filter = min(r.least, 64)
	return r
}

func (r *runs) reach() int { return 64 }

// fill finds where r.filter bytes of the set are in a row.
func (r *runs) fill(c *cursor, src []byte, blocks int, _ bool) (any uint64) {
	dst := &c.bits

	some := findSet(dst, src, blocks, &r.set)
	if r.filter == 1 {
		return some
	}

	var extra [64]uint64
	findSet(&extra, src[64*blocks:], 1, &r.set)
	for k := range blocks {
		// A row may continue in the next word.
		next := extra[0]
		if k+1 < blocks {
			next = dst[k+1]
		}
		w := row(dst[k], next, r.filter)

		dst[k] = w
		if w != 0 {
			any |= 1 << k
		}
	}
	return any
}

// row returns the bits of a at which n ones in a row begin. b is the word after a; n is 1 to 64.
// The length doubles with each step: 1, 2, 4 and so on.
func row(a, b uint64, n int) uint64 {
	for have := 1; have < n && a != 0; {
		by := min(have, n-have)
		a &= a>>by | b<<(64-by)
		b &= b >> by
		have += by
	}
	return a
}

// next returns the first match that starts at from or later.
func (r *runs) next(c *cursor, from int) (start, end int, ok bool) {
	for at := c.next(from); at >= 0; at = c.next(at + 1) {
		// The window shows only that r.filter bytes are here: count how many there are.
		end := at
		stop := len(c.text)
		if r.most >= 0 {
			stop = min(stop, at+r.most)
		}
		for end < stop && r.set.has(c.text[end]) {
			end++
		}

		if end-at >= r.least {
			return at, end, true
		}
	}
	return 0, 0, false
}
