package match

import (
	"bytes"
	"encoding/binary"
	"regexp/syntax"
	"unicode"
	"unicode/utf8"
)

// An elem is one byte or one folded rune of a literal.
type elem struct {
	b, fold byte     // in lower case with fold bits if both cases match
	alts    [][]byte // instead of a byte: all matching encodings, if they differ in more than one bit
}

// A literal finds one sequence of bytes. With folding it ignores case.
//
// Its core is a run of bytes with a fixed length. The kernel finds the rarest pair of bytes in the
// core. Then matchAround compares the whole core, and the elems on both sides of it. The core ends
// at a letter such as k, which may also be the Kelvin sign of three bytes.
//
//	"disk" with fold     core "di"; right s and k, each with its form beyond ASCII
type literal struct {
	core   []byte         // in lower case where fold is set
	fold   []byte         // or-ed to the text before it is compared with core: 0x20 for a letter
	words  []word         // of the core
	left   []elem         // before the core
	right  []elem         // after it
	before syntax.EmptyOp // assertions around the match
	after  syntax.EmptyOp

	// If the literal begins with ^ or ends with $, scan is the core with a newline before or after
	// it. The kernel finds scan instead of the core, because it is much rarer.
	scan          *literal
	newlineBefore int // length of the newline with which scan begins: 1, or 0 without ^

	pair   pair
	o1, o2 int     // offsets of the pair in the core
	chance float64 // probability that the pair is at a given byte
}

// word is up to eight bytes of a core: they match if (text | fold) & keep == want.
type word struct {
	at               int
	want, fold, keep uint64
}

// elemsOf returns the elems of a literal. With fold they match any case.
func elemsOf(s string, fold bool) []elem {
	var out []elem
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if !fold || r == utf8.RuneError && n == 1 || unicode.SimpleFold(r) == r {
			// This letter has no other case, or the byte is no letter.
			for _, b := range []byte(s[:n]) {
				out = append(out, elem{b: b})
			}
		} else {
			out = append(out, foldedElem(r))
		}

		s = s[n:]
	}
	return out
}

// foldedElem returns an elem for r in every case. A letter with two cases of one byte each becomes
// a byte with a fold bit. For any other rune it lists the encodings of all cases.
func foldedElem(r rune) elem {
	e := elem{alts: [][]byte{[]byte(string(r))}}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		e.alts = append(e.alts, []byte(string(f)))
	}
	if len(e.alts) == 2 && len(e.alts[0]) == 1 && len(e.alts[1]) == 1 {
		return elem{b: e.alts[0][0] | 0x20, fold: 0x20}
	}
	return e
}

// newLiteral returns a literal whose core has the rarest pair. It returns nil if no elem has a
// fixed length.
func newLiteral(elems []elem) *literal {
	var best *literal
	for i := 0; i < len(elems); i++ {
		if elems[i].alts != nil {
			continue
		}

		n := i
		l := &literal{}
		for ; n < len(elems) && elems[n].alts == nil; n++ {
			l.core = append(l.core, elems[n].b)
			l.fold = append(l.fold, elems[n].fold)
		}

		// Keep the core with the rarest pair.
		l.left, l.right = elems[:i], elems[n:]
		l.choosePair()
		if best == nil || l.chance < best.chance {
			best = l
		}
		i = n
	}

	if best != nil {
		best.splitWords()
	}
	return best
}

// choosePair chooses the rarest pair of bytes in the core. A pair is more frequent than the product
// of the frequencies of its bytes: by estimate four times for neighbours, else twice.
func (l *literal) choosePair() {
	n := min(len(l.core), maxReach)

	// Find the rarest pair (i, j) with i < j. A core of one byte has only the pair (0, 0).
	l.chance = 2
	for i := range n {
		for j := range n {
			c := chance(l.core[i], l.fold[i])
			switch {
			case j < i || j == i && n > 1:
				continue
			case j-i == 1:
				c *= min(1, 4*chance(l.core[j], l.fold[j]))
			case j > i:
				c *= min(1, 2*chance(l.core[j], l.fold[j]))
			}

			if c < l.chance {
				l.chance, l.o1, l.o2 = c, i, j
			}
		}
	}

	l.pair = pair{l.core[l.o1], l.fold[l.o1], l.core[l.o2], l.fold[l.o2]}
}

