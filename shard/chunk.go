package shard

import (
	"bytes"
	"sync/atomic"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/shard/lex"
	"github.com/shoalsearch/shoal/shard/match"
)

// A line may be a whole file. If it has more than longLine bytes before or after a match, a chunk
// shows only cutMargin of them.
const (
	longLine  = 8 << 10
	cutMargin = 1 << 10
	maxLexed  = 1 << 20 // bytes before a chunk that are read to know what is open at its start
)

// chunker makes the chunks of one document. It finds the ends and the columns of a line once,
// however many matches the line has.
type chunker struct {
	e       *evaluator
	context int
	around  bool
	lang    *lex.Lang    // with Request.Lexed; else nil
	open    lex.State    // what is open at openAt
	openAt  int          // start of the latest chunk
	stopped *atomic.Bool // set when the request has ended: then the chunker may return early

	before, behind contextCache
	w              walker
}

// contextCache caches where the context before or after a line ends, for the latest line.
type contextCache struct {
	line  int // offset of the start of the line, or of its end
	at    int // offset of the end of the context
	known bool
}

// makeChunks makes chunks of whole lines around spans, with lines of context. Chunks that touch or
// overlap become one: with two lines of context, matches in lines 10, 12 and 30 are the chunks 8 to
// 14 and 28 to 32. A chunk of an overlong line has only the part around the match.
func (s *search) makeChunks(e *evaluator, language string, spans []match.Span) ([]Chunk, error) {
	c := &chunker{e: e, context: s.r.ContextLines, around: s.r.Around, stopped: &s.stopped}
	if s.r.Lexed {
		c.lang = lex.For(language)
	}
	var out []Chunk
	for i := 0; i < len(spans); {
		from, to, err := c.shownRange(spans[i])
		if err != nil {
			return nil, err
		}

		// Add the next spans to this chunk while their lines touch it.
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

		made, err := c.makeChunk(from, to, spans[i:k])
		if err != nil || c.stopped.Load() {
			return nil, err
		}

		out = append(out, made)
		i = k
	}
	return out, nil
}

// shownRange returns the byte range to show for a match: its lines with context, or a cut around it
// if a line is too long.
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

	// The newline at the end of a match belongs to the last line of the match.
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
	to, err = c.contextAfter(to)
	return from, to, err
}

// contextBefore returns where the context before the line at from begins. It stops inside a line
// that is too long.
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
	c.before = contextCache{from, at, true}
	return at, nil
}

// contextAfter returns where the context after a line ends. The line ends at to.
func (c *chunker) contextAfter(to int) (int, error) {
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
	c.behind = contextCache{to, at, true}
	return at, nil
}

// makeChunk makes one chunk of the bytes [from, to).
func (c *chunker) makeChunk(from, to int, spans []match.Span) (out Chunk, err error) {
	t := &c.e.t
	if err := t.decodeRange(from, to); err != nil {
		return Chunk{}, err
	}
	if err := c.setCuts(&out, from, to); err != nil {
		return Chunk{}, err
	}

	// Copy the text, because the next document overwrites the buffer.
	out.Content = append([]byte(nil), t.buf[from:to]...)
	out.Start = c.w.moveTo(from)
	out.Ranges = make([]Range, 0, len(spans))
	for _, sp := range spans {
		start := c.w.moveTo(sp.Start) // before the end, because offsets must grow
		out.Ranges = append(out.Ranges, Range{Start: start, End: c.w.moveTo(sp.End)})
	}

	if c.lang != nil && out.Before == 0 {
		if out.Open, err = c.openBefore(from); err != nil {
			return Chunk{}, err
		}
	}

	if out.Symbols, err = c.e.symbolsOf(spans); err == nil && c.around {
		out.Around, err = c.e.definitionsAround(out)
	}
	return out, err
}

