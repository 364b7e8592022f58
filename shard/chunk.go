package shard

import (
	"bytes"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/shard/match"
)

// chunks makes chunks of whole lines around spans, with lines of context. Chunks
// that touch or overlap become one: with two lines of context, matches in lines
// 10, 12 and 30 are the chunks 8 to 14 and 28 to 32.
func (s *search) chunks(e *evaluator, spans []match.Span) ([]Chunk, error) {
	var out []Chunk
	for i := 0; i < len(spans); {
		from, to, err := s.lines(e, spans[i])
		if err != nil {
			return nil, err
		}

		// As long as the lines of the next span touch these, it joins them.
		k := i + 1
		for ; k < len(spans); k++ {
			a, b, err := s.lines(e, spans[k])
			if err != nil {
				return nil, err
			}

			if a > to {
				break
			}

			to = max(to, b)
		}

		c, err := s.chunk(e, from, to, spans[i:k])
		if err != nil {
			return nil, err
		}

		out = append(out, c)
		i = k
	}
	return out, nil
}

// lines returns where the lines of a span begin and end, with context.
func (s *search) lines(e *evaluator, sp match.Span) (from, to int, err error) {
	if from, err = e.t.lineStart(sp.Start); err != nil {
		return 0, 0, err
	}

	// A match that ends with a newline ends its last line.
	last := sp.End
	if sp.End > sp.Start {
		last--
	}

	if to, err = e.t.lineEnd(last); err != nil {
		return 0, 0, err
	}

	// Lines of context: one more at each end in a round.
	for range s.r.ContextLines {
		if from > 0 {
			if from, err = e.t.lineStart(from - 1); err != nil {
				return 0, 0, err
			}
		}

		if to < e.t.size {
			if to, err = e.t.lineEnd(to); err != nil {
				return 0, 0, err
			}
		}
	}
	return from, to, nil
}

// chunk makes one chunk of the lines in [from, to).
func (s *search) chunk(e *evaluator, from, to int, spans []match.Span) (Chunk, error) {
	if err := e.t.need(from, to); err != nil {
		return Chunk{}, err
	}

	line, err := e.t.lineNumber(from)
	if err != nil {
		return Chunk{}, err
	}

	// A copy: the buffer is used for the next document.
	content := append([]byte(nil), e.t.buf[from:to]...)
	c := Chunk{Content: content, Start: Position{Offset: uint32(from), Line: line, Column: 1}}

	w := walker{text: content, base: from, line: line}
	for _, sp := range spans {
		start := w.to(sp.Start) // before the end: offsets must grow
		c.Ranges = append(c.Ranges, Range{Start: start, End: w.to(sp.End)})
	}

	if c.Symbols, err = e.symbolsOf(spans); err == nil && s.r.Around {
		c.Around, err = e.around(c)
	}
	return c, err
}

// walker turns offsets into positions. Offsets must not become smaller from call
// to call: it counts each line and rune once.
type walker struct {
	text      []byte
	base      int    // offset of text in the file
	at        int    // in text: newlines before it are counted
	lineStart int    // in text: where the present line begins
	line      uint32 // its number
	column    uint32 // runes of the line before columnAt
	columnAt  int    // in text
}

// to returns the position of an offset.
func (w *walker) to(offset int) Position {
	i := offset - w.base

	// On to the line.
	if n := bytes.Count(w.text[w.at:i], newline); n > 0 {
		w.line += uint32(n)
		w.lineStart = bytes.LastIndexByte(w.text[:i], '\n') + 1
		w.column, w.columnAt = 0, w.lineStart
	}
	w.at = i

	// On to the column. In the middle of a rune nothing is remembered: the rune
	// would be counted in two pieces.
	column := w.column + uint32(utf8.RuneCount(w.text[w.columnAt:i]))
	if i == len(w.text) || utf8.RuneStart(w.text[i]) {
		w.column, w.columnAt = column, i
	}

	return Position{Offset: uint32(offset), Line: w.line, Column: column + 1}
}

// nameRanges turns spans of a path into ranges.
func nameRanges(path string, spans []match.Span) []Range {
	if len(spans) == 0 {
		return nil
	}

	// Spans ascend, so that one walk over the path finds all of their places.
	w := walker{text: []byte(path), line: 1}
	ranges := make([]Range, len(spans))
	for i, sp := range spans {
		start := w.to(sp.Start)
		ranges[i] = Range{Start: start, End: w.to(sp.End)}
	}
	return ranges
}
