package symbols

import (
	"bytes"
	"strings"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/shard"
)

// The bounds of a signature.
const (
	signatureLines  = 10  // behind the one with the name
	signatureBytes  = 200 // of all of it
	signatureBefore = 100 // of a line before the name; behind more of them it begins at the name
)

// continuations begin lines that go on with what stands on the line before, though no
// bracket is open.
var continuations = []string{"throws ", "where ", "extends ", "implements ", "-> ", ": "}

// signature is the source by which a symbol is defined, from the line with its name to
// where its body begins. Lines are joined by single blanks, without comments at their
// ends. at is where the name stands in a text, which goes on behind the line.
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

		// Of a line without an end no more is looked at than is shown.
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

// signatureOf is the signature of the name at a range of a chunk.
func signatureOf(lang string, c shard.Chunk, r shard.Range) string {
	at := int(r.Start.Offset) - int(c.Start.Offset)
	if at < 0 || at > len(c.Content) {
		return ""
	}
	return signature(lang, c.Content, at)
}

// signatureStart is where the signature of a name at an offset of a text begins.
func signatureStart(text []byte, at int) int {
	from := bytes.LastIndexByte(text[:at], '\n') + 1
	from += len(text[from:at]) - len(bytes.TrimLeft(text[from:at], " \t"))

	// On a line of a file that a program wrote the name would not be in the part that is shown.
	if at-from > signatureBefore {
		return at
	}
	return from
}

// signatureScan goes through the lines of a signature.
type signatureScan struct {
	lang   string
	syntax syntax
	depth  int // of open brackets
}

// head is what of a line belongs to the signature; body says that it ends there.
func (s *signatureScan) head(line []byte) (head []byte, body bool) {
	if s.syntax.block && insideStars(line) {
		return nil, false
	}

	for i := 0; i < len(line); {
		kind, n := s.syntax.token(s.lang, line[:i], line[i:])

		// Joined with the next line it would make a comment of that, too.
		if kind == comment && i+n > len(line) {
			return bytes.TrimSpace(line[:i]), false
		}
		if kind == code && n == 1 && s.ends(line[i:]) {
			return bytes.TrimSpace(line[:i]), true
		}
		i += n
	}

	// A list in brackets is all of the code: its end is that of the file.
	return line, families[s.lang] == "lisp"
}

// ends counts the bracket that a rest of a line begins with, and reports whether the body
// begins there, or the definition ends.
func (s *signatureScan) ends(rest []byte) bool {
	switch rest[0] {
	case '{':
		// An empty type, as interface{}, is no body: something follows it.
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
