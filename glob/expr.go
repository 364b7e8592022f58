package glob

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var errNone = errors.New("an expression cannot say !(...) or a ! in front: exclude what is inside")

// Expr returns an RE2 expression for the names that a pattern matches in exact case, without marks
// for the start and the end of a name. An index of paths needs expressions. A pattern with !(...),
// or with a ! in front, has none.
func Expr(pattern string) (string, error) {
	seq, _, not, err := read(pattern)
	if err == nil && not {
		err = errNone
	}
	var b strings.Builder
	if err == nil {
		err = writeExpr(&b, resolveStars(seq, true, true))
	}
	if err != nil {
		return "", fmt.Errorf("glob %.100q: %w", pattern, err)
	}
	return "(?s:" + b.String() + ")", nil
}

// writeExpr writes the parsed pattern seq as a regular expression.
func writeExpr(b *strings.Builder, seq []node) error {
	for i := range seq {
		switch n := &seq[i]; n.op {
		case opRune:
			b.WriteString(regexp.QuoteMeta(string(n.r))) // a byte that is not UTF-8 becomes U+FFFD, which matches such bytes
		case opAny:
			b.WriteString(`[^/]`)
		case opClass:
			n.class.writeExpr(b)
		case opStar, opStars:
			b.WriteString(`[^/]*`)
		case opAll:
			b.WriteString(`.*`)
		case opGroup:
			if n.rep == '!' {
				return errNone
			}
			b.WriteString("(?:")
			for j, alt := range n.alts {
				if j > 0 {
					b.WriteByte('|')
				}
				if err := writeExpr(b, alt); err != nil {
					return err
				}
			}
			b.WriteByte(')')
			if n.rep != '@' {
				b.WriteByte(n.rep)
			}
		}
	}
	return nil
}

// writeExpr writes the expression of a class. A slash is never a member.
func (c *class) writeExpr(b *strings.Builder) {
	if c.not {
		b.WriteString(`[^/`)
	} else {
		b.WriteByte('[')
	}
	empty := !c.not
	span := func(low, high rune) {
		if low <= high {
			empty = false
			fmt.Fprintf(b, `\x{%X}-\x{%X}`, low, high)
		}
	}
	for _, r := range c.ranges {
		low, high := inUTF8(r[0]), inUTF8(r[1])
		if c.not || high < '/' || low > '/' {
			span(low, high)
			continue
		}
		span(low, '/'-1)
		span('/'+1, high)
	}
	if empty {
		b.WriteString(`^\x00-\x{10FFFF}`)
	}
	b.WriteByte(']')
}

// inUTF8 returns a character as it appears in UTF-8 text.
func inUTF8(r rune) rune {
	if r < 0 {
		return '\uFFFD'
	}
	return r
}

// maxText is the greatest length of a text with several patterns, in bytes.
const maxText = 4 * maxPattern

// Split returns the patterns of a text with commas between them. A comma in braces, in a class or
// after a backslash belongs to its pattern. A malformed or overlong text is one pattern.
func Split(text string) []string {
	if len(text) > maxText {
		return []string{text}
	}
	p := &parser{text: text}
	var list []string
	from := 0
	for p.pos < len(text) {
		if text[p.pos] == ',' {
			list = append(list, strings.TrimSpace(text[from:p.pos]))
			p.pos++
			from = p.pos
		} else if _, err := p.next(); err != nil {
			return []string{text}
		}
	}
	return append(list, strings.TrimSpace(text[from:]))
}
