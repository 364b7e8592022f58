package lex

import (
	"bytes"
	"slices"
)

// Enter guesses what is open at the beginning of a part of a file: a comment or a long text that
// closes before any opens, a comment whose lines begin with stars, or one that has prose where the
// language has code.
func (l *Lang) Enter(part []byte) State {
	for i := range l.fences {
		f := &l.fences[i]
		closes, open := bytes.Index(part, []byte(f.close)), false
		switch {
		case f.class == Comment && f.open != f.close:
			open = closes >= 0 && !bytes.Contains(part[:closes], []byte(f.open)) || f.open == "/*" && starred(part)
		case f.lines && len(f.close) == 3:
			open = closes >= 0 && endsText(part, closes)
		}
		if open {
			return State(i+1) | 1<<8
		}
	}
	return l.proseState(part)
}

// Words in a row that are prose, and how many of them are no words of the language: these, and more
// than half.
const (
	proseWords   = 4
	foreignWords = 3
)

// proseState returns the state within the comment or the documenting text of a language if a line
// of a part has prose outside of comments and texts; else 0.
func (l *Lang) proseState(part []byte) State {
	at := slices.IndexFunc(l.fences, func(f fence) bool { return f.open == "/*" || f.lines && len(f.close) == 3 && f.open == f.close })
	// Text between tags is prose too.
	if at < 0 || l.fold || l.markup || slices.ContainsFunc(l.fences, func(f fence) bool { return f.open == markup.open }) && bytes.IndexByte(part, '<') >= 0 {
		return 0
	}

	var spans []Span
	state := State(0)
	for line := range bytes.Lines(part) {
		line = bytes.TrimRight(line, "\r\n")
		spans, state = l.Line(line, state, spans[:0])
		from := 0
		for _, s := range spans {
			if s.Class != Comment && s.Class != String {
				continue
			}
			if l.isProse(line[from:s.Start]) {
				return State(at+1) | 1<<8
			}
			from = s.End
		}
		if l.isProse(line[from:]) {
			return State(at+1) | 1<<8
		}
	}
	return 0
}

// isProse reports whether a text has words in a row with a blank between each, as code never has.
func (l *Lang) isProse(text []byte) bool {
	row, foreign := 0, 0
	for len(text) > 0 {
		n := 0
		for n < len(text) && (text[n] >= 'a' && text[n] <= 'z' || text[n] >= 'A' && text[n] <= 'Z') {
			n++
		}
		if n > 0 {
			row++
			if l.words[string(text[:n])] == Plain {
				foreign++
			}
		}
		if row >= proseWords && foreign >= foreignWords && 2*foreign > row {
			return true
		}
		if text = text[n:]; n == 0 || len(text) == 0 || text[0] != ' ' {
			row, foreign = 0, 0
		}
		if len(text) > 0 {
			text = text[1:]
		}
	}
	return false
}

// starred reports whether the first line begins with a star, as the lines of a long comment do. A
// star that a name follows may be an operator.
func starred(part []byte) bool {
	line, _, _ := bytes.Cut(part, []byte{'\n'})
	line = bytes.TrimLeft(line, " \t")
	return len(line) > 0 && line[0] == '*' && (len(line) == 1 || line[1] == ' ' || line[1] == '\t' || line[1] == '\r')
}

// endsText reports whether a fence that opens and closes alike closes a text: its line ends with
// it, and nothing before it, in this line or the one above, leads to a text.
//
//	def f():          return """       """
//	    """opens      opens            closes
func endsText(part []byte, at int) bool {
	rest, _, _ := bytes.Cut(part[at+3:], []byte{'\n'})
	if len(bytes.TrimSpace(rest)) > 0 {
		return false
	}
	before := bytes.TrimRight(part[:at], " \t\r\n")
	return len(before) > 0 && !bytes.ContainsAny(before[len(before)-1:], ":=([{,+") && !bytes.HasSuffix(before, []byte("return"))
}
