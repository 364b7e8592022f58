package symbols

import (
	"bytes"
	"strings"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/shard"
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
	s := signatureScan{lang: lang, syntax: syntaxes[families[lang]]}

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
	lang   string
	syntax syntax
	depth  int // of open brackets
}

// head returns the part of a line that belongs to the signature. body reports whether the signature
// ends there.
func (s *signatureScan) head(line []byte) (head []byte, body bool) {
	if s.syntax.block && insideStars(line) {
		return nil, false
	}

	for i := 0; i < len(line); {
		kind, n := s.syntax.token(s.lang, line[:i], line[i:])

		// A comment would swallow the line that is appended next.
		if kind == comment && i+n > len(line) {
			return bytes.TrimSpace(line[:i]), false
		}
		if kind == code && n == 1 && s.ends(line[i:]) {
			return bytes.TrimSpace(line[:i]), true
		}
		i += n
	}

	// In Lisp, the definition is one list in brackets, so the signature ends with its first line.
	return line, families[s.lang] == "lisp"
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
