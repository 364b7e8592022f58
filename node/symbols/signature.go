package symbols

import (
	"bytes"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/lex"
)

// The limits of a signature.
const (
	signatureLines  = 10  // behind the one with the name
	signatureBytes  = 200 // of all of it
	signatureBefore = 100 // of a line before the name; behind more of them it begins at the name
)

// continuations lists beginnings of lines that continue a signature although no bracket is open.
var continuations = []string{"throws ", "where ", "extends ", "implements ", "-> ", ": "}

// signature returns the source that begins a definition, from the line with its name up to its
// body. Lines are joined by single spaces, without comments at their ends. at is the offset of the
// name in text, which continues after the line.
//
//	func Join(       ->  func Join( first, second string, ) error
//		first, second string,
//	) error {
func signature(lang string, text []byte, at int) string {
	text = text[signatureStart(text, at):]
	s := signatureScan{lang: lang}

	var out []byte
	for n := 0; n <= signatureLines && len(text) > 0 && len(out) < signatureBytes; n++ {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		text = rest

		// Of an endless line, read no more than is shown.
		head, body := s.head(bytes.TrimSpace(line[:min(len(line), 2*signatureBytes)]))
		if len(head) > 0 && len(out) > 0 {
			out = append(out, ' ')
		}
		out = append(out, head...)

		if body || s.depth == 0 && !beginsAny(bytes.TrimLeft(text, " \t"), continuations) {
			break
		}
	}
	return strings.TrimSpace(browse.WholeLetters(string(out), signatureBytes))
}

// signatureOf returns the signature of the name at a range of a chunk.
func signatureOf(lang string, c shard.Chunk, r shard.Range) string {
	at := int(r.Start.Offset) - int(c.Start.Offset)
	if at < 0 || at > len(c.Content) {
		return ""
	}
	return signature(lang, c.Content, at)
}

// signatureStart returns where the signature of a name at an offset begins.
func signatureStart(text []byte, at int) int {
	from := bytes.LastIndexByte(text[:at], '\n') + 1
	from += len(text[from:at]) - len(bytes.TrimLeft(text[from:at], " \t"))

	// In a generated file, the line may be so long that the name would not be shown.
	if at-from > signatureBefore {
		return at
	}
	return from
}

// signatureScan reads the lines of a signature.
type signatureScan struct {
	lang  string
	open  lex.State // what the lines before leave open; a definition begins with nothing open
	depth int       // of open brackets
}

// head returns the part of a line that belongs to the signature. body reports whether the signature
// ends there.
func (s *signatureScan) head(line []byte) (head []byte, body bool) {
	var spans []lex.Span
	if lex.Knows(s.lang) {
		spans, s.open = lex.For(s.lang).Colors(line, s.open, nil)
	}

	for i := 0; i < len(line); {
		if len(spans) > 0 && i == spans[0].Start {
			// A comment would swallow the line that is appended next.
			if spans[0].Class == lex.Comment && spans[0].End == len(line) {
				return bytes.TrimSpace(line[:i]), false
			}
			if spans[0].Class == lex.Comment || spans[0].Class == lex.String {
				i = spans[0].End
				spans = spans[1:]
				continue
			}
			spans = spans[1:]
		}
		if s.ends(line[i:]) {
			return bytes.TrimSpace(line[:i]), true
		}
		i++
	}

	// In Lisp, the definition is one list in brackets, so the signature ends with its first line.
	return line, slices.Contains(lisps, s.lang)
}

// lisps lists languages in which everything is a list in brackets.
var lisps = []string{"Common Lisp", "Emacs Lisp", "Scheme", "Racket", "Clojure"}

// beginsAny reports whether b begins with one of starts.
func beginsAny(b []byte, starts []string) bool {
	return slices.ContainsFunc(starts, func(s string) bool { return bytes.HasPrefix(b, []byte(s)) })
}

// ends updates the bracket depth, and reports whether the body begins or the definition ends at
// rest.
func (s *signatureScan) ends(rest []byte) bool {
	switch rest[0] {
	case '{':
		// An empty type such as interface{} is not the body: something follows.
		empty := bytes.HasPrefix(rest, []byte("{}")) && len(bytes.TrimLeft(rest[2:], " \t;")) > 0
		if s.depth == 0 && !empty {
			return true
		}
		s.depth++
	case '(', '[':
		s.depth++
	case ')', ']', '}':
		s.depth = max(0, s.depth-1)
	case ';':
		return s.depth == 0
	}
	return false
}
