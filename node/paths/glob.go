package paths

import (
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard/match"
)

// maxPattern bounds a glob, in bytes.
const maxPattern = 10_000

// IsGlob reports whether a text is a glob. One that is not may still be the name of a file.
func IsGlob(text string) bool { return doublestar.ValidatePattern(text) }

// maxAlternatives bounds what the braces of a glob stand for. All of it together is
// bounded by what the index takes: see tooLong.
const maxAlternatives = 1000

// globExpr is the expression for the paths that a doublestar glob matches,
// without the marks for where a path begins and ends: the index takes
// expressions. That both match the same paths FuzzGlobExpr checks.
func globExpr(glob string) (string, error) {
	if len(glob) > maxPattern || !IsGlob(glob) {
		return "", call.Fail(call.ErrInvalid, "%.100q is not a valid glob", glob)
	}

	// Braces multiply: a glob of 10,000 bytes may stand for a thousand nearly as long.
	plain, ok := withoutBraces(glob)
	if !ok {
		return "", call.Fail(call.ErrInvalid, "the braces of %.100q stand for more than %d globs", glob, maxAlternatives)
	}

	size := 0
	exprs := make([]string, len(plain))
	for i, p := range plain {
		exprs[i] = plainGlobExpr(p)
		if size += len(exprs[i]) + 1; size > match.MaxPattern {
			return "", tooLong("glob")
		}
	}
	return "(?s:" + strings.Join(exprs, "|") + ")", nil
}

// tooLong refuses what is longer as an expression than the index takes.
func tooLong(what string) error {
	return call.Fail(call.ErrInvalid, "the %s is too long with its braces and stars written out: %d bytes at most", what, match.MaxPattern)
}

// withoutBraces lists the globs that one with braces stands for: a{b,c}d is
// abd and acd. False tells that there are too many.
func withoutBraces(glob string) ([]string, bool) {
	open := indexByteOf(glob, '{', 0)
	if open < 0 {
		return []string{glob}, true
	}

	alternatives, end := alternativesOf(glob, open)
	if end < 0 {
		return []string{glob}, true // an open brace alone; ValidatePattern refuses it
	}

	// Each alternative may have braces of its own, and so may what stands after them.
	var all []string
	for _, a := range alternatives {
		list, ok := withoutBraces(glob[:open] + a + glob[end+1:])
		if all = append(all, list...); !ok || len(all) > maxAlternatives {
			return nil, false
		}
	}

	return all, true
}

// alternativesOf parts what stands in the brace at open by its commas, and says where it
// closes; -1 where it does not.
//
//	a{b,c{d,e}}f    b   c{d,e}
func alternativesOf(glob string, open int) (alternatives []string, end int) {
	depth, from := 1, open+1
	for i := open + 1; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			i++ // what follows is itself
		case '[':
			i = classEnd(glob, i)
		case '{':
			depth++

		// Those of inner braces are left in place.
		case ',':
			if depth == 1 {
				alternatives = append(alternatives, glob[from:i])
				from = i + 1
			}
		case '}':
			if depth--; depth == 0 {
				return append(alternatives, glob[from:i]), i
			}
		}
	}

	return nil, -1
}

// globsOf lists the globs that are written in one text with commas between them. A comma in
// braces or in a class is none of those, and the text itself may be the name of a file.
func globsOf(text string) []string {
	var globs []string
	from, depth := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			i = classEnd(text, i)
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				globs = append(globs, strings.TrimSpace(text[from:i]))
				from = i + 1
			}
		}
	}
	if globs == nil {
		return []string{text}
	}
	globs = append(globs, strings.TrimSpace(text[from:]))

	globs = slices.DeleteFunc(globs, func(g string) bool { return g == "" })
	if !strings.ContainsAny(text, "*?!") {
		globs = append(globs, text)
	}
	return globs
}

// indexByteOf finds a byte that stands for more than itself; -1 for none.
func indexByteOf(glob string, c byte, from int) int {
	for i := from; i < len(glob); i++ {
		switch glob[i] {
		case c:
			return i
		case '\\':
			i++
		case '[':
			i = classEnd(glob, i)
		}
	}

	return -1
}

// classEnd is where the class that begins at i ends.
func classEnd(glob string, i int) int {
	// A closing bracket that comes first is a member, also behind the negation.
	j := i + 1
	if j < len(glob) && (glob[j] == '!' || glob[j] == '^') {
		j++
	}

	for first := true; j < len(glob); j, first = j+1, false {
		switch {
		case glob[j] == '\\':
			j++
		case glob[j] == ']' && !first:
			return j
		}
	}
	return len(glob) - 1
}

// plainGlobExpr is globExpr for a glob without braces.
//
//	**/  any directories, or none      /**  all that is below, and the directory itself
//	/**/ at the end: the same, where only directories are named
//	*    letters but no slash          ?    one of them
//
// A line break, which git lets stand in a name, is a letter as any other.
func plainGlobExpr(glob string) string {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		rest := glob[i:]
		begins := i == 0 || glob[i-1] == '/'

		// Two stars are more than one only as a whole part of the path.
		switch {
		case begins && strings.HasPrefix(rest, "**/"):
			b.WriteString("(?:.*/)?")
			i += 2
		case begins && rest == "**":
			b.WriteString(".*")
			i++
		case rest == "/**":
			b.WriteString("(?:/.*)?")
			i += 2
		case rest == "/**/":
			b.WriteString("(?:/(?:.*/)?)?")
			i += 3

		case rest[0] == '*':
			b.WriteString(`[^/]*`)
		case rest[0] == '?':
			b.WriteString(`[^/]`)

		case rest[0] == '[':
			end := classEnd(glob, i)
			b.WriteString(classExpr(glob[i+1 : end]))
			i = end

		case rest[0] == '\\' && len(rest) > 1:
			i++
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		default:
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		}
	}

	return b.String()
}

// classExpr is the expression for a class, given by what stands between its
// brackets: runs and single letters, none of which is a slash.
func classExpr(class string) string {
	not := strings.HasPrefix(class, "!") || strings.HasPrefix(class, "^")
	if not {
		class = class[1:]
	}
	var b strings.Builder

	// A letter of several bytes is one member.
	letter := func(i int) (r string, next int) {
		if class[i] == '\\' && i+1 < len(class) {
			i++
		}
		size := 1
		for i+size < len(class) && class[i+size]&0xc0 == 0x80 {
			size++
		}
		return class[i : i+size], i + size
	}

	for i := 0; i < len(class); {
		low, next := letter(i)
		high := low
		if next+1 < len(class) && class[next] == '-' {
			high, next = letter(next + 1)
		}

		if i = next; high < low {
			high = low // a run that is empty has the letter that begins it all the same
		}

		// The slash is left out of a run, and of the members.
		switch {
		case not || high < "/" || low > "/":
			b.WriteString(runExpr(low, high))
		default:
			if low < "/" {
				b.WriteString(runExpr(low, "."))
			}
			if high > "/" {
				b.WriteString(runExpr("0", high))
			}
		}
	}

	switch {
	case not:
		return "[^/" + b.String() + "]"
	case b.Len() == 0:
		return `[^\x00-\x{10FFFF}]`
	}
	return "[" + b.String() + "]"
}

// runExpr is the letters from one to another in a class; . and 0 are beside the slash.
func runExpr(low, high string) string {
	if low == high {
		return quoteInClass(low)
	}
	return quoteInClass(low) + "-" + quoteInClass(high)
}

func quoteInClass(letter string) string {
	if strings.ContainsAny(letter, `\]^-[`) {
		return `\` + letter
	}
	return letter
}
