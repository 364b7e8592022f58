package match

import (
	"bytes"
	"regexp/syntax"
	"slices"
)

// Lines may end in "\r\n". For a pattern that reads line ends, a Matcher searches such a text as if
// its lines ended in "\n", and converts the offsets afterwards:
//
//	text         a \r \n b       `a$` is at [0, 1)   `a\nb` at [0, 4)
//	searched     a \n b                   [0, 1)            [0, 3)
//
// A pattern that names "\r" itself, such as `\r\n` or `\r$`, searches the bytes as they are.

// readsLineEnds reports whether an expression may match differently in a text with "\r\n".
func readsLineEnds(re *syntax.Regexp) bool { return mayReadLineEnd(re) && !requiresReturn(re) }

// mayReadLineEnd reports whether an expression asserts a line end, or may match a "\r" or "\n".
func mayReadLineEnd(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpEndLine, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return true
	case syntax.OpLiteral:
		return slices.Contains(re.Rune, '\n')
	case syntax.OpCharClass:
		return inRanges(re.Rune, '\n') || inRanges(re.Rune, '\r')
	}
	return slices.ContainsFunc(re.Sub, mayReadLineEnd)
}

// requiresReturn reports whether an expression requires a "\r". An optional "\r", as in `\r?\n`, is
// only a way to write a line break.
func requiresReturn(re *syntax.Regexp) bool {
	switch {
	case re.Op == syntax.OpLiteral:
		return slices.Contains(re.Rune, '\r')
	case re.Op == syntax.OpQuest, re.Op == syntax.OpStar, re.Op == syntax.OpRepeat && re.Min == 0:
		return false
	}
	return slices.ContainsFunc(re.Sub, requiresReturn)
}

// ReadsLineEnds reports whether the pattern needs to know whether a text has a "\r".
func (m *Matcher) ReadsLineEnds() bool { return m.lineEnds }

var crlf = []byte("\r\n")

// appendUnix appends a text to dst, with "\n" for each "\r\n".
func appendUnix(dst, text []byte) []byte {
	for {
		i := bytes.Index(text, crlf)
		if i < 0 {
			return append(dst, text...)
		}
		dst = append(dst, text[:i]...)
		text = text[i+1:]
	}
}

// origin converts offsets without "\r" back into offsets in a text with "\r\n".
type origin struct {
	text   []byte
	next   int // offset of the next "\r\n"; the end of the text if there is none
	before int // number of "\r\n" before next
}

// newOrigin returns an origin for a text, at offset 0.
func newOrigin(text []byte) origin {
	o := origin{text: text}
	o.next = o.findCRLF(0)
	return o
}

// findCRLF returns the offset of the first "\r\n" from an offset on; the length of the text if
// there is none.
func (o *origin) findCRLF(from int) int {
	if i := bytes.Index(o.text[from:], crlf); i >= 0 {
		return from + i
	}
	return len(o.text)
}

// toText converts an offset without "\r" into one in the text. The end of a line becomes the offset
// of its "\r". Offsets must ascend from call to call.
func (o *origin) toText(at int) int {
	for o.next < len(o.text) && o.next-o.before < at {
		o.before++
		o.next = o.findCRLF(o.next + 1)
	}
	return at + o.before
}

// unixOffset returns the offset without "\r" for an offset in a text.
func unixOffset(text []byte, at int) int {
	return at - bytes.Count(text[:min(at+1, len(text))], crlf)
}
