package match

import (
	"regexp/syntax"
	"unicode"
	"unicode/utf8"
)

// Whole words: no rune of a word stands before a match, or after it, or both. The match itself may
// begin and end with any rune, so `C++` and `#include` are words too. `\b` in an expression remains
// that of RE2, which knows only ASCII and needs a letter at the border.
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

// IsWord reports whether a rune belongs to a word: a letter, a mark or a digit of any script, or
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

// atWords adds assertions to a program: before a match, after a match, or both. Nothing leads to
// the last instruction: a thread has it while it is an empty match that waits for a rune.
func atWords(prog *syntax.Prog, begins, ends bool) {
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

// context returns what assertions see between the rune before and the next one. open says that the
// next one is not known: assertions about it wait.
func (m *machine) context(prev prevKind, next rune, open bool) syntax.EmptyOp {
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

// isWaiting reports whether a thread waits for the rune after a word.
func (m *machine) isWaiting(pc uint32) bool {
	in := &m.prog.Inst[pc]
	return in.Op == syntax.InstEmptyWidth && syntax.EmptyOp(in.Arg) == clearBehind
}

// decideWaiting decides the threads that waited for a rune, now that the rune is complete. back is
// the number of bytes read since the place where they wait, without the last one. It returns the
// threads that read the rune.
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
