package match

import (
	"bytes"
	"regexp"
)

// twins are the expression as package regexp has it. It cannot start within
// a text, so for a search from further in, one byte of context comes first.
type twins struct {
	at0, later *regexp.Regexp
	here0      *regexp.Regexp // anchored where the search starts
	here       *regexp.Regexp
}

// regexps returns the twins, which few patterns ever need.
func (m *Matcher) regexps() *twins {
	m.once.Do(func() {
		text := "(" + m.plan.re.String() + ")"
		m.re = twins{
			at0:   regexp.MustCompile(text),
			later: regexp.MustCompile(`\A(?s:.)(?s:.*?)` + text),
			here0: regexp.MustCompile(`\A` + text),
			here:  regexp.MustCompile(`\A(?s:.)` + text),
		}
	})
	return &m.re
}

// nextSlow is next by package regexp.
func (m *Matcher) nextSlow(text []byte, from int) (start, end int, ok bool) {
	for from <= len(text) {
		start, end, ok = m.scan(text, from)
		if !ok || end > start {
			return start, end, ok
		}
		from = end + runeWidth(text[end:])
	}
	return 0, 0, false
}

// scan returns the first match from text[from:], which may be empty.
func (m *Matcher) scan(text []byte, from int) (start, end int, ok bool) {
	return run(m.regexps().at0, m.regexps().later, text, from)
}

// anchored returns the end of the match that starts at from.
func (m *Matcher) anchored(text []byte, from int) (end int, ok bool) {
	_, end, ok = run(m.regexps().here0, m.regexps().here, text, from)
	return end, ok
}

func run(at0, later *regexp.Regexp, text []byte, from int) (start, end int, ok bool) {
	re, base := at0, 0
	if from > 0 {
		re, base = later, from-1
	}
	loc := re.FindSubmatchIndex(text[base:])
	if loc == nil {
		return 0, 0, false
	}
	return base + loc[2], base + loc[3], true
}

// nextLine is next for a pattern that matches only the empty string: the
// first match of each line counts.
func (m *Matcher) nextLine(s *scratch, text []byte, from int) (start, end int, ok bool) {
	line := bytes.LastIndexByte(text[:from], '\n') + 1
	for line < len(text) {
		at, err := s.ahead.forward(text, line, len(text), false, nil)
		if err != nil {
			if at, _, ok = m.scan(text, line); !ok {
				at = -1
			}
		}
		if at < 0 || at == len(text) && text[at-1] == '\n' {
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
