package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Globs are patterns of the configuration file, ready to match. The zero
// value matches nothing. They may be used by several goroutines.
type Globs struct{ globs []glob }

type glob struct {
	re  *regexp.Regexp
	not bool // matches what re does not match
}

// CompileGlobs reads patterns on names with slashes, as the file has them for
// repositories, topics, branches and tags:
//
//	?              one character, no slash
//	*              any text without a slash
//	**             any text, where it stands alone between slashes
//	[a-c] [!a]     one character of a class
//	{a,b} {1..9}   one of some patterns, a number of a range
//	@(a|b) ?(a)    one, at most one of some patterns
//	*(a) +(a)      any number, at least one of some patterns
//	!a             as the first character: whatever a does not match
//	\*             the character itself
//
// Names that begin with a dot are names like others. The error of a malformed
// pattern says what is wrong with it.
func CompileGlobs(patterns []string) (Globs, error) {
	var g Globs
	for _, p := range patterns {
		one, err := compileGlob(p)
		if err != nil {
			return Globs{}, fmt.Errorf("glob %q: %w", p, err)
		}
		g.globs = append(g.globs, one)
	}
	return g, nil
}

// Match reports whether one of the patterns matches the whole name.
func (g Globs) Match(name string) bool {
	for _, one := range g.globs {
		if one.re.MatchString(name) != one.not {
			return true
		}
	}
	return false
}

// Empty reports whether there are no patterns.
func (g Globs) Empty() bool { return len(g.globs) == 0 }

const maxGlob = 4096 // bytes of a pattern

var (
	errGlobClass   = errors.New("a [ has no ]")
	errGlobBrace   = errors.New("a { has no }")
	errGlobParen   = errors.New("a group has no )")
	errGlobNot     = errors.New("!(...) is not supported; put a ! in front of a whole pattern, or use exclude")
	errGlobRange   = errors.New("a range of numbers has more than 1000 of them")
	errGlobEscape  = errors.New("a backslash stands at the end")
	errGlobTooLong = errors.New("it is longer than 4096 bytes")
	errGlobTooDeep = errors.New("its groups are nested more than 32 deep")
)

// compileGlob turns a pattern into a regular expression for the whole name.
//
//	release/{1..3}.*   \A(?s:release/(?:1|2|3)\.[^/]*)\z
//	docs/**            \A(?s:docs(?:/.*)?)\z
func compileGlob(p string) (glob, error) {
	if len(p) > maxGlob {
		return glob{}, errGlobTooLong
	}
	t := &globReader{text: p}

	// Each ! in front turns the meaning around; !( is a group.
	var g glob
	for strings.HasPrefix(t.text[t.pos:], "!") && !strings.HasPrefix(t.text[t.pos:], "!(") {
		g.not = !g.not
		t.pos++
	}
	t.text, t.pos = t.text[t.pos:], 0

	// (?s: lets . match a line end, which a name may have.
	t.b.WriteString(`\A(?s:`)
	if err := t.run(0); err != nil {
		return glob{}, err
	}
	t.b.WriteString(`)\z`)

	re, err := regexp.Compile(t.b.String())
	if err != nil {
		return glob{}, fmt.Errorf("it is malformed: %w", err)
	}
	g.re = re
	return g, nil
}

// globReader reads a pattern from left to right and writes the regular
// expression.
type globReader struct {
	text  string
	pos   int // of the next byte of text
	depth int // of groups
	b     strings.Builder
}

// run reads up to the byte that closes the group, and leaves that unread; for
// closing 0 it reads to the end.
func (t *globReader) run(closing byte) error {
	// Patterns come from a file that somebody wrote: each group is a call, and a stack has an end.
	if t.depth++; t.depth > 32 {
		return errGlobTooDeep
	}
	defer func() { t.depth-- }()

	for t.pos < len(t.text) {
		c := t.text[t.pos]
		if c == closing && closing != 0 {
			return nil
		}
		if err := t.next(c, closing); err != nil {
			return err
		}
	}

	// The text has ended within a group.
	switch closing {
	case '}':
		return errGlobBrace
	case ')':
		return errGlobParen
	}
	return nil
}

// next reads one element, which begins with c. closing is what ends the group
// around it: only in {a,b} is a comma special, only in @(a|b) is a bar.
func (t *globReader) next(c, closing byte) error {
	rest := t.text[t.pos:]
	if len(rest) > 1 && rest[1] == '(' && strings.IndexByte("@?*+!", c) >= 0 {
		return t.group(c)
	}

	t.pos++
	switch {
	case c == '*':
		t.star()
	case c == '?':
		t.b.WriteString(`[^/]`)

	// These three read on to the bracket that ends them.
	case c == '[':
		return t.class()
	case c == '{':
		return t.brace()

	case c == ',' && closing == '}', c == '|' && closing == ')':
		t.b.WriteByte('|')

	// A backslash makes a literal of what follows.
	case c == '\\':
		if t.pos == len(t.text) {
			return errGlobEscape // there is nothing left to escape
		}
		c = t.text[t.pos]
		t.pos++
		fallthrough
	default:
		if c < 0x80 {
			t.b.WriteString(regexp.QuoteMeta(string(rune(c))))
		} else {
			t.b.WriteByte(c)
		}
	}
	return nil
}