// openBefore returns what is open at the start of a line. Chunks ascend, so it reads each line once.
func (c *chunker) openBefore(from int) (lex.State, error) {
	t := &c.e.t
	// At most maxLexed bytes: further down in a huge file, assume that nothing is open before them.
	if from-c.openAt > maxLexed {
		start, err := t.lineStart(from - maxLexed)
		if err != nil {
			return 0, err
		}
		c.open, c.openAt = 0, start
	}

	if err := t.decodeRange(c.openAt, from); err != nil {
		return 0, err
	}
	c.open, c.openAt = c.lang.After(t.buf[c.openAt:from], c.open), from
	return c.open, nil
}

// setCuts sets out.Before and out.After: how many bytes the chunk leaves out of its first and its
// last line. It moves the walker to the first line.
func (c *chunker) setCuts(out *Chunk, from, to int) error {
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

	// If the previous chunk ended in the same line, the walker need not count it again.
	if c.w.text != nil && c.w.lineStart == line && c.w.at <= from {
		c.w.text = t.buf
		return nil
	}
	number, err := t.lineNumber(line)
	c.w = walker{text: t.buf, at: line, lineStart: line, columnAt: line, line: number}
	return err
}

// First returns the chunk with its first n ranges and context lines of context after them. It
// removes the text around the other ranges, so that the result does not depend on how many matches
// a shard had found before the answer was cut.
func (c Chunk) First(n, context int) Chunk {
	c.Ranges = c.Ranges[:n]

	// Symbols and Around have an entry for each range, and are cut with Ranges.
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

	// End the chunk where shownRange would end it without the other ranges.
	if c.lengthInFile(last, end) > longLine {
		return c.cutAt(runeStart(c.Content, last+cutMargin))
	}
	for range context {
		next := endOfLine(c.Content, end)
		if c.lengthInFile(end, next) > longLine {
			return c.cutAt(runeStart(c.Content, end+cutMargin))
		}
		end = next
	}
	return c.cutAt(end)
}

// lengthInFile returns the number of bytes in the file from an offset in Content to the end of a
// line. end is the end of the line in Content, which may leave out the rest of its last line.
func (c *Chunk) lengthInFile(from, end int) int {
	if end == len(c.Content) {
		end += int(c.After)
	}
	return end - from
}

// cutAt ends the chunk at an offset in Content.
func (c Chunk) cutAt(at int) Chunk {
	at = min(at, len(c.Content))
	after := 0
	if at == 0 || c.Content[at-1] != '\n' {
		after = c.lengthInFile(at, endOfLine(c.Content, at))
	}
	c.Content, c.After = c.Content[:at], uint32(after)
	return c
}

// endOfLine returns the end of the line that contains an offset, after its newline.
func endOfLine(text []byte, at int) int {
	if at < len(text) {
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			return at + i + 1
		}
	}
	return len(text)
}

// walker turns ascending offsets into positions. It counts each line and rune once.
type walker struct {
	text      []byte
	at        int    // offset up to which newlines are counted
	lineStart int    // where the current line begins
	line      uint32 // number of the current line
	column    uint32 // runes of the current line before columnAt
	columnAt  int    // offset up to which runes are counted
}

// moveTo moves the walker to an offset and returns its position.
func (w *walker) moveTo(i int) Position {
	// Move on to the line.
	if n := bytes.Count(w.text[w.at:i], newline); n > 0 {
		w.line += uint32(n)
		w.lineStart = w.at + bytes.LastIndexByte(w.text[w.at:i], '\n') + 1
		w.column, w.columnAt = 0, w.lineStart
	}
	w.at = i

	// Count runes up to the start of the rune that contains the offset, because a part of a rune
	// would be counted again by the next call. Each byte inside a rune is a column.
	whole := runeStart(w.text, i)
	w.column, w.columnAt = w.column+uint32(utf8.RuneCount(w.text[w.columnAt:whole])), whole
	return Position{Offset: uint32(i), Line: w.line, Column: w.column + uint32(i-whole) + 1}
}

// shiftBy adds the length of a byte order mark to the offsets of chunks.
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

	// Spans ascend, so that one walk over the path finds all positions.
	w := walker{text: []byte(path), line: 1}
	ranges := make([]Range, len(spans))
	for i, sp := range spans {
		start := w.moveTo(sp.Start)
		ranges[i] = Range{Start: start, End: w.moveTo(sp.End)}
	}
	return ranges
}
