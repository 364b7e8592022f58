package lex

import "bytes"

// Bits of State for markup, between the fence's index and its depth: in a tag, or the index in
// embedded plus one. Outside, only tags and comments matter.
const (
	inTag  State = 1 << 4
	inside State = 1 << 5
	holder       = 6 // bits right of the index in embedded
	parts  State = 0xf0
)

var embedded = [...]struct{ name, language string }{{"script", "JavaScript"}, {"style", "CSS"}}

// markupLine is the version of Line for markup.
func (l *Lang) markupLine(line []byte, state State, spans []Span) ([]Span, State) {
	// Only fences of the markup itself; others belong to the embedded language.
	at := 0
	if open := state &^ parts; open != 0 && state&inside == 0 {
		f := &l.fences[(open&0xff)-1]
		end, depth := f.rest(line, 0, 1)
		if spans = add(spans, 0, end, f.class); depth >= 0 {
			return spans, state
		}
		at, state = end, state&parts
	}

	for at < len(line) {
		switch {
		case state&inside != 0:
			spans, at, state = element(line, at, state, spans)
		case state&inTag != 0:
			spans, at, state = l.tag(line, at, state, spans)
		default:
			spans, at, state = l.text(line, at, spans)
		}
	}
	return spans, state
}

// text continues to the next tag, or through a comment.
func (l *Lang) text(line []byte, at int, spans []Span) ([]Span, int, State) {
	begin := bytes.IndexByte(line[at:], '<')
	if begin < 0 {
		return spans, len(line), 0
	}
	at += begin
	if end, class, open := l.opened(line, at); end > at {
		return add(spans, at, end, class), end, open
	}

	// The name of an element follows the bracket directly.
	name, state := at+1, inTag
	if rest := line[name:]; has(rest, "/") || has(rest, "!") || has(rest, "?xml") {
		name++
	}
	if name == len(line) || l.kinds[line[name]]&word == 0 {
		return spans, at + 1, 0
	}
	end := name + 1
	for end < len(line) && l.kinds[line[end]]&(word|digit) != 0 {
		end++
	}
	for i, e := range embedded {
		if l.scripts && name == at+1 && bytes.EqualFold(line[name:end], []byte(e.name)) {
			state |= State(i+1) << holder
		}
	}
	return add(spans, name, end, Keyword), end, state
}

// tag continues through the next value of a tag, or to the end of the tag.
func (l *Lang) tag(line []byte, at int, state State, spans []Span) ([]Span, int, State) {
	for ; at < len(line); at++ {
		switch line[at] {
		case '>':
			if state &^= inTag; state != 0 {
				state |= inside
			}
			return spans, at + 1, state
		case '"', '\'':
			end, class, open := l.opened(line, at)
			return add(spans, at, end, class), end, state | open
		}
	}
	return spans, at, state
}

// element colours the content of an element, up to its closing tag.
func element(line []byte, at int, state State, spans []Span) ([]Span, int, State) {
	e := embedded[state&parts>>holder-1]
	end, after := len(line), state&parts
	for i := at; i+2+len(e.name) <= len(line); i++ {
		if has(line[i:], "</") && bytes.EqualFold(line[i+2:i+2+len(e.name)], []byte(e.name)) {
			end, after = i, 0
			break
		}
	}

	// The embedded language has its own positions.
	inner, open := For(e.language).Line(line[at:end], state&^parts, spans[len(spans):])
	for i := range inner {
		inner[i].Start, inner[i].End = inner[i].Start+at, inner[i].End+at
	}
	if after != 0 {
		after |= open
	}
	return append(spans, inner...), end, after
}
