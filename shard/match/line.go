package match

import (
	"bytes"
	"regexp"
)

// nextEmptyMatch returns the first match, at from or later, of a pattern that matches only the empty
// text. Only the first match in each line counts.
func (m *Matcher) nextEmptyMatch(s *scratch, text []byte, from int) (start, end int, ok bool) {
	// Read the whole line of from: a match in it before from makes from no match.
	line := bytes.LastIndexByte(text[:from], '\n') + 1
	if m.oneLine {
		at, err := s.ahead.forward(text, 0, len(text), nil)
		return at, at, err == nil && at >= from
	}
	for line < len(text) {
		at, err := s.ahead.forward(text, line, len(text), nil)

		// After the last newline there is no line.
		if err != nil || at < 0 || at == len(text) && text[at-1] == '\n' {
			break
		}
		if at >= from {
			return at, at, true
		}

		i := bytes.IndexByte(text[line:], '\n')
		if i < 0 {
			break
		}
		line += i + 1
	}
	return 0, 0, false
}

// reference is the expression for package regexp, anchored where a search starts. first starts at
// the beginning of the text. Package regexp cannot start inside a text, so later needs one byte of
// context in front.
type reference struct{ first, later *regexp.Regexp }

// anchoredEnd returns the end of the match that starts at from, found with package regexp; false if
// there is none. Few patterns ever need it.
func (m *Matcher) anchoredEnd(text []byte, from int) (end int, ok bool) {
	// Compile on first use: only a nullable expression with a match gets here.
	m.once.Do(func() {
		expr := "(" + m.plan.re.String() + ")"
		if m.plan.ends {
			expr += `(?:[^\pL\pM\pN_]|\z)`
		}
		m.reference = reference{regexp.MustCompile(`\A` + expr), regexp.MustCompile(`\A(?s:.)` + expr)}
	})

	if m.plan.begins && IsWord(runeBefore(text, from)) {
		return 0, false
	}

	re, base := m.reference.first, 0
	if from > 0 {
		re, base = m.reference.later, from-1
	}

	// Inside a rune, the dot reads one broken byte, so the group begins at from.
	loc := re.FindSubmatchIndex(text[base:])
	if loc == nil {
		return 0, false
	}
	return base + loc[3], true
}
