package match

import (
	"fmt"
	"math/bits"
	"regexp/syntax"
	"unicode"
	"unicode/utf8"
)

// maxInsts is the greatest number of instructions in a compiled expression.
const maxInsts = 10_000

// A plan has the programs and the properties of an expression, which do not depend on a text. It is
// immutable.
type plan struct {
	re   *syntax.Regexp
	prog *syntax.Prog // forward
	back *syntax.Prog // reads texts from their end

	class [256]uint8 // by byte: the automaton never distinguishes bytes of one class
	rep   []byte     // by class: one of its bytes, which represents it
	shift uint       // there are at most 1<<shift classes

	asserts      bool // the expression has assertions: anchors or word boundaries
	startAsserts bool // an assertion may come before the first rune of a match
	empty        bool // every match is empty
	nullable     bool // a match may be empty
	crosses      bool // a match may contain a newline
	words        bool // begins or ends is set; see addWordAssertions
	begins, ends bool // a match must begin a word, or end one
	skips        bool // an idle machine can skip to the next candidate
}

// newPlan prepares an expression for matching in both directions.
func newPlan(re *syntax.Regexp, o Options) (*plan, error) {
	// Check before simplifying, which writes x{1000} out a thousand times.
	if n := countInsts(re); n > maxInsts {
		return nil, fmt.Errorf("expression is too large: about %d instructions, at most %d", n, maxInsts)
	}

	p := &plan{re: re, crosses: mayContainNewline(re), words: o.words(), begins: o.WordBegins, ends: o.WordEnds}
	shortest, longest := matchLengths(re)
	p.empty = longest == 0
	p.nullable = shortest == 0

	simple := re.Simplify()
	var err error
	if p.prog, err = syntax.Compile(simple); err != nil {
		return nil, fmt.Errorf("compile expression: %w", err)
	}
	if p.back, err = syntax.Compile(reverse(simple)); err != nil {
		return nil, fmt.Errorf("compile expression in reverse: %w", err)
	}

	if p.words {
		addWordAssertions(p.prog, p.begins, p.ends)
		addWordAssertions(p.back, p.ends, p.begins)
	}

	// The reversed program reads the same runes, so both share the classes.
	p.startAsserts = beginsWithAssertion(p.prog)
	p.makeClasses()
	return p, nil
}

// countInsts estimates how many instructions re compiles to.
func countInsts(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}

	for _, sub := range re.Sub {
		n += countInsts(sub)
	}

	// Without an upper bound, Max is -1, and Min copies are written out.
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}

	// Nested repeats multiply: the limit here keeps the product within an int.
	return min(n, 1<<30)
}

// matchLengths returns the least and the greatest length of a match in bytes; longest is -1 if
// there is no limit. shortest is 0 exactly if re can match the empty text somewhere:
//
//	ab?c      2, 12      a rune has up to four bytes
//	(a|bc)+   1, -1
//	^\b       0, 0
func matchLengths(re *syntax.Regexp) (shortest, longest int) {
	switch re.Op {
	// A rune has one to four bytes.
	case syntax.OpLiteral:
		return len(re.Rune), utf8.UTFMax * len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1, utf8.UTFMax
	case syntax.OpCapture:
		return matchLengths(re.Sub[0])

	// Repetitions multiply the lengths.
	case syntax.OpQuest:
		_, n := matchLengths(re.Sub[0])
		return 0, n
	case syntax.OpStar:
		return repeatedLengths(re.Sub[0], 0, -1)
	case syntax.OpPlus:
		return repeatedLengths(re.Sub[0], 1, -1)
	case syntax.OpRepeat:
		return repeatedLengths(re.Sub[0], re.Min, re.Max)

	// The lengths of parts in a row add up. Of alternatives the least and the greatest length count.
	case syntax.OpConcat:
		for _, sub := range re.Sub { // add the lengths
			a, b := matchLengths(sub)
			shortest += a
			// One part without a limit makes the whole have no limit.
			if longest < 0 || b < 0 {
				longest = -1
			} else {
				longest += b
			}
		}
		return shortest, longest

	case syntax.OpAlternate:
		shortest, longest = matchLengths(re.Sub[0])
		for _, sub := range re.Sub[1:] { // take the least and the greatest
			a, b := matchLengths(sub)
			shortest = min(shortest, a)
			if longest < 0 || b < 0 {
				longest = -1
			} else {
				longest = max(longest, b)
			}
		}
		return shortest, longest

	// An expression without a match may have any lengths.
	case syntax.OpNoMatch:
		return 1, 0
	}
	return 0, 0
}

// repeatedLengths returns the least and the greatest length of lo to hi copies of re; -1 stands for
// no limit.
func repeatedLengths(re *syntax.Regexp, lo, hi int) (shortest, longest int) {
	a, b := matchLengths(re)
	switch {
	case b == 0 || hi == 0:
		return 0, 0
	case b < 0 || hi < 0:
		return lo * a, -1
	}
	return lo * a, hi * b
}

