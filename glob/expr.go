package glob

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var errNone = errors.New("an expression cannot say !(...) or a ! in front: exclude what is inside")

// Expr returns the regular expression, in RE2's syntax, of the names that a pattern matches
// in exact case, without the marks for where a name begins and ends. An index of paths takes
// expressions. A pattern with !(...), or a ! in front, has none.
func Expr(pattern string) (string, error) {
	seq, _, not, err := read(pattern)
	if err == nil && not {
		err = errNone
	}
	var b strings.Builder
	if err == nil {
		err = writeExpr(&b, lower(seq, true, true))
	}
	if err != nil {
		return "", fmt.Errorf("glob %.100q: %w", pattern, err)
	}
	return "(?s:" + b.String() + ")", nil
}

func writeExpr(b *strings.Builder, seq []node) error {
	for i := range seq {
		switch n := &seq[i]; n.op {
		case opRune:
			b.WriteString(regexp.QuoteMeta(string(n.r))) // for a byte that is no UTF-8, U+FFFD, which matches such bytes
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

// writeExpr writes a class, of which a slash is no member.
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
		low, high := shown(r[0]), shown(r[1])
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

// shown is a character as a text in UTF-8 has it.
func shown(r rune) rune {
	if r < 0 {
		return '\uFFFD'
	}
	return r
}

// maxText bounds a text with several patterns, in bytes: each group of it is read to its end.
const maxText = 4 * maxPattern

// Split returns the patterns of a text that has commas between them. A comma in braces, in a
// class or behind a backslash is part of a pattern. A malformed text, or
// one that is longer than four patterns may be, is one pattern.
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
