package tool

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// longestPattern is the longest pattern in bytes that a search accepts.
const longestPattern = 10_000

// withinLine returns a pattern whose classes, such as \s and [^x], do not match line ends: a search
// works line by line. over means that the pattern is unchanged and may match over lines, because it
// asks for that, is invalid, or would become too long.
func withinLine(pattern string) (expr string, over bool) {
	if asksOverLines(pattern) {
		return pattern, true
	}

	// Without OneLine, ^ matches at each line, as in a search.
	re, err := syntax.Parse(pattern, syntax.Perl&^syntax.OneLine)
	if err != nil {
		return pattern, true
	}
	changed, whole := loseLineEnds(re)
	if whole {
		return pattern, true
	}

	// Keep the caller's spelling if nothing changes, because errors repeat it.
	if !changed {
		return pattern, false
	}
	if expr = re.String(); len(expr) > longestPattern {
		return pattern, true
	}
	return expr, false
}

// loseLineEnds removes line ends from the classes of an expression. whole reports whether a part
// matches any character, like (?s:.) or [\s\S].
func loseLineEnds(re *syntax.Regexp) (changed, whole bool) {
	switch {
	case re.Op == syntax.OpAnyChar, re.Op == syntax.OpCharClass && slices.Equal(re.Rune, []rune{0, unicode.MaxRune}):
		return false, true
	case re.Op == syntax.OpCharClass:
		re.Rune, changed = withoutLineEnd(re.Rune)
	}

	for _, sub := range re.Sub {
		c, w := loseLineEnds(sub)
		changed, whole = changed || c, whole || w
	}
	return changed, whole
}

// withoutLineEnd removes line ends from the ranges of a class.
func withoutLineEnd(ranges []rune) (without []rune, changed bool) {
	for pair := range slices.Chunk(ranges, 2) {
		lo, hi := pair[0], pair[1]
		if lo > '\n' || hi < '\n' {
			without = append(without, lo, hi)
			continue
		}

		// Keep what the range has on both sides.
		changed = true
		if lo < '\n' {
			without = append(without, lo, '\n'-1)
		}
		if hi > '\n' {
			without = append(without, '\n'+1, hi)
		}
	}
	return without, changed
}

// asksOverLines reports whether a pattern has (?s), or a line end outside of a negated class: [^\n]
// asks to stay within the line.
func asksOverLines(pattern string) bool {
	inClass, negated := false, false
	for rest := pattern; rest != ""; {
		token := nextToken(rest, inClass)
		dotAll := !inClass && setsDotAll(rest)
		rest = rest[len(token):]

		switch {
		case dotAll:
			return true
		case !inClass && token[0] == '[':
			// A bracket at the start of a class belongs to the class, and is part of the token.
			inClass, negated = true, strings.HasPrefix(token, "[^")
		case inClass && token == "]":
			inClass, negated = false, false
		case !negated && isLineEnd(token):
			return true
		}
	}
	return false
}

// setsDotAll reports whether a pattern begins with a group that sets the flag s, such as (?s) or
// (?is-m:.
func setsDotAll(p string) bool {
	p, ok := strings.CutPrefix(p, "(?")
	end := strings.IndexAny(p, ":)")
	if !ok || end < 0 || strings.Trim(p[:end], "imsU-") != "" {
		return false
	}
	set, _, _ := strings.Cut(p[:end], "-")
	return strings.Contains(set, "s")
}

// nextToken returns the first token of a pattern.
func nextToken(p string, inClass bool) string {
	switch {
	case !inClass && strings.HasPrefix(p, `\Q`):
		if end := strings.Index(p, `\E`); end >= 0 {
			return p[:end+2]
		}
		return p
	case !inClass && p[0] == '[':
		return p[:lengthOfStart(p)]
	case inClass && strings.HasPrefix(p, "[:"):
		if end := strings.Index(p, ":]"); end >= 0 {
			return p[:end+2]
		}
	case p[0] == '\\' && len(p) > 1:
		return p[:lengthOfEscape(p)]
	}
	return p[:1]
}

// lengthOfStart returns the length of the start of a class, including a bracket as its first
// character.
func lengthOfStart(p string) int {
	n := 1
	if strings.HasPrefix(p[n:], "^") {
		n++
	}
	if strings.HasPrefix(p[n:], "]") {
		n++
	}
	return n
}

// lengthOfEscape returns the length of an escape: \n, \x0a, \x{a}, \012.
func lengthOfEscape(p string) int {
	switch c := p[1]; {
	case c == 'x' && strings.HasPrefix(p[2:], "{"):
		if end := strings.IndexByte(p, '}'); end >= 0 {
			return end + 1
		}
		return len(p)
	case c == 'x':
		return min(4, len(p))
	case c >= '0' && c <= '7':
		n := 2
		for n < min(4, len(p)) && p[n] >= '0' && p[n] <= '7' {
			n++
		}
		return n
	}
	return 2
}

// isLineEnd reports whether a token is, or quotes, a line feed or carriage return.
func isLineEnd(token string) bool {
	if strings.HasPrefix(token, `\Q`) {
		return strings.ContainsAny(token, "\r\n")
	}

	// The parser knows all spellings of a character.
	re, err := syntax.Parse(token, syntax.Perl)
	return err == nil && re.Op == syntax.OpLiteral && (re.Rune[0] == '\n' || re.Rune[0] == '\r')
}
