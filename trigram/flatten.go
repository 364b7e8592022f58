package trigram

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// First a regular expression becomes alternatives of sequences. The elements of a sequence are
//
//	byte     one byte of a set
//	gap      any number of bytes of a set
//	alt      one of several sequences, if multiplying out would cost too much
//	bol      a newline or the start of the document, not consumed
//	eol      a newline or the end of the document, not consumed; a carriage return may be
//
// A repetition x+ becomes a gap and then x, so that x is next to what follows it.
type elemKind uint8

const (
	elemByte elemKind = iota
	elemGap
	elemAlt
	elemBOL
	elemEOL
)

// elem is an element of a sequence.
type elem struct {
	kind    elemKind
	special bool // U+212A or U+017F may stand for a member of the set
	set     byteSet
	alts    []seq
	weight  int // number of elements in alts
}

// seq is a sequence of elements.
type seq []elem

const (
	maxAlts   = 64   // alternatives after multiplying out
	maxWeight = 4096 // elements of all alternatives together
	maxCopies = 64   // copies made of a counted repetition
)

// hasFixedLength reports whether all matches of the sequence have the same length: it has no gap
// and no alternative, and a line end only at its end, because elsewhere that may be one byte or
// two.
func (s seq) hasFixedLength() bool {
	ended := false
	for _, e := range s {
		if e.kind == elemGap || e.kind == elemAlt || ended && e.kind != elemEOL {
			return false
		}
		ended = ended || e.kind == elemEOL
	}
	return true
}

// beginsWithCondition reports whether the first condition of the sequence begins at the first byte
// of a match.
func (s seq) beginsWithCondition() bool {
	// An anchor at the edge becomes a newline, which is a byte like any other.
	s = s.replaceAnchors(true)

	n := 0
	for n < len(s) && s[n].kind == elemByte {
		n++
	}

	if n == 0 {
		return false
	}

	// As in byteConditions, the first condition must be about the first byte.
	run, at := s.bestRun(0, min(n, maxFactor-2))
	return s.makeFactor(0, min(n, maxFactor)) != nil || run != nil && at == 0
}

// bytesOf returns all bytes that matches may contain.
func bytesOf(alts []seq) (set byteSet) {
	for _, s := range alts {
		for _, e := range s {
			set = set.or(e.set)
		}
	}
	return set
}

// makeGap returns a gap that matches any number of the alternatives in a row.
func makeGap(alts []seq) elem {
	g := elem{kind: elemGap, set: bytesOf(alts)}
	for _, s := range alts {
		for _, e := range s {
			g.special = g.special || e.special
		}
	}
	return g
}

// makeAlt returns one element that matches any of the alternatives. It is a gap if the alternatives
// have more than maxWeight elements, because each use of the element processes them again.
func makeAlt(alts []seq) elem {
	a := makeGap(alts)
	if w := countElems(alts); w <= maxWeight {
		a.kind, a.alts, a.weight = elemAlt, alts, w
	}
	return a
}

// countElems counts the elements of sequences, including nested ones.
func countElems(alts []seq) int {
	n := 0
	for _, s := range alts {
		n++
		for _, e := range s {
			n += 1 + e.weight
		}
	}
	return n
}

// flattener turns an expression into alternatives of sequences.
type flattener struct {
	fold       bool // ignore case
	lineBreaks int  // line breaks so far, which flattenClass counts
}

// flatten returns the alternatives of an expression, for example
//
//	(a|b)c+     a (gap of c) c    and    b (gap of c) c
//
// It returns nil if the expression matches nothing.
func (f *flattener) flatten(re *syntax.Regexp) []seq {
	switch re.Op {
	// These match one rune, or several in a row.
	case syntax.OpNoMatch:
		return nil
	case syntax.OpLiteral:
		chars := make([]char, len(re.Rune))
		for i, r := range re.Rune {
			chars[i].r = r
		}
		return f.flattenLiteral(chars, f.fold || re.Flags&syntax.FoldCase != 0)

	case syntax.OpCharClass:
		if len(re.Rune) == 0 {
			return nil
		}
		return f.flattenClass(classElems(re.Rune, f.fold))
	case syntax.OpAnyCharNotNL:
		return []seq{classElems([]rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune}, false)}
	case syntax.OpAnyChar:
		return f.flattenClass(classElems([]rune{0, unicode.MaxRune}, false))

	// Anchors consume nothing.
	case syntax.OpBeginLine, syntax.OpBeginText:
		return []seq{{{kind: elemBOL}}}
	case syntax.OpEndLine, syntax.OpEndText:
		return []seq{{{kind: elemEOL, set: carriageReturn()}}}

	// A group is its content.
	case syntax.OpCapture:
		return f.flatten(re.Sub[0])

	// Repetitions become gaps with copies next to them.
	case syntax.OpStar:
		return []seq{{makeGap(f.flatten(re.Sub[0]))}}
	case syntax.OpPlus:
		x := f.flattenRepeated(re.Sub[0])
		return product([]seq{{makeGap(x)}}, x)
	case syntax.OpQuest:
		return union([]seq{{}}, f.flatten(re.Sub[0]))
	case syntax.OpRepeat:
		return f.flattenRepeat(re)

	// Combine the parts in every way. Beyond their limits product and union merge alternatives into
	// gaps, which finds more candidates, never fewer.
	case syntax.OpConcat:
		all := []seq{{}}
		for _, sub := range re.Sub {
			all = product(all, f.flatten(sub))
		}
		return all
	case syntax.OpAlternate:
		var all []seq
		for _, sub := range re.Sub {
			all = union(all, f.flatten(sub))
		}
		return all
	}
	return []seq{{}} // OpEmptyMatch and word boundaries consume nothing
}

