// Package lex colours source code: it finds comments, strings, numbers,
// keywords, types and directives in one pass over the bytes of a line.
//
// It parses nothing. A row of a table (langs.go) says how a family of languages
// writes comments and strings and which words it has; one scanner reads all of
// them. What a line leaves open, a comment or a text over several lines, is one
// number, the [State], so that colouring may begin at any line whose state is
// known:
//
//	line   x := `one /* two     State{string `}
//	line   three` /* four       State{comment /* */}
//	line   five */ y := 1       0
//
// A text that should end on its line and does not is no text: a misread
// apostrophe never colours more than nothing.
package lex

import (
	"bytes"
	"regexp"
	"strings"
)

// Class is the class of a run of bytes.
type Class uint8

// Classes. Plain is everything else.
const (
	Plain Class = iota
	Comment
	String
	Number
	Keyword
	Type
	Directive
)

// String returns the name of a class, for programs.
func (c Class) String() string {
	return [...]string{Plain: "plain", Comment: "comment", String: "string", Number: "number", Keyword: "keyword", Type: "type", Directive: "directive"}[c]
}

// Span is a run of bytes of a line with a class other than Plain.
type Span struct {
	Start, End int
	Class      Class
}

// State is what is open at the end of a line; 0 is nothing. The low byte is the fence's index
// plus one. The high byte is the nesting depth, or for a raw string the number of # that close
// it. Markup also uses the low byte.
type State uint16

// fence describes the start and end of a comment or string.
type fence struct {
	open, close string
	class       Class
	escape      byte // escapes the next byte; 0 for none
	lines       bool // may span lines
	nests       bool
	hashes      bool // r#"..."#: closed by as many # as opened it
	char        bool // a single character: 'a' is a string, 'a alone is not
	first       bool // opens before a letter, and only closes at the beginning of a line
}

// Lang is a family of languages. It is immutable after prepare.
type Lang struct {
	names     string // of go-enry, separated by commas
	comments  string // starts of line comments, separated by newlines; one with a leading space only counts at the beginning of a line
	fences    []fence
	keywords  string
	types     string
	fold      bool   // keywords match in any case
	extra     string // bytes of words besides letters, digits and _
	bare      byte   // escapes the next byte outside strings too; 0 for none
	directive byte   // starts a directive at the beginning of a line; 0 for none
	markup    bool   // strings are only in tags
	scripts   bool   // of markup: elements hold scripts and styles

	preprocessed bool // # begins a comment, but not before a directive of C's preprocessor

	begins []string // line comments
	words  map[string]Class
	kinds  [256]kind
}

// kind is what may begin with a byte.
type kind uint8

const (
	opens kind = 1 << iota // a comment or a string
	word
	digit
)

// prepare builds the tables of words and bytes.
func (l *Lang) prepare() *Lang {
	l.begins, l.words = strings.FieldsFunc(l.comments, func(r rune) bool { return r == '\n' }), map[string]Class{}
	for w := range strings.FieldsSeq(l.types) {
		l.words[w] = Type
	}
	for w := range strings.FieldsSeq(l.keywords) {
		l.words[w] = Keyword // even if it is a type in another language of the family
	}

	for b := range 256 {
		switch {
		case b >= '0' && b <= '9':
			l.kinds[b] = digit
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b == '_', b >= 0x80, strings.IndexByte(l.extra, byte(b)) >= 0:
			l.kinds[b] = word
		}
	}
	for _, f := range l.fences {
		l.kinds[f.open[0]] |= opens
	}
	for _, c := range l.begins {
		l.kinds[strings.TrimLeft(c, " ^")[0]] |= opens
	}
	return l
}

// preprocessor matches a directive of C's preprocessor.
var preprocessor = regexp.MustCompile(`^#[ \t]*(?:define|undef|include|if|ifdef|ifndef|elif|else|endif|error|warning|pragma)\b`)

// Line appends the spans of one line, given without its end, in order. It returns the state at
// its end.
func (l *Lang) Line(line []byte, state State, spans []Span) ([]Span, State) {
	if l.markup {
		return l.markupLine(line, state, spans)
	}

	// First close what the previous lines left open; it may take the whole line.
	at := 0
	if state != 0 {
		f := &l.fences[(state&0xff)-1]
		end, open := f.rest(line, 0, int(state>>8))
		if spans = add(spans, 0, end, f.class); open >= 0 {
			return spans, state&0xff | State(open)<<8
		}
		at = end
	}

	if l.directive != 0 && state == 0 {
		if i := len(line) - len(bytes.TrimLeft(line, " \t")); i < len(line) && (line[i] == l.directive || l.preprocessed && preprocessor.Match(line[i:])) {
			at = i + 1 + wordLength(line[i+1:])
			spans = add(spans, i, at, Directive)
		}
	}

	for at < len(line) {
		k := l.kinds[line[at]]
		if l.bare != 0 && line[at] == l.bare {
			at += 2
			continue
		}
		if k&opens != 0 {
			if end, class, next := l.opened(line, at); end > at {
				if spans = add(spans, at, end, class); next != 0 {
					return spans, next
				}
				at = end
				continue
			}
		}

		switch {
		case k&word != 0:
			end := at + 1
			for end < len(line) && l.kinds[line[end]]&(word|digit) != 0 {
				end++
			}
			if class := l.class(line[at:end]); class != Plain {
				spans = add(spans, at, end, class)
			}
			at = end
		case k&digit != 0:
			end := number(line, at)
			spans = add(spans, at, end, Number)
			at = end
		default:
			at++
		}
	}
	return spans, 0
}

