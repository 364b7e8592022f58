package match

import (
	"bytes"
	"regexp/syntax"
)

// Lines that end in "\r\n". In them $ holds before the "\r". Most texts have none, so
// a pattern with $ is compiled twice, and each text is asked once which of the two it
// needs:
//
//	without a "\r"   `needle$`         the fast engines, a newline part of the literal
//	with one         `needle\r?$`      what is found is cut before the "\r"
//
// The automaton cannot do both in one: its assertions see one byte, and these are two.

// lineEnds returns re with `\r?` before each $, nil if there is no $ in it.
func lineEnds(re *syntax.Regexp) *syntax.Regexp {
	if re.Op == syntax.OpEndLine {
		// Optional: the lines of one text may end both ways.
		cr := &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{'\r'}}
		quest := &syntax.Regexp{Op: syntax.OpQuest, Sub: []*syntax.Regexp{cr}}
		return &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{quest, re}}
	}

	var out *syntax.Regexp
	for i, sub := range re.Sub {
		next := lineEnds(sub)
		if next == nil {
			continue
		}

		// A copy at the first change: re itself is compiled too, for texts without a "\r".
		if out == nil {
			c := *re
			c.Sub = append([]*syntax.Regexp(nil), re.Sub...)
			out = &c
		}

		out.Sub[i] = next
	}
	return out
}

// twinOf compiles re for texts with "\r\n", nil if it would find the same.
func twinOf(re *syntax.Regexp) (*compiled, error) {
	if l := literalOf(re); l != nil && len(l.core) == 0 {
		return &compiled{emptyLines: true}, nil
	}
	if shortest, longest := lengths(re); longest == 0 && shortest == 0 {
		return nil, nil // it finds places, and those do not depend on what ends a line
	}

	ends := lineEnds(re)
	if ends == nil {
		return nil, nil
	}

	c, err := compileTree(ends)
	if err != nil {
		return nil, err
	}
	shortest, _ := lengths(re)
	c.nullable = shortest == 0
	return c, nil
}

// EndsLines reports whether the pattern matches differently in lines that end in "\r\n".
func (m *Matcher) EndsLines() bool { return m.twin != nil }

// of returns the matcher for a text: m, or its twin for lines that end in "\r\n".
func (m *Matcher) of(text []byte) *Matcher {
	if m.twin == nil || bytes.IndexByte(text, '\r') < 0 {
		return m
	}
	return m.twin
}

// first returns the first match that starts at from or later, without the "\r" of a
// line's end, and where to go on.
func (m *Matcher) first(s *scratch, text []byte, from int) (start, end, next int, ok bool) {
	for from <= len(text) {
		if start, end, ok = m.next(s, text, from); !ok {
			break
		}

		// A byte further at least, or an empty match would be found again for ever.
		next = max(end, start+1)
		if !m.isTwin {
			return start, end, next, true
		}

		// What is only the "\r" of the line's end is no match of what was written.
		if end, ok = m.cut(text, start, end); ok {
			return start, end, next, true
		}
		from = next
	}
	return 0, 0, 0, false
}

// cut returns the end of a match of a twin without the "\r" of the line's end. A match
// that would be empty then is one of a "\r" in the pattern, or none: empty matches do
// not count.
func (m *Matcher) cut(text []byte, start, end int) (int, bool) {
	switch {
	case end == start || text[end-1] != '\r' || end < len(text) && text[end] != '\n':
		return end, true
	case end-1 > start:
		return end - 1, true
	}
	return end, !m.nullable
}

// nextEmptyLine returns the first line at from or later that has nothing but its end.
func nextEmptyLine(text []byte, from int) (at int, ok bool) {
	for from < len(text) {
		begins := from == 0 || text[from-1] == '\n'
		if begins && (text[from] == '\n' || bytes.HasPrefix(text[from:], []byte("\r\n"))) {
			return from, true
		}

		// No line begins after the last newline, so from < len(text) holds for each that does.
		i := bytes.IndexByte(text[from:], '\n')
		if i < 0 {
			break
		}
		from += i + 1
	}
	return 0, false
}