// maxBreaks is how many line breaks of an expression become two alternatives, "\n" and "\r\n". A
// later line break becomes a gap of "\r" and then "\n", which splits its literal.
const maxBreaks = 3

// flattenLiteral returns the sequences of a literal. Its line breaks may be "\n" or "\r\n".
func (f *flattener) flattenLiteral(chars []char, fold bool) []seq {
	all := []seq{{}}
	for len(chars) > 0 {
		n := slices.IndexFunc(chars, func(c char) bool { return c.r == '\n' && !c.raw })
		if n == 0 {
			all, chars = product(all, f.flattenClass(chars[0].elems(false))), chars[1:]
			continue
		}
		if n < 0 {
			n = len(chars)
		}

		var s seq
		for _, c := range chars[:n] {
			s = append(s, c.elems(fold)...)
		}
		all, chars = product(all, []seq{s}), chars[n:]
	}
	return all
}

// flattenClass returns the alternatives for one rune; s has its elements. If the rune may be a
// newline, a "\r" may precede it.
func (f *flattener) flattenClass(s seq) []seq {
	if !s[0].set.has('\n') {
		return []seq{s}
	}

	r := elem{set: carriageReturn()}
	if f.lineBreaks++; f.lineBreaks > maxBreaks {
		r.kind = elemGap
		return []seq{append(seq{r}, s...)}
	}
	var newline elem
	newline.set.add('\n')
	return []seq{s, {r, newline}}
}

// flattenRepeated flattens the body of a repetition. Line breaks in it do not become two
// alternatives, because each copy of the body would multiply them.
func (f *flattener) flattenRepeated(re *syntax.Regexp) []seq {
	before := f.lineBreaks
	f.lineBreaks = maxBreaks
	out := f.flatten(re)
	f.lineBreaks = before
	return out
}

// carriageReturn returns the set of "\r". An anchor $ may consume it, because a line may end in
// "\r\n".
func carriageReturn() (set byteSet) {
	set.add('\r')
	return set
}

// flattenRepeat flattens x{n,m}: a gap of x for the copies that may be missing, then n copies of x.
func (f *flattener) flattenRepeat(re *syntax.Regexp) []seq {
	x := f.flattenRepeated(re.Sub[0])
	if re.Max == 0 {
		return []seq{{}}
	}

	// A gap covers optional copies, and those beyond the limit.
	all := []seq{{}}
	if re.Max != re.Min || re.Min > maxCopies {
		all = []seq{{makeGap(x)}}
	}
	for range min(re.Min, maxCopies) {
		all = product(all, x)
	}
	return all
}

// union returns the alternatives of a and of b. If they have too many elements, it returns one gap
// that matches all of them.
func union(a, b []seq) []seq {
	all := append(a[:len(a):len(a)], b...)
	if countElems(all) > 4*maxWeight {
		return []seq{{makeGap(all)}}
	}
	return all
}

// product returns the alternatives of a followed by b. It combines each of a with each of b. If
// that makes too many alternatives, it first turns those of one side into a single element, and if
// each side is one long sequence, both into gaps.
func product(a, b []seq) []seq {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}

	if len(a) == 1 && len(a[0]) == 0 {
		return b
	}

	if len(a)*len(b) > maxAlts || len(a)*countElems(b)+len(b)*countElems(a) > 2*maxWeight {
		switch {
		case len(a) > 1 && len(a) >= len(b):
			return product([]seq{{makeAlt(a)}}, b)
		case len(b) > 1:
			return product(a, []seq{{makeAlt(b)}})
		}

		// Both are single sequences, and together they are too long.
		return []seq{{makeGap(a), makeGap(b)}}
	}

	all := make([]seq, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			all = append(all, append(x[:len(x):len(x)], y...))
		}
	}
	return all
}