// splitWords splits the core into words. The last one overlaps the one before: "abcdefghij" becomes
// abcdefgh and cdefghij.
func (l *literal) splitWords() {
	for at := 0; at < len(l.core); at += 8 {
		// Move the last word back, so that it ends with the core. Then the loop ends.
		if at+8 > len(l.core) && at > 0 {
			at = len(l.core) - 8
		}

		w := word{at: at}
		for i := range min(8, len(l.core)-at) {
			w.want |= uint64(l.core[at+i]) << (8 * i)
			w.fold |= uint64(l.fold[at+i]) << (8 * i)
			w.keep |= 0xFF << (8 * i)
		}
		l.words = append(l.words, w)
	}
}

// requireWords makes the literal match only at the start or the end of a word.
func (l *literal) requireWords(o Options) {
	if o.WordBegins {
		l.before |= clearBefore
	}
	if o.WordEnds {
		l.after |= clearBehind
	}
}

// setScan sets l.scan and l.newlineBefore if l has ^ or $. l.before and l.after must be set.
func (l *literal) setScan() {
	// The distance of the newline from the core must be fixed.
	if len(l.left)+len(l.right) > 0 {
		return
	}
	newline := elem{b: '\n'}
	var elems []elem
	if l.before&syntax.EmptyBeginLine != 0 {
		elems, l.newlineBefore = append(elems, newline), 1
	}

	for i, b := range l.core {
		elems = append(elems, elem{b: b, fold: l.fold[i]})
	}
	if l.after&syntax.EmptyEndLine != 0 {
		elems = append(elems, newline)
	}

	if len(elems) > len(l.core) {
		l.scan = newLiteral(elems)
	}
}

// reach returns how many bytes after its last block fill reads.
func (l *literal) reach() int {
	if l.scan != nil {
		l = l.scan
	}
	return max(l.o1, l.o2)
}

// fill implements finder: it finds the pairs in some blocks.
func (l *literal) fill(c *cursor, src []byte, blocks int, _ bool) uint64 {
	if l.scan != nil {
		l = l.scan
	}
	return findPairs(&c.bits, src[l.o1:], src[l.o2:], blocks, &l.pair)
}

// next returns the first match that starts at from or later. c is a cursor over the candidates of
// l.
func (l *literal) next(c *cursor, from int) (start, end int, ok bool) {
	// With ^, a match at the start of the text has no newline before it, so the cursor misses it.
	if l.newlineBefore > 0 && from == 0 {
		if start, end, ok = l.matchAround(c.text, 0, 0); ok {
			return start, end, true
		}
	}

	for at := c.next(max(0, from-l.newlineBefore)); at >= 0; at = c.next(at + 1) {
		if start, end, ok = l.matchAround(c.text, at+l.newlineBefore, from); ok {
			return start, end, true
		}
	}
	return 0, 0, false
}

// matchAround returns the match whose core is at offset at; false if there is none that starts at
// from or later.
func (l *literal) matchAround(text []byte, at, from int) (start, end int, ok bool) {
	if !l.hasCore(text, at) {
		return 0, 0, false
	}

	start, end = at, at+len(l.core)
	for i := len(l.left) - 1; i >= 0; i-- {
		n := l.left[i].matchSuffix(text[from:start])
		if n == 0 {
			return 0, 0, false
		}
		start -= n
	}

	for i := range l.right {
		n := l.right[i].matchPrefix(text[end:])
		if n == 0 {
			return 0, 0, false
		}
		end += n
	}
	return start, end, l.before|l.after == 0 || holds(text, start, l.before) && holds(text, end, l.after)
}

// hasCore reports whether the core is at an offset. An empty core is not at the end of the text,
// because an empty line ends with a newline.
func (l *literal) hasCore(text []byte, at int) bool {
	if len(text)-at < max(1, len(l.core)) {
		return false
	}

	// Words read eight bytes, even for a shorter core.
	if len(l.core) < 8 && len(text)-at < 8 {
		for i, b := range l.core {
			if text[at+i]|l.fold[i] != b {
				return false
			}
		}
		return true
	}

	for i := range l.words {
		w := &l.words[i]
		if (binary.LittleEndian.Uint64(text[at+w.at:])|w.fold)&w.keep != w.want {
			return false
		}
	}
	return true
}

