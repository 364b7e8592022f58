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
	"strings"
)

// Class is what a run of bytes is.
type Class uint8

// The classes. Plain is everything that no other class takes.
const (
	Plain Class = iota
	Comment
	String
	Number
	Keyword
	Type
	Directive
)

// String is the name of a class, for programs.
func (c Class) String() string {
	return [...]string{Plain: "plain", Comment: "comment", String: "string", Number: "number", Keyword: "keyword", Type: "type", Directive: "directive"}[c]
}

// Span is a run of bytes of a line that is of a class other than Plain.
type Span struct {
	Start, End int
	Class      Class
}

// State is what the lines before leave open; 0 is nothing. The low byte is one
// more than the number of the fence, the high byte how deep it is nested or,
// of a raw text, how many # close it. Markup keeps its part in the low byte too.
type State uint16

// fence is what stands around a comment or a text.
type fence struct {
	open, close string
	class       Class
	escape      byte // takes the meaning from the byte after it; 0 for none
	lines       bool // may go over several lines
	nests       bool
	hashes      bool // r#"..."#: as many # close it as opened it
	char        bool // one character: 'a' is a text, 'a alone is none
	first       bool // opens, before a letter, and closes at the beginning of a line only
}

// Lang is a family of languages and how it is written. It is immutable once it is
// prepared.
type Lang struct {
	names     string // that go-enry gives them, separated by commas
	comments  string // what begins a comment to the end of the line, separated by line breaks: after a space where it begins with one, first on its line where it begins with ^
	fences    []fence
	keywords  string
	types     string
	fold      bool   // words are in any case
	extra     string // bytes of words besides letters, digits and _
	bare      byte   // takes the meaning from the byte after it outside texts too; 0 for none
	directive byte   // begins a directive where it is first on its line; 0 for none
	markup    bool   // texts stand in tags only
	scripts   bool   // of markup: elements hold scripts and styles

	begins []string // comments, one by one
	words  map[string]Class
	kinds  [256]kind
}

// kind is what may begin with a byte.
type kind uint8

const (
	opens kind = 1 << iota // a comment or a text
	word
	digit
)

// prepare makes the tables of words and bytes.
func (l *Lang) prepare() *Lang {
	l.begins, l.words = strings.FieldsFunc(l.comments, func(r rune) bool { return r == '\n' }), map[string]Class{}
	for w := range strings.FieldsSeq(l.types) {
		l.words[w] = Type
	}
	for w := range strings.FieldsSeq(l.keywords) {
		l.words[w] = Keyword // also what is a type elsewhere in the family
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

// Line appends the spans of one line, given without its end, in their order,
// and returns what it leaves open.
func (l *Lang) Line(line []byte, state State, spans []Span) ([]Span, State) {
	if l.markup {
		return l.markupLine(line, state, spans)
	}

	// What the lines before left open is closed first, or takes all of the line.
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
		if i := len(line) - len(bytes.TrimLeft(line, " \t")); i < len(line) && line[i] == l.directive {
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

// opened is the comment or text that begins at a place: its end, its class and
// what it leaves open. end is at where none begins.
func (l *Lang) opened(line []byte, at int) (end int, class Class, next State) {
	// A comment goes to the end of the line.
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

// longer reports whether a fence opens by more bytes than these, as --[[ does in
// a language in which -- begins a comment.
func (l *Lang) longer(rest []byte, n int) bool {
	for i := range l.fences {
		if open := l.fences[i].open; len(open) > n && has(rest, open) {
			return true
		}
	}
	return false
}

// begins reports whether a fence opens at a place, where its inside begins and
// how many # it has.
func (f *fence) begins(line []byte, at int) (begin, hashes int, ok bool) {
	rest := line[at:]
	if !has(rest, f.open) || f.open[0] >= 'a' && f.open[0] <= 'z' && at > 0 && wordLength(line[at-1:at]) > 0 {
		return 0, 0, false
	}

	// What stands around the fence decides whether it is one.
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

	// 'a is no text but the name of a lifetime, or an apostrophe.
	if f.char {
		inside := line[begin:]
		close := bytes.IndexByte(inside, f.close[0])
		if len(inside) < 2 || inside[0] != '\\' && (close < 1 || close > 4 || close > 1 && inside[0] < 0x80) {
			return 0, 0, false
		}
	}
	return begin, 0, true
}

// rest finds the end of a fence whose inside goes on at a place. open is how
// deep it is still open at the end of the line, -1 where it closes.
func (f *fence) rest(line []byte, at, depth int) (end, open int) {
	// The escape first: what it stands before closes nothing, not even itself.
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
			// On to the next byte that may be one of these.
			for at++; at < len(line) && !f.mayTurn(line[at]); at++ {
			}
		}
	}
	return len(line), depth
}

// mayTurn reports whether an escape, the end, or one more beginning may begin with a byte.
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

// class is what a word is.
func (l *Lang) class(word []byte) Class {
	if len(word) > 20 {
		return Plain // no word of a table is so long
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

// number is the end of a number that begins at a place.
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

// wordLength is how many letters, digits and _ a text begins with.
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

// add appends a span, or makes the last one longer where it is of the same class.
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

// Enter guesses what is open where a part of a file begins whose beginning is
// not known: a comment that closes before any opens was open before.
func (l *Lang) Enter(part []byte) State {
	for i := range l.fences {
		f := &l.fences[i]
		if f.class != Comment || f.open == f.close {
			continue
		}
		if closes := bytes.Index(part, []byte(f.close)); closes >= 0 && !bytes.Contains(part[:closes], []byte(f.open)) {
			return State(i+1) | 1<<8
		}
	}
	return 0
}
