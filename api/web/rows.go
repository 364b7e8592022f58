package web

import (
	"bytes"
	"strconv"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/shard/lex"
)

// tags has the HTML class of each lex class.
var tags = [...]string{lex.Comment: "c", lex.String: "s", lex.Number: "n", lex.Keyword: "k", lex.Type: "t", lex.Directive: "d"}

// colourBlock is how many bytes of one piece of code are coloured, so that pages are fast.
const colourBlock = 256 << 10

// span is a marked run of bytes of a line.
type span struct{ start, end int }

// appendCode appends one line of code, without its end, as HTML: its colours, and
// over them its marks. Both are in order and do not overlap among themselves.
//
//	colours   [ k ]      [ s      ]
//	marks          [        ]
//	pieces    [ k ][    ][m s][ s ]     a mark stands within its colour
func appendCode(dst, line []byte, colours []lex.Span, marks []span) []byte {
	at, open := 0, lex.Plain
	for at < len(line) {
		// Which colour and which mark a piece has that begins here, and where the
		// next of either begins or ends.
		next := len(line)
		class := lex.Plain
		for len(colours) > 0 && colours[0].End <= at {
			colours = colours[1:]
		}
		if len(colours) > 0 {
			if c := colours[0]; c.Start <= at {
				class, next = c.Class, min(next, c.End)
			} else {
				next = min(next, c.Start)
			}
		}

		marked := false
		for len(marks) > 0 && marks[0].end <= at {
			marks = marks[1:]
		}
		if len(marks) > 0 {
			if m := marks[0]; m.start <= at {
				marked, next = true, min(next, m.end)
			} else {
				next = min(next, m.start)
			}
		}

		dst = appendTurn(dst, open, class)
		if marked {
			dst = append(dst, "<mark>"...)
		}
		dst = layout.AppendText(dst, line[at:next])
		if marked {
			dst = append(dst, "</mark>"...)
		}
		at, open = next, class
	}
	return appendTurn(dst, open, lex.Plain)
}

// appendTurn ends one colour and begins another, if they differ.
func appendTurn(dst []byte, from, to lex.Class) []byte {
	if from == to {
		return dst
	}
	if from != lex.Plain {
		dst = append(dst, "</i>"...)
	}
	if to != lex.Plain {
		dst = append(append(append(dst, `<i class="`...), tags[to]...), `">`...)
	}
	return dst
}

// painter colours the lines of one piece of code in order.
type painter struct {
	lang  *lex.Lang
	state lex.State
	spans []lex.Span
	left  int // bytes that may still be coloured
}

// newPainter returns a painter for lines before which open is open.
func newPainter(language string, open lex.State) *painter {
	return &painter{lang: lex.For(language), state: open, left: colourBlock}
}

// colours returns the colours of the next line, valid until the next call. A long line is only
// coloured at its beginning; lex.Colors says how.
func (p *painter) colours(line []byte) []lex.Span {
	p.spans = p.spans[:0]
	// The text is too long to colour, and the line may open or close something.
	if p.left -= len(line); p.left < 0 {
		p.state = 0
		return nil
	}
	p.spans, p.state = p.lang.Colors(line, p.state, p.spans)
	return p.spans
}

// nextLine cuts the first line off a text. It returns the line without its end, the rest, and the
// line's length with its end.
func nextLine(text []byte) (line, rest []byte, size int) {
	i := bytes.IndexByte(text, '\n')
	if i < 0 {
		return text, nil, len(text)
	}
	return bytes.TrimSuffix(text[:i], []byte("\r")), text[i+1:], i + 1
}

func appendInt(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }
