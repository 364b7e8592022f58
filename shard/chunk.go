package shard

import (
	"bytes"
	"sync/atomic"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/shard/match"
)

// A line may be a whole file. Where one goes on for more than longLine bytes before or
// behind a match, so many of cutMargin are shown.
const (
	longLine  = 8 << 10
	cutMargin = 1 << 10
)

// chunker makes the chunks of one document. It looks for the ends of a line and for
// columns once a line, however many matches the line has.
type chunker struct {
	e       *evaluator
	context int
	around  bool
	stopped *atomic.Bool // the request has ended: what is made is of no use

	before, behind lineOfContext
	w              walker
}

// lineOfContext is where the context of a line begins or ends, for the line that was
// looked at last.
type lineOfContext struct {
	line, at int
	known    bool
}

// chunks makes chunks of whole lines around spans, with lines of context. Chunks
// that touch or overlap become one: with two lines of context, matches in lines
// 10, 12 and 30 are the chunks 8 to 14 and 28 to 32. Of an overlong line the part around
// a match is enough.
func (s *search) chunks(e *evaluator, spans []match.Span) ([]Chunk, error) {
	c := &chunker{e: e, context: s.r.ContextLines, around: s.r.Around, stopped: &s.stopped}
	var out []Chunk
	for i := 0; i < len(spans); {
		from, to, err := c.shownRange(spans[i])
		if err != nil {
			return nil, err
		}

		// As long as the lines of the next span touch these, it joins them.
		k := i + 1
		for ; k < len(spans) && !c.stopped.Load(); k++ {
			a, b, err := c.shownRange(spans[k])
			if err != nil {
				return nil, err
			}

			if a > to {
				break
			}

			to = max(to, b)
		}

		made, err := c.chunk(from, to, spans[i:k])
		if err != nil || c.stopped.Load() {
			return nil, err
		}

		out = append(out, made)
		i = k
	}
	return out, nil
}

// shownRange returns the byte range to show for a match: its lines with context, or a cut
// around it where a line is too long.
func (c *chunker) shownRange(sp match.Span) (from, to int, err error) {
	if from, err = c.e.t.lineStart(sp.Start); err == nil {
		if sp.Start-from > longLine {
			from = c.e.t.runeStart(sp.Start - cutMargin)
		} else {
			from, err = c.contextBefore(from)
		}
	}
	if err != nil {
		return 0, 0, err
	}

	// A match that ends with a newline ends its last line.
	last := sp.End
	if sp.End > sp.Start {
		last--
	}

	if to, err = c.e.t.lineEnd(last); err != nil {
		return 0, 0, err
	}
	if to-sp.End > longLine {
		return from, c.e.t.runeStart(sp.End + cutMargin), nil
	}
	to, err = c.contextBehind(to)
	return from, to, err
}

// contextBefore goes back over the lines of context before the line at from. It stops
// within a line that is too long.
func (c *chunker) contextBefore(from int) (int, error) {
	if c.before.known && c.before.line == from {
		return c.before.at, nil
	}

	at := from
	for range c.context {
		if at == 0 {
			break
		}
		start, err := c.e.t.lineStart(at - 1)
		if err != nil {
			return 0, err
		}
		if at-start > longLine {
			at = c.e.t.runeStart(at - cutMargin)
			break
		}
		at = start
	}
	c.before = lineOfContext{from, at, true}
	return at, nil
}

// contextBehind is contextBefore for the lines behind the one that ends at to.
func (c *chunker) contextBehind(to int) (int, error) {
	if c.behind.known && c.behind.line == to {
		return c.behind.at, nil
	}

	at := to
	for range c.context {
		if at == c.e.t.size {
			break
		}
		end, err := c.e.t.lineEnd(at)
		if err != nil {
			return 0, err
		}
		if end-at > longLine {
			at = c.e.t.runeStart(at + cutMargin)
			break
		}
		at = end
	}
	c.behind = lineOfContext{to, at, true}
	return at, nil
}

// chunk makes one chunk of [from, to).
func (c *chunker) chunk(from, to int, spans []match.Span) (out Chunk, err error) {
	t := &c.e.t
	if err := t.need(from, to); err != nil {
		return Chunk{}, err
	}
	if err := c.measure(&out, from, to); err != nil {
		return Chunk{}, err
	}

	// A copy: the buffer is used for the next document.
	out.Content = append([]byte(nil), t.buf[from:to]...)
	out.Start = c.w.to(from)
	out.Ranges = make([]Range, 0, len(spans))
	for _, sp := range spans {
		start := c.w.to(sp.Start) // before the end: offsets must grow
		out.Ranges = append(out.Ranges, Range{Start: start, End: c.w.to(sp.End)})
	}

	if out.Symbols, err = c.e.symbolsOf(spans); err == nil && c.around {
		out.Around, err = c.e.around(out)
	}
	return out, err
}