// star reads the rest of * or **. Two stand for any number of directories only
// where they are alone between slashes.
func (t *globReader) star() {
	start := t.pos - 1
	for t.pos < len(t.text) && t.text[t.pos] == '*' {
		t.pos++
	}

	alone := t.pos-start >= 2 && (start == 0 || t.text[start-1] == '/')
	switch {
	// a/** is a and everything in it: the slash before it becomes optional.
	case alone && t.pos == len(t.text) && start > 0:
		written := strings.TrimSuffix(t.b.String(), "/")
		t.b.Reset()
		t.b.WriteString(written + `(?:/.*)?`)
	case alone && t.pos == len(t.text):
		t.b.WriteString(`.*`)
	case alone && t.text[t.pos] == '/':
		t.pos++
		t.b.WriteString(`(?:.*/)?`)
	default:
		t.b.WriteString(`[^/]*`)
	}
}

// class reads the rest of [a-c].
func (t *globReader) class() error {
	end := t.classEnd()
	if end < 0 {
		return errGlobClass
	}
	body := t.text[t.pos:end]
	t.pos = end + 1

	// A class that is turned around must not match a slash, and has to name it.
	t.b.WriteByte('[')
	if body[0] == '!' || body[0] == '^' {
		t.b.WriteString("^/")
		body = body[1:]
	}
	t.classBody(body)
	t.b.WriteByte(']')
	return nil
}

// classEnd is where the ] of the class stands, -1 when there is none. As in a
// shell a ] in the first place is a member of the class, and so is what
// follows a backslash and the name of a class, as [:digit:].
func (t *globReader) classEnd() int {
	// In the first place, also behind the sign that turns the class around, ] is a member.
	end := t.pos
	if end < len(t.text) && (t.text[end] == '!' || t.text[end] == '^') {
		end++
	}
	if end < len(t.text) && t.text[end] == ']' {
		end++
	}

	for end < len(t.text) && t.text[end] != ']' {
		if t.text[end] == '\\' {
			end++
		}
		if strings.HasPrefix(t.text[min(end, len(t.text)):], "[:") {
			if i := strings.Index(t.text[end:], ":]"); i > 0 {
				end += i + 1
			}
		}
		end++
	}

	if end >= len(t.text) {
		return -1
	}
	return end
}

// classBody writes the members of a class. A bracket that is a member gets a
// backslash, which the regular expression wants and the glob does not.
func (t *globReader) classBody(body string) {
	// The name of a class, as [:digit:], means the same to both and stays as it is.
	for i := 0; i < len(body); i++ {
		c := body[i]
		opens := c == '[' && !strings.HasPrefix(body[i:], "[:")
		closes := c == ']' && (i == 0 || body[i-1] != ':')
		if opens || closes {
			t.b.WriteByte('\\')
		}
		t.b.WriteByte(c)

		// What is escaped is copied with its backslash, and looked at no more.
		if c == '\\' && i+1 < len(body) {
			i++
			t.b.WriteByte(body[i])
		}
	}
}

// brace reads the rest of {a,b} or {1..9}.
func (t *globReader) brace() error {
	// A range of numbers becomes a list of them.
	if end := strings.IndexByte(t.text[t.pos:], '}'); end > 0 {
		if from, to, ok := numberRange(t.text[t.pos : t.pos+end]); ok {
			if to-from >= 1000 {
				return errGlobRange
			}

			t.pos += end + 1
			t.b.WriteString("(?:" + strconv.Itoa(from))
			for n := from + 1; n <= to; n++ {
				t.b.WriteString("|" + strconv.Itoa(n))
			}
			t.b.WriteByte(')')
			return nil
		}
	}

	// Any other content is a list of patterns, with groups of their own.
	t.b.WriteString("(?:")
	if err := t.run('}'); err != nil {
		return err
	}
	t.pos++
	t.b.WriteByte(')')
	return nil
}

// numberRange reads 1..9, in either order.
func numberRange(s string) (from, to int, ok bool) {
	a, b, ok := strings.Cut(s, "..")
	if !ok || len(a) > 9 || len(b) > 9 {
		return 0, 0, false
	}
	from, err := strconv.Atoi(a)
	if err != nil {
		return 0, 0, false
	}
	to, err = strconv.Atoi(b)
	return min(from, to), max(from, to), err == nil
}

// group reads @(a|b), ?(a|b), *(a|b) or +(a|b), which begins with c.
func (t *globReader) group(c byte) error {
	if c == '!' {
		return errGlobNot
	}

	t.pos += len("@(")
	t.b.WriteString("(?:")
	if err := t.run(')'); err != nil {
		return err
	}
	t.pos++
	t.b.WriteByte(')')

	// The others mean to a regular expression what they mean here.
	if c != '@' {
		t.b.WriteByte(c)
	}
	return nil
}
