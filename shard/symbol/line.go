package symbol

import (
	"bytes"
	"slices"
	"unicode"
)

// sourceLine is a line of a source file, without the white space around it.
type sourceLine struct {
	number uint32
	in     indentation
	text   []byte

	shapeKnown bool // knownShape is set
	knownShape lineShape
}

// newSourceLine splits a line into its indentation and its text, without trailing blanks.
func newSourceLine(number uint32, line []byte) sourceLine {
	end := len(line)
	for end > 0 && (line[end-1] == ' ' || line[end-1] == '\t' || line[end-1] == '\r') {
		end--
	}
	in, text := indentationOf(line[:end])
	return sourceLine{number: number, in: in, text: text}
}

// saysNothing reports whether the indentation of the line says nothing about the end of a
// definition: comments, preprocessor lines and labels may have any.
func (l *sourceLine) saysNothing() bool {
	if len(l.text) == 0 || l.text[0] == '#' || bytes.HasPrefix(l.text, []byte("//")) {
		return true
	}
	last := len(l.text) - 1
	return l.text[last] == ':' && bytes.IndexFunc(l.text[:last], notInWord) < 0
}

// indentation is the indentation of a line: in bytes, and in columns with tabs of eight. Two lines
// are compared only if both measures agree.
type indentation struct{ bytes, columns int }

// indentationOf returns the indentation of a line, and the line without its leading blanks.
func indentationOf(line []byte) (in indentation, text []byte) {
	n := 0
	for n < len(line) && line[n] == ' ' {
		n++
	}

	// If there are only spaces, columns are bytes.
	columns := n
	for ; n < len(line) && (line[n] == ' ' || line[n] == '\t'); n++ {
		if columns++; line[n] == '\t' {
			columns = (columns + 7) &^ 7
		}
	}
	return indentation{n, columns}, line[n:]
}

// compare reports whether a line with indentation a is indented more than one with b, and whether
// both are indented the same.
func (a indentation) compare(b indentation) (deeper, same bool) {
	return a.bytes > b.bytes && a.columns > b.columns, a == b
}

// shallower reports whether a line with indentation a is indented less than one with b.
func (a indentation) shallower(b indentation) bool {
	return a.bytes < b.bytes && a.columns < b.columns
}

// lineShape is what the code of a line tells about the lines that follow.
type lineShape struct {
	braces int  // number of opened minus closed braces
	last   byte // last byte of its code, before a comment
	header bool // it ends inside parameters
	arrow  bool // it ends with => or ->, which a value or statements follow
	ended  bool // it ends with a closing brace or a semicolon, perhaps followed by a comma
}

// isWhole reports whether a definition in the line has no more lines.
func (s lineShape) isWhole() bool { return s.ended && s.braces <= 0 }

// opens reports whether the line ends with an opening bracket.
func (s lineShape) opens() bool { return s.last != 0 && bytes.IndexByte([]byte("{([<"), s.last) >= 0 }

// goesOn reports whether a value that begins in the line goes on in the next.
func (s lineShape) goesOn() bool { return s.opens() || s.braces > 0 || s.last == '=' || s.arrow }

// shape returns the shape of the line, which it computes once.
func (l *sourceLine) shape() lineShape {
	if l.shapeKnown {
		return l.knownShape
	}
	l.shapeKnown = true

	code := l.text
	s := &l.knownShape

	for i, c := range code {
		if i > 0 && startsComment(code, i) {
			code = bytes.TrimRight(code[:i], " \t")
			break
		}

		switch c {
		case '{':
			s.braces++
		case '}':
			s.braces--
		}
	}
	if len(code) == 0 {
		return *s
	}

	// A bracket or a comma at the end leaves parameters open. So does a brace that begins a value.
	s.last = code[len(code)-1]
	beforeLast := byte(0)
	if rest := bytes.TrimRight(code[:len(code)-1], " \t"); len(rest) > 0 {
		beforeLast = rest[len(rest)-1]
	}

	s.arrow = s.last == '>' && (beforeLast == '=' || beforeLast == '-')
	s.header = bytes.IndexByte([]byte("([<,"), s.last) >= 0 || s.last == '{' && bytes.IndexByte([]byte("([<,:="), beforeLast) >= 0
	s.ended = s.last == '}' || s.last == ';' || s.last == ',' && beforeLast == '}'
	return *s
}

// startsComment reports whether a comment up to the end of the line, with // or #, begins at i.
func startsComment(code []byte, i int) bool {
	if code[i] != '/' && code[i] != '#' || code[i-1] != ' ' && code[i-1] != '\t' {
		return false
	}
	rest := code[i+1:]
	if code[i] == '/' {
		return len(rest) > 0 && rest[0] == '/'
	}
	return len(rest) == 0 || rest[0] == ' '
}

// beginsWith reports whether the line begins with a word.
func (l *sourceLine) beginsWith(word string) bool {
	if !bytes.HasPrefix(l.text, []byte(word)) {
		return false
	}
	if len(l.text) == len(word) {
		return true
	}
	return notInWord(rune(l.text[len(word)]))
}

// notInWord reports whether a character cannot be a part of a word.
func notInWord(r rune) bool {
	return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// beginsWithClosingWord reports whether the line begins with a word that closes a block.
func (l *sourceLine) beginsWithClosingWord() bool {
	return slices.ContainsFunc([]string{"end", "fi", "done", "esac"}, l.beginsWith)
}