// measure sets what is cut of the lines at the ends of a chunk, and brings the walker to
// the line that it begins in.
func (c *chunker) measure(out *Chunk, from, to int) error {
	t := &c.e.t
	if to < t.size && t.buf[to-1] != '\n' {
		end, err := t.lineEnd(to)
		if err != nil {
			return err
		}
		out.After = uint32(end - to)
	}

	line, err := t.lineStart(from)
	if err != nil {
		return err
	}
	out.Before = uint32(from - line)

	// In the line of the chunk before it goes on where it is.
	if c.w.text != nil && c.w.lineStart == line && c.w.at <= from {
		c.w.text = t.buf
		return nil
	}
	number, err := t.lineNumber(line)
	c.w = walker{text: t.buf, at: line, lineStart: line, columnAt: line, line: number}
	return err
}

// First keeps the first n ranges of a chunk, with so many lines of context around them.
// What is around the others would tell how many a shard had found before the answer was
// cut.
func (c Chunk) First(n, context int) Chunk {
	c.Ranges = c.Ranges[:n]

	// Symbols and Around run beside Ranges, and are cut with them.
	c.Symbols = c.Symbols[:min(n, len(c.Symbols))]
	c.Around = c.Around[:min(n, len(c.Around))]

	last, end := 0, 0
	for _, r := range c.Ranges {
		at := int(r.End.Offset - c.Start.Offset)
		last = max(last, at)
		if r.End.Offset > r.Start.Offset {
			at-- // a match that ends with a newline ends its last line
		}
		end = max(end, endOfLine(c.Content, at))
	}

	// It ends as if there were no others.
	if c.length(last, end) > longLine {
		return c.cutAt(runeStart(c.Content, last+cutMargin))
	}
	for range context {
		next := endOfLine(c.Content, end)
		if c.length(end, next) > longLine {
			return c.cutAt(runeStart(c.Content, end+cutMargin))
		}
		end = next
	}
	return c.cutAt(end)
}

// length is how many bytes the file has from a place in Content to the end of a line.
func (c *Chunk) length(from, end int) int {
	if end == len(c.Content) {
		end += int(c.After)
	}
	return end - from
}

// cutAt ends the chunk at a place in Content.
func (c Chunk) cutAt(at int) Chunk {
	at = min(at, len(c.Content))
	after := 0
	if at == 0 || c.Content[at-1] != '\n' {
		after = c.length(at, endOfLine(c.Content, at))
	}
	c.Content, c.After = c.Content[:at], uint32(after)
	return c
}

// endOfLine is where the line of a place ends, behind its newline.
func endOfLine(text []byte, at int) int {
	if at < len(text) {
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			return at + i + 1
		}
	}
	return len(text)
}

// walker turns offsets into positions. Offsets must not become smaller from call
// to call: it counts each line and rune once.
type walker struct {
	text      []byte
	at        int    // newlines before it are counted
	lineStart int    // where the present line begins
	line      uint32 // its number
	column    uint32 // runes of the line before columnAt
	columnAt  int
}

// to returns the position of an offset.
func (w *walker) to(i int) Position {
	// On to the line.
	if n := bytes.Count(w.text[w.at:i], newline); n > 0 {
		w.line += uint32(n)
		w.lineStart = w.at + bytes.LastIndexByte(w.text[w.at:i], '\n') + 1
		w.column, w.columnAt = 0, w.lineStart
	}
	w.at = i

	// On to the column, up to the rune that the offset is in: it would be counted in two
	// pieces. The bytes of half a rune are a column each.
	whole := runeStart(w.text, i)
	w.column, w.columnAt = w.column+uint32(utf8.RuneCount(w.text[w.columnAt:whole])), whole
	return Position{Offset: uint32(i), Line: w.line, Column: w.column + uint32(i-whole) + 1}
}

// shiftBy adds the bytes of a mark in front of the text to the offsets of chunks.
func shiftBy(chunks []Chunk, mark int) {
	if mark == 0 {
		return
	}
	for i := range chunks {
		chunks[i].Start.Offset += uint32(mark)
		for k := range chunks[i].Ranges {
			r := &chunks[i].Ranges[k]
			r.Start.Offset += uint32(mark)
			r.End.Offset += uint32(mark)
		}
	}
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