// opened returns the comment or string that begins at a position: its end, class and open state.
// end equals at if none begins.
func (l *Lang) opened(line []byte, at int) (end int, class Class, next State) {
	// A line comment ends with the line.
	rest := line[at:]
	for _, c := range l.begins {
		c, bound := strings.CutPrefix(c, " ")
		c, first := strings.CutPrefix(c, "^")
		if !has(rest, c) || l.longer(rest, len(c)) {
			continue
		}
		if (!bound || at == 0 || strings.IndexByte(" \t;(", line[at-1]) >= 0) && (!first || len(bytes.TrimLeft(line[:at], " \t")) == 0) {
			return len(line), Comment, 0
		}
	}

	for i := range l.fences {
		f := &l.fences[i]
		begin, hashes, ok := f.begins(line, at)
		if !ok {
			continue
		}

		depth := hashes
		if f.nests {
			depth = 1
		}
		end, open := f.rest(line, begin, depth)
		switch {
		case open < 0:
			return end, f.class, 0
		case f.lines:
			return end, f.class, State(i+1) | State(open)<<8
		}
	}
	return at, Plain, 0
}

// longer reports whether a fence opens with more than n bytes, as --[[ does where -- begins a
// comment.
func (l *Lang) longer(rest []byte, n int) bool {
	for i := range l.fences {
		if open := l.fences[i].open; len(open) > n && has(rest, open) {
			return true
		}
	}
	return false
}

// begins reports whether a fence opens at a position, where its inside begins and how many # it
// has.
func (f *fence) begins(line []byte, at int) (begin, hashes int, ok bool) {
	rest := line[at:]
	if !has(rest, f.open) || f.open[0] >= 'a' && f.open[0] <= 'z' && at > 0 && wordLength(line[at-1:at]) > 0 {
		return 0, 0, false
	}

	// Check what is around the fence.
	begin = at + len(f.open)
	if f.first && (at > 0 || wordLength(line[begin:]) == 0) {
		return 0, 0, false
	}

	if f.hashes {
		for begin < len(line) && line[begin] == '#' && hashes < 200 {
			begin, hashes = begin+1, hashes+1
		}
		if begin >= len(line) || line[begin] != '"' {
			return 0, 0, false
		}
		return begin + 1, hashes, true
	}

	// 'a alone is a lifetime or an apostrophe.
	if f.char {
		inside := line[begin:]
		close := bytes.IndexByte(inside, f.close[0])
		if len(inside) < 2 || inside[0] != '\\' && (close < 1 || close > 4 || close > 1 && inside[0] < 0x80) {
			return 0, 0, false
		}
	}
	return begin, 0, true
}

// rest finds the end of a fence that is open at a position. open is its depth at the end of the
// line, -1 if it closes.
func (f *fence) rest(line []byte, at, depth int) (end, open int) {
	// Escapes come first, because an escaped end closes nothing.
	for at < len(line) {
		switch rest := line[at:]; {
		case f.escape != 0 && rest[0] == f.escape:
			at += 2
		case has(rest, f.close) && (at == 0 || !f.first) && f.closed(rest, depth):
			if at += len(f.close); f.hashes {
				return at + depth, -1
			}
			if depth--; !f.nests || depth <= 0 {
				return at, -1
			}
		case f.nests && has(rest, f.open):
			at += len(f.open)
			depth = min(depth+1, 200)
		default:
			// Skip to the next byte that matters.
			for at++; at < len(line) && !f.mayTurn(line[at]); at++ {
			}
		}
	}
	return len(line), depth
}

// mayTurn reports whether an escape, the end, or another start may begin with a byte.
func (f *fence) mayTurn(b byte) bool {
	return b == f.escape || b == f.close[0] || f.nests && b == f.open[0]
}

// closed reports whether enough # follow a closing quote.
func (f *fence) closed(rest []byte, hashes int) bool {
	if !f.hashes {
		return true
	}
	rest = rest[len(f.close):]
	return len(rest) >= hashes && bytes.Count(rest[:hashes], []byte{'#'}) == hashes
}

// class returns the class of a word.
func (l *Lang) class(word []byte) Class {
	if len(word) > 20 {
		return Plain // longer than any keyword
	}
	if l.fold {
		var low [20]byte
		for i, b := range word {
			if b >= 'A' && b <= 'Z' {
				b += 'a' - 'A'
			}
			low[i] = b
		}
		return l.words[string(low[:len(word)])]
	}
	return l.words[string(word)]
}

// number returns the end of a number that begins at a position.
func number(line []byte, at int) int {
	for at++; at < len(line); at++ {
		b := line[at]
		exponent := (b == '+' || b == '-') && (line[at-1] == 'e' || line[at-1] == 'E') && at+1 < len(line) && line[at+1] >= '0' && line[at+1] <= '9'
		point := b == '.' && line[at-1] != '.' && (at+1 >= len(line) || line[at+1] != '.')
		if wordLength(line[at:at+1]) == 0 && !exponent && !point {
			break
		}
	}
	return at
}

// wordLength returns the length of the word at the beginning of a text.
func wordLength(s []byte) int {
	for i, b := range s {
		if (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') && (b < '0' || b > '9') && b != '_' {
			return i
		}
	}
	return len(s)
}

func has(s []byte, prefix string) bool {
	return len(s) >= len(prefix) && string(s[:len(prefix)]) == prefix
}

// add appends a span, or extends the last one if it has the same class.
func add(spans []Span, start, end int, class Class) []Span {
	if start == end {
		return spans
	}
	if n := len(spans); n > 0 && spans[n-1].End == start && spans[n-1].Class == class {
		spans[n-1].End = end
		return spans
	}
	return append(spans, Span{start, end, class})
}
