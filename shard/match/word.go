package match

import (
	"regexp/syntax"
	"unicode"
	"unicode/utf8"
)

// Whole words: the rune before a match, or the one after it, or both, must not be a word character.
// The match itself may begin and end with any rune, so `C++` and `#include` are words too. `\b` in
// an expression still means what it means in RE2: ASCII only, and with a word character on one
// side.
//
// A program for whole words has an assertion before its first instruction and one before its match:
//
//	[clearBefore] expression [clearBehind] match
//
// The rune before is known when a thread starts. The rune after may have several bytes: the thread
// waits until all of them are read, see [machine.decideWaiting].
const (
	clearBefore syntax.EmptyOp = 1 << 6 << iota // package syntax uses the six bits below
	clearBehind
)

// IsWord reports whether a rune is a word character: a letter, a mark or a digit of any script, or
// `_`.
func IsWord(r rune) bool {
	if r < utf8.RuneSelf {
		return syntax.IsWordChar(r)
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.N)
}

// runeBefore returns the rune that ends at an offset; -1 at the start of the text.
func runeBefore(text []byte, at int) rune {
	if at == 0 {
		return -1
	}
	r, _ := utf8.DecodeLastRune(text[:at])
	return r
}

// runeAt returns the rune that begins at an offset; -1 at the end of the text.
func runeAt(text []byte, at int) rune {
	if at >= len(text) {
		return -1
	}
	r, _ := utf8.DecodeRune(text[at:])
	return r
}

// addWordAssertions adds assertions to a program: before a match if begins is set, after it if ends
// is set. It also adds a last instruction to which no other leads: resolve gives it to a thread
// that has read nothing and waits for the end of a word, so that decideWaiting can ignore its empty
// match.
func addWordAssertions(prog *syntax.Prog, begins, ends bool) {
	last := uint32(len(prog.Inst))
	before := syntax.Inst{Op: syntax.InstEmptyWidth, Out: uint32(prog.Start)}
	behind := syntax.Inst{Op: syntax.InstEmptyWidth, Out: last}
	if begins {
		before.Arg = uint32(clearBefore)
	}
	if ends {
		behind.Arg = uint32(clearBehind)
	}

	for i := range prog.Inst {
		if prog.Inst[i].Op == syntax.InstMatch {
			prog.Inst[i] = behind
		}
	}

	prog.Inst = append(prog.Inst, syntax.Inst{Op: syntax.InstMatch}, before, behind)
	prog.Start = int(last) + 1
}

// assertionsBetween returns the assertions that hold between a rune of kind prev and rune next.
// open says that only the first byte of next is known: then clearBehind, which depends on all of
// it, is left out.
func (m *machine) assertionsBetween(prev prevKind, next rune, open bool) syntax.EmptyOp {
	ctx := syntax.EmptyOpContext(prevRune[prev], next)
	if !m.p.words {
		return ctx
	}
	if prev != prevWord && prev != prevLetter {
		ctx |= clearBefore
	}
	if !open && !IsWord(next) {
		ctx |= clearBehind
	}
	return ctx
}

// isWaiting reports whether a thread is at the assertion clearBehind, which depends on the next rune.
func (m *machine) isWaiting(pc uint32) bool {
	in := &m.prog.Inst[pc]
	return in.Op == syntax.InstEmptyWidth && syntax.EmptyOp(in.Arg) == clearBehind
}

// decideWaiting decides the assertions of threads that wait for a whole rune, now that r is
// complete. back is the delta of a match that ends before r: the number of bytes of r without the
// last. It returns the threads that will read r.
func (m *machine) decideWaiting(n *state, threads []uint32, r rune, back int) []uint32 {
	if !m.p.words {
		return threads
	}

	out := m.c[:0]
	for _, pc := range threads {
		if !m.isWaiting(pc) {
			out = append(out, pc)
			continue
		}
		if IsWord(r) {
			continue
		}

		// This is a match. As in resolve, threads of lower priority end, and an empty match does
		// not count.
		if int(pc) != len(m.prog.Inst)-1 {
			n.delta, n.found = int8(back), !m.reverse
		}
		if !m.reverse {
			break
		}
	}
	m.c = out
	return out
}