// matchPrefix returns how many bytes at the start of text match e; 0 for none.
func (e *elem) matchPrefix(text []byte) int {
	if e.alts == nil {
		if len(text) > 0 && text[0]|e.fold == e.b {
			return 1
		}
		return 0
	}

	// No encoding of UTF-8 begins with another one, so at most one of them matches.
	for _, a := range e.alts {
		if bytes.HasPrefix(text, a) {
			return len(a)
		}
	}
	return 0
}

// matchSuffix returns how many bytes at the end of text match e; 0 for none.
func (e *elem) matchSuffix(text []byte) int {
	if e.alts == nil {
		if n := len(text); n > 0 && text[n-1]|e.fold == e.b {
			return 1
		}
		return 0
	}

	// No encoding ends with another one either.
	for _, a := range e.alts {
		if bytes.HasSuffix(text, a) {
			return len(a)
		}
	}
	return 0
}

// holds reports whether all assertions in op hold at an offset.
func holds(text []byte, at int, op syntax.EmptyOp) bool {
	if op == 0 {
		return true
	}

	before, after := runeBefore(text, at), runeAt(text, at)
	if op&clearBefore != 0 && IsWord(before) || op&clearBehind != 0 && IsWord(after) {
		return false
	}
	return op&^(clearBefore|clearBehind)&^syntax.EmptyOpContext(before, after) == 0
}

// literalOf returns re as a literal; nil if it is another expression. A literal has assertions only
// at its ends.
func literalOf(re *syntax.Regexp) *literal {
	var elems []elem
	var before, after syntax.EmptyOp // assertions

	// Allow only assertions in front, then literals, then assertions at the end.
	for _, sub := range flatten(re) {
		if op := emptyOp(sub); op != 0 {
			if len(elems) == 0 {
				before |= op
			} else {
				after |= op
			}
			continue
		}

		if sub.Op != syntax.OpLiteral || after != 0 {
			return nil
		}

		for _, r := range sub.Rune {
			if r == utf8.RuneError || !utf8.ValidRune(r) {
				return nil // it also matches broken bytes
			}
		}
		elems = append(elems, elemsOf(string(sub.Rune), sub.Flags&syntax.FoldCase != 0)...)
	}

	// An empty line is the only literal without a byte.
	if len(elems) == 0 && before == syntax.EmptyBeginLine|syntax.EmptyEndLine {
		return emptyLine()
	}

	l := newLiteral(elems)
	if l != nil {
		l.before, l.after = before, after
		l.setScan()
	}
	return l
}

// emptyLine returns a literal that finds empty lines: the offset between two newlines, and the
// start of a text that begins with a newline. There is no line after the last newline.
func emptyLine() *literal {
	newline := elem{b: '\n'}
	return &literal{
		before:        syntax.EmptyBeginLine | syntax.EmptyEndLine,
		newlineBefore: 1, scan: newLiteral([]elem{newline, newline}),
	}
}

// flatten returns the parts of a concatenation, including those inside groups.
func flatten(re *syntax.Regexp) []*syntax.Regexp {
	switch re.Op {
	case syntax.OpCapture:
		return flatten(re.Sub[0])
	case syntax.OpEmptyMatch:
		return nil

	case syntax.OpConcat:
		// A nested concatenation comes from a group: `(foo)(bar)` is one literal.
		var out []*syntax.Regexp
		for _, sub := range re.Sub {
			out = append(out, flatten(sub)...)
		}
		return out
	}
	return []*syntax.Regexp{re}
}

// emptyOp returns the assertion that re is; 0 if it is none.
func emptyOp(re *syntax.Regexp) syntax.EmptyOp {
	switch re.Op {
	case syntax.OpBeginLine:
		return syntax.EmptyBeginLine
	case syntax.OpEndLine:
		return syntax.EmptyEndLine

	case syntax.OpBeginText:
		return syntax.EmptyBeginText
	case syntax.OpEndText:
		return syntax.EmptyEndText

	case syntax.OpWordBoundary:
		return syntax.EmptyWordBoundary
	case syntax.OpNoWordBoundary:
		return syntax.EmptyNoWordBoundary
	}
	return 0
}