// mayContainNewline reports whether a match of re may contain a newline.
func mayContainNewline(re *syntax.Regexp) bool {
	switch re.Op {
	// A dot, a literal or a class may read a newline.
	case syntax.OpAnyChar:
		return true
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if r == '\n' {
				return true
			}
		}
	case syntax.OpCharClass:
		return inRanges(re.Rune, '\n')
	}

	for _, sub := range re.Sub {
		if mayContainNewline(sub) {
			return true
		}
	}
	return false
}

// inRanges reports whether r is in one of the ranges, a list of first and last runes.
func inRanges(ranges []rune, r rune) bool {
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i] <= r && r <= ranges[i+1] {
			return true
		}
	}
	return false
}

// reverse returns the expression for texts that are read from their end: `^ab$` becomes `^ba$`.
func reverse(re *syntax.Regexp) *syntax.Regexp {
	out := *re
	switch re.Op {
	case syntax.OpBeginLine:
		out.Op = syntax.OpEndLine
	case syntax.OpEndLine:
		out.Op = syntax.OpBeginLine
	case syntax.OpBeginText:
		out.Op = syntax.OpEndText
	case syntax.OpEndText:
		out.Op = syntax.OpBeginText
	}

	// Reverse the runes, because the machine reads them in reverse too.
	if re.Op == syntax.OpLiteral {
		out.Rune = nil
		for i := len(re.Rune) - 1; i >= 0; i-- {
			out.Rune = append(out.Rune, re.Rune[i])
		}
	}

	out.Sub = make([]*syntax.Regexp, len(re.Sub))
	for i, sub := range re.Sub {
		at := i

		// Only a concatenation has an order of reading. The order of alternatives is a preference,
		// which does not matter in reverse.
		if re.Op == syntax.OpConcat {
			at = len(re.Sub) - 1 - i
		}
		out.Sub[at] = reverse(sub)
	}
	return &out
}

// beginsWithAssertion reports whether prog has an assertion that it reaches before it reads a rune.
func beginsWithAssertion(prog *syntax.Prog) bool {
	seen := make([]bool, len(prog.Inst))
	stack := []uint32{uint32(prog.Start)}
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true

		// Other instructions read a rune or end: no assertion comes first on this path.
		switch in := &prog.Inst[pc]; in.Op {
		case syntax.InstEmptyWidth:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, in.Out)
		}
	}
	return false
}

// makeClasses divides the 256 bytes into classes: the program treats all bytes of a class alike.
// Classes start where the ranges of runes in the program begin and end, and where UTF-8 or
// assertions distinguish bytes. For `[a-f]x` they start at 0, 'a', 'g', 'x', 'y' and the borders of
// UTF-8 from 0x80 on.
func (p *plan) makeClasses() {
	var marks [257]bool // by byte: a class starts with it; one more, for the end of the last range
	for _, b := range []int{0x80, 0x90, 0xA0, 0xC0, 0xC2, 0xE0, 0xE1, 0xED, 0xEE, 0xF0, 0xF1, 0xF4, 0xF5} {
		marks[b] = true
	}

	// IsWord distinguishes runes beyond ASCII, so each of their bytes is a class.
	for b := utf8.RuneSelf; p.words && b < 256; b++ {
		marks[b] = true
	}

	for i := range p.prog.Inst {
		in := &p.prog.Inst[i]
		switch in.Op {
		case syntax.InstEmptyWidth:
			p.asserts = true
			for _, b := range []int{'\n', '\n' + 1, '0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1} {
				marks[b] = true
			}
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			markRunes(&marks, in)
		}
	}

	class := -1
	for b := range 256 {
		if b == 0 || marks[b] {
			class++
			p.rep = append(p.rep, byte(b))
		}
		p.class[b] = uint8(class)
	}

	p.shift = uint(bits.Len(uint(class)))
}

// markRunes marks the bytes at which the runes that in matches begin and end.
func markRunes(marks *[257]bool, in *syntax.Inst) {
	// A single rune is a literal, which may be folded. A class lists its other cases itself.
	if len(in.Rune) == 1 {
		r := in.Rune[0]
		markRange(marks, r, r)
		if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				markRange(marks, f, f)
			}
		}
		return
	}

	for i := 0; i+1 < len(in.Rune); i += 2 {
		markRange(marks, in.Rune[i], in.Rune[i+1])
	}
}

// markRange marks the borders of a range of runes.
func markRange(marks *[257]bool, first, last rune) {
	markRune(marks, first)
	markRune(marks, last+1)
}

// markRune marks that the program may treat r differently from the rune before it. Each byte of its
// encoding gets its own class. So after the same prefix, two bytes of one class lead to runes that
// have no such border between them.
func markRune(marks *[257]bool, r rune) {
	switch {
	case r <= 0 || r > unicode.MaxRune:
		return
	case r < utf8.RuneSelf:
		marks[r] = true
		return
	case r >= 0xD800 && r < 0xE000: // surrogates have no encoding, so mark the next rune
		r = 0xE000
	}
	for _, b := range utf8.AppendRune(nil, r) {
		marks[b], marks[int(b)+1] = true, true
	}
}
