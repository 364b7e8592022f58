package tool

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// longestPattern is the longest pattern that a search takes, in bytes.
const longestPattern = 10_000

// withinLine is a pattern whose classes, as \s and [^x], do not match the end of a
// line: without (?s) and without a line end the unit of a search is the line.
// over says that the pattern is left as it is and may match over lines, because it
// asks for that, is no expression, or would be too long with its classes written out.
func withinLine(pattern string) (expr string, over bool) {
	if asksOverLines(pattern) {
		return pattern, true
	}

	// Not of one line: a ^ is where any line begins, as in a search.
	re, err := syntax.Parse(pattern, syntax.Perl&^syntax.OneLine)
	if err != nil {
		return pattern, true
	}
	changed, whole := loseLineEnds(re)
	if whole {
		return pattern, true
	}

	// What need not change is searched in the caller's words, which errors repeat.
	if !changed {
		return pattern, false
	}
	if expr = re.String(); len(expr) > longestPattern {
		return pattern, true
	}
	return expr, false
}

// loseLineEnds takes the line end from the classes of a tree. whole says that
// something in it stands for any character, as (?s:.) and [\s\S] do.
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

// withoutLineEnd takes the line end from the ranges of a class.
func withoutLineEnd(ranges []rune) (without []rune, changed bool) {
	for pair := range slices.Chunk(ranges, 2) {
		lo, hi := pair[0], pair[1]
		if lo > '\n' || hi < '\n' {
			without = append(without, lo, hi)
			continue
		}

		// What the range has on both sides of it stays.
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

// asksOverLines reports whether a pattern has (?s), or a line end in its own words
// outside of a class that excludes: [^\n] asks to stay within the line.
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
			// A bracket right at the start of a class is one of its characters, and in the token.
			inClass, negated = true, strings.HasPrefix(token, "[^")
		case inClass && token == "]":
			inClass, negated = false, false
		case !negated && isLineEnd(token):
			return true
		}
	}
	return false
}

// setsDotAll reports whether a pattern begins with a group that sets the flag s, as
// (?s) and (?is-m: do.
func setsDotAll(p string) bool {
	p, ok := strings.CutPrefix(p, "(?")
	end := strings.IndexAny(p, ":)")
	if !ok || end < 0 || strings.Trim(p[:end], "imsU-") != "" {
		return false
	}
	set, _, _ := strings.Cut(p[:end], "-")
	return strings.Contains(set, "s")
}

// nextToken is the first part of a pattern that means something on its own.
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

// lengthOfStart is how long the start of a class is, with a bracket that is the
// first of its characters.
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

// lengthOfEscape is how long an escape is: \n, \x0a, \x{a}, \012.
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

// isLineEnd reports whether a token stands for a line feed or a carriage return, or
// quotes one.
func isLineEnd(token string) bool {
	if strings.HasPrefix(token, `\Q`) {
		return strings.ContainsAny(token, "\r\n")
	}

	// Read by the parser, which knows all the ways to write a character.
	re, err := syntax.Parse(token, syntax.Perl)
	return err == nil && re.Op == syntax.OpLiteral && (re.Rune[0] == '\n' || re.Rune[0] == '\r')
}
