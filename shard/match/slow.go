package match

import (
	"bytes"
	"regexp/syntax"
	"unicode/utf8"
)

// search returns the first match at from or later, empty ones included, but
// for patterns that are always empty: there it goes by lines.
func (m *Matcher) search(text []byte, from int) (start, end int, ok bool) {
	if !m.empty {
		return m.scan(text, from)
	}
	line := bytes.LastIndexByte(text[:from], '\n') + 1
	for line < len(text) {
		next := len(text) + 1
		if i := bytes.IndexByte(text[line:], '\n'); i >= 0 {
			next = line + i + 1
		}
		start, end, ok = m.scan(text, line)
		if !ok {
			break
		}
		if start < next && start >= from {
			return start, end, true
		}
		line = next
	}
	return 0, 0, false
}

// scan is search by package regexp, which cannot start within a text: the
// byte before from comes along as context.
func (m *Matcher) scan(text []byte, from int) (start, end int, ok bool) {
	re, base := m.at0, 0
	if from > 0 {
		re, base = m.later, from-1
	}
	loc := re.FindSubmatchIndex(text[base:])
	if loc == nil {
		return 0, 0, false
	}
	return base + loc[2], base + loc[3], true
}

func runeWidth(b []byte) int {
	_, n := utf8.DecodeRune(b)
	return max(n, 1)
}

// maxLen returns an upper bound of the bytes of a match, -1 where there is
// none.
func maxLen(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		return utf8.UTFMax * len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return utf8.UTFMax
	case syntax.OpCapture:
		return maxLen(re.Sub[0])
	case syntax.OpQuest:
		return maxLen(re.Sub[0])
	case syntax.OpStar, syntax.OpPlus:
		if maxLen(re.Sub[0]) == 0 {
			return 0
		}
		return -1
	case syntax.OpRepeat:
		n := maxLen(re.Sub[0])
		if n == 0 || re.Max == 0 {
			return 0
		}
		if n < 0 || re.Max < 0 {
			return -1
		}
		return n * re.Max
	case syntax.OpConcat, syntax.OpAlternate:
		sum := 0
		for _, sub := range re.Sub {
			n := maxLen(sub)
			if n < 0 {
				return -1
			}
			if re.Op == syntax.OpConcat {
				sum += n
			} else {
				sum = max(sum, n)
			}
		}
		return sum
	}
	return 0
}
