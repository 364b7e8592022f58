package lex

import "bytes"

// Bounds on the coloring of a line. A minified file may be one line.
const (
	MaxColored = 4 << 10  // bytes of a line that are colored
	MaxLine    = 64 << 10 // a longer line is not colored, and nothing is open after it
)

// Colors appends the spans of one line as Line does, within the bounds.
func (l *Lang) Colors(line []byte, state State, spans []Span) ([]Span, State) {
	if len(line) > MaxLine {
		return spans, 0
	}
	return l.Line(line[:min(len(line), MaxColored)], state, spans)
}

// After returns what the lines of a text leave open, if state is open at its start.
func (l *Lang) After(text []byte, state State) State {
	var spans []Span
	for len(text) > 0 {
		line := text
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		// Most lines open nothing.
		if state == 0 && !l.mayOpen(line) {
			continue
		}
		spans, state = l.Colors(bytes.TrimSuffix(line, []byte{'\r'}), state, spans[:0])
	}
	return state
}

// mayOpen reports whether a line has a byte that a comment or a string may begin with.
func (l *Lang) mayOpen(line []byte) bool {
	if l.markup {
		return true
	}
	for _, b := range line {
		if l.kinds[b]&opens != 0 {
			return true
		}
	}
	return false
}

// Reader tells what is open at lines of a text. It reads each line once.
type Reader struct {
	lang *Lang
	text []byte
	open State
	at   int // open is what is open here
}

// Reader returns a reader of a text at whose start a state is open.
func (l *Lang) Reader(text []byte, open State) *Reader {
	return &Reader{lang: l, text: text, open: open}
}

// OpenAt returns what is open at the start of the line at an offset. Offsets must not descend. For one
// outside of the text it returns what it returned last.
func (r *Reader) OpenAt(line int) State {
	if r.at <= line && line <= len(r.text) {
		r.open, r.at = r.lang.After(r.text[r.at:line], r.open), line
	}
	return r.open
}