// char is a rune of a literal, or a byte that is not part of a rune.
type char struct {
	r   rune
	raw bool // r is a byte
}

// splitChars splits a literal into chars.
func splitChars(s string) []char {
	var cs []char
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])

		// A literal is compared byte by byte, so a broken byte matches only itself.
		if r == utf8.RuneError && n == 1 {
			cs = append(cs, char{rune(s[i]), true})
		} else {
			cs = append(cs, char{r: r})
		}

		i += n
	}
	return cs
}

// elems returns the elements that match a char. With fold they match every case of it.
func (c char) elems(fold bool) seq {
	if c.raw {
		var e elem
		e.set.add(byte(c.r))
		return seq{e}
	}

	ranges := []rune{c.r, c.r}

	// Add all cases of the rune: SimpleFold walks them in a circle.
	if fold {
		for r := unicode.SimpleFold(c.r); r != c.r; r = unicode.SimpleFold(r) {
			ranges = append(ranges, r, r)
		}
	}
	return classElems(ranges, false)
}

// Two runes beyond ASCII have an ASCII letter as their other case: k and s.
const (
	kelvin = 0x212a
	longS  = 0x017f
)

// maxClassRange is the greatest length of a range beyond ASCII whose runes are listed one by one.
const maxClassRange = 256

// classElems returns the elements that match one rune of a class. ASCII runes become a set of
// bytes. A few other runes become sets if their encodings have one length. Otherwise the elements
// match the ASCII runes of the class and any rune beyond ASCII.
func classElems(ranges []rune, fold bool) seq {
	ascii, others, incomplete := splitClass(ranges)
	special := false
	if fold {
		ascii, others, special = foldClass(ascii, others)
	}

	if !incomplete {
		beyondASCII := others[:0:0]
		for _, r := range others {
			if r == kelvin && ascii.has('k') || r == longS && ascii.has('s') {
				special = true
				continue
			}
			beyondASCII = append(beyondASCII, r)
		}

		if len(beyondASCII) == 0 {
			return seq{{set: ascii, special: special}}
		}
		if s := elemsOfOneLength(beyondASCII); s != nil && ascii == (byteSet{}) && !special {
			return s
		}
	}

	// Match any rune of one to four bytes: its first byte, then a gap for the others.
	first, more := elem{set: ascii}, elem{kind: elemGap}
	first.set.addRange(0x80, 0xff)
	more.set.addRange(0x80, 0xbf)
	return seq{first, more}
}

// splitClass splits a class into its members below 0x80 and the others. incomplete says that others
// lacks the members of a range: it is longer than maxClassRange, or has U+FFFD, which stands for
// broken bytes too.
func splitClass(ranges []rune) (ascii byteSet, others []rune, incomplete bool) {
	for i := 0; i+1 < len(ranges); i += 2 {
		lo, hi := ranges[i], ranges[i+1]
		for r := lo; r <= min(hi, utf8.RuneSelf-1); r++ {
			ascii.add(byte(r))
		}

		if lo = max(lo, utf8.RuneSelf); hi-lo > maxClassRange || lo <= utf8.RuneError && utf8.RuneError <= hi {
			incomplete = true
			continue
		}

		for r := lo; r <= hi; r++ {
			others = append(others, r)
		}
	}
	return ascii, others, incomplete
}

// foldClass adds the other cases of the members of a class to both of its parts. special reports
// whether the class has a k or an s, which have another case beyond ASCII.
func foldClass(ascii byteSet, others []rune) (_ byteSet, _ []rune, special bool) {
	special = ascii.has('k') || ascii.has('K') || ascii.has('s') || ascii.has('S')
	ascii = ascii.folded()
	for b := byte('a'); b <= 'z'; b++ {
		if ascii.has(b) {
			ascii.add(b - 'a' + 'A')
		}
	}

	// SimpleFold walks the cases of a rune in a circle.
	for _, r := range others[:len(others):len(others)] {
		for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
			if o < utf8.RuneSelf {
				ascii.add(byte(o))
				continue
			}
			others = append(others, o)
		}
	}
	return ascii, others, special
}

// elemsOfOneLength returns the elements that match one of the runes if the encodings of all have the
// same length, otherwise nil. For é and è (C3 A9, C3 A8) they are C3, and one of A8 and A9.
func elemsOfOneLength(runes []rune) seq {
	var s seq
	for _, r := range runes {
		var buf [utf8.UTFMax]byte
		n := utf8.EncodeRune(buf[:], r)

		if s == nil {
			s = make(seq, n)
		}

		// With different lengths the bytes at one position mean different things.
		if len(s) != n {
			return nil
		}

		for i, b := range buf[:n] {
			s[i].set.add(b)
		}
	}
	return s
}
