package glob

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var errNegatedExpr = errors.New("an expression cannot say !(...) or a ! in front: exclude what is inside")

// Expr returns an RE2 expression for the names that a pattern matches in exact case, without marks
// for the start and the end of a name. The index of paths can be searched only by expressions. A pattern with !(...),
// or with a ! in front, has none.
func Expr(pattern string) (string, error) {
	seq, _, negated, err := parsePattern(pattern)
	if err == nil && negated {
		err = errNegatedExpr
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
				return errNegatedExpr
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

// writeExpr writes a class as a regular expression. A slash is never a member.
func (c *class) writeExpr(b *strings.Builder) {
	if c.negated {
		b.WriteString(`[^/`)
	} else {
		b.WriteByte('[')
	}
	empty := !c.negated
	writeRange := func(low, high rune) {
		if low <= high {
			empty = false
			fmt.Fprintf(b, `\x{%X}-\x{%X}`, low, high)
		}
	}
	for _, r := range c.ranges {
		low, high := inUTF8(r[0]), inUTF8(r[1])
		if c.negated || high < '/' || low > '/' {
			writeRange(low, high)
			continue
		}
		writeRange(low, '/'-1)
		writeRange('/'+1, high)
	}
	if empty {
		b.WriteString(`^\x00-\x{10FFFF}`)
	}
	b.WriteByte(']')
}

// inUTF8 returns a character, or U+FFFD for a byte that is not UTF-8.
func inUTF8(r rune) rune {
	if r < 0 {
		return '\uFFFD'
	}
	return r
}

// maxText is the maximum length of a text with several patterns, in bytes.
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
		} else if _, err := p.readElement(); err != nil {
			return []string{text}
		}
	}
	return append(list, strings.TrimSpace(text[from:]))
}
