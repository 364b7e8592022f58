package match

import "regexp/syntax"

// runs finds runs of bytes of one set: `[0-9]{8}`, `[A-Z]{20,}`, `\w+`.
type runs struct {
	set       byteSet
	minLength int // length of the shortest run
	maxLength int // length of the longest match; -1 means no limit
	filter    int // fill searches for runs of this length, which is at most 64
}

// runsOf returns re as runs; nil if it is another expression.
func runsOf(re *syntax.Regexp) *runs {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}

	r := &runs{minLength: 1, maxLength: 1}
	lazy := re.Flags&syntax.NonGreedy != 0

	// Find how often the class may repeat.
	switch re.Op {
	case syntax.OpPlus:
		r.maxLength = -1
	case syntax.OpRepeat:
		r.minLength, r.maxLength = re.Min, re.Max
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
		r.maxLength = r.minLength
	}
	if class.Op != syntax.OpCharClass || r.minLength < 1 {
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

	r.filter = min(r.minLength, 64)
	return r
}

func (r *runs) reach() int { return 64 }

// fill implements finder: it finds each byte at which r.filter bytes of the set begin.
func (r *runs) fill(c *cursor, src []byte, blocks int, _ bool) (any uint64) {
	dst := &c.bits
	nonzero := findSet(dst, src, blocks, &r.set)
	if r.filter == 1 {
		return nonzero
	}

	// A run may continue in the next word, which for the last block is in after.
	var after [64]uint64
	findSet(&after, src[64*blocks:], 1, &r.set)
	for k := range blocks {
		next := after[0]
		if k+1 < blocks {
			next = dst[k+1]
		}
		w := findRuns(dst[k], next, r.filter)

		dst[k] = w
		if w != 0 {
			any |= 1 << k
		}
	}
	return any
}

// findRuns returns the bits of a at which n ones in a row begin. b is the word after a; n is 1 to
// 64. Each step doubles the length of the rows that remain: 1, 2, 4 and so on.
func findRuns(a, b uint64, n int) uint64 {
	for length := 1; length < n && a != 0; {
		by := min(length, n-length)
		a &= a>>by | b<<(64-by)
		b &= b >> by
		length += by
	}
	return a
}

// next returns the first match that starts at from or later.
func (r *runs) next(c *cursor, from int) (start, end int, ok bool) {
	for at := c.next(from); at >= 0; at = c.next(at + 1) {
		// At least r.filter bytes of the set are here: count how many there are.
		end := at
		limit := len(c.text)
		if r.maxLength >= 0 {
			limit = min(limit, at+r.maxLength)
		}
		for end < limit && r.set.has(c.text[end]) {
			end++
		}

		if end-at >= r.minLength {
			return at, end, true
		}
	}
	return 0, 0, false
}
