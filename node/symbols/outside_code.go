package symbols

import (
	"bytes"
	"slices"

	"github.com/shoalsearch/shoal/shard/lex"
)

// prose lists text formats without any code.
var prose = []string{"Markdown", "MDX", "Text", "reStructuredText", "AsciiDoc", "Org", "Textile", "Roff", "Roff Manpage", "Texinfo", "Gettext Catalog"}

// OutsideCode reports whether the byte at an offset of a line is in a comment or a string literal.
// open is what the lines before leave open. A language that is not known counts as code.
func OutsideCode(lang string, line []byte, open lex.State, at int) bool {
	class := classAt(lang, line, open, at)
	return class == lex.Comment || class == lex.String
}

// InComment reports whether the byte at an offset of a line is in a comment, or in a text without any
// code. open is what the lines before leave open.
func InComment(lang string, line []byte, open lex.State, at int) bool {
	return classAt(lang, line, open, at) == lex.Comment
}

// classAt returns the class of the byte at an offset of a line. Prose is a comment. What is
// interpolated in a string literal is code.
func classAt(lang string, line []byte, open lex.State, at int) lex.Class {
	if slices.Contains(prose, lang) {
		return lex.Comment
	}
	if !lex.Knows(lang) {
		return lex.Plain
	}

	spans, _ := lex.For(lang).Colors(line, open, nil)
	for _, s := range spans {
		if s.Start <= at && at < s.End {
			if s.Class == lex.String && interpolated(line[s.Start:at]) {
				return lex.Plain
			}
			return s.Class
		}
	}
	return lex.Plain
}

// interpolated reports whether a string literal up to an offset ends inside ${ } or #{ }, which is
// code.
func interpolated(text []byte) bool {
	open := max(bytes.LastIndex(text, []byte("${")), bytes.LastIndex(text, []byte("#{")))
	return open >= 0 && bytes.LastIndexByte(text, '}') < open
}
