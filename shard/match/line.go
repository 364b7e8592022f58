package match

import (
	"bytes"
	"regexp"
)

// nextLine is next for a pattern that matches only the empty string: the
// first match of each line counts.
func (m *Matcher) nextLine(s *scratch, text []byte, from int) (start, end int, ok bool) {
	line := bytes.LastIndexByte(text[:from], '\n') + 1
	for line < len(text) {
		at, err := s.ahead.forward(text, line, len(text), false, nil)
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

// twins are the expression as package regexp has it, anchored where a search
// starts. It cannot start within a text, so for a search from further in,
// one byte of context comes first.
type twins struct{ first, later *regexp.Regexp }

// anchored returns the end of the match that starts at from. Few patterns
// ever need it.
func (m *Matcher) anchored(text []byte, from int) (end int, ok bool) {
	m.once.Do(func() {
		expr := "(" + m.plan.re.String() + ")"
		m.here = twins{regexp.MustCompile(`\A` + expr), regexp.MustCompile(`\A(?s:.)` + expr)}
	})
	re, base := m.here.first, 0
	if from > 0 {
		re, base = m.here.later, from-1
	}
	loc := re.FindSubmatchIndex(text[base:])
	if loc == nil {
		return 0, false
	}
	return base + loc[3], true
}
