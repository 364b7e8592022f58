package lex

import "bytes"

// Bounds on the coloring of a line. A minified file may be one line.
const (
	MaxColored = 4 << 10  // bytes of a line that are coloured
	MaxLine    = 64 << 10 // a longer line is not coloured, and the next line starts anew
)

// Colors appends the spans of one line as Line does, within the bounds.
func (l *Lang) Colors(line []byte, state State, spans []Span) ([]Span, State) {
	if len(line) > MaxLine {
		return spans, 0
	}
	return l.Line(line[:min(len(line), MaxColored)], state, spans)
}

// After returns what the lines of a text leave open. The first begins in a state. It reads some
// 200 MB/s.
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
