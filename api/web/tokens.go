package web

import (
	"slices"

	"github.com/shoalsearch/shoal/shard/lex"
)

// LinesBefore is the number of lines that are read before a part of a file to find what is open,
// such as a comment.
const LinesBefore = linesBefore

// Tokens returns the colours of lines of a part of a file as pages show them, in bytes of each
// line. The first before lines of the part are only read to know what is open. whole means that the
// part begins with the file. Only the beginning of a long text is coloured; cut is then true.
func Tokens(part []byte, before int, whole bool, language string) (lines [][]lex.Span, cut bool) {
	text, paint := paintAfter(part, before, whole, language)

	// Keep line ends, because a file may consist of nothing else.
	for left := colourBlock; len(text) > 0; {
		line, rest, size := nextLine(text)
		if left -= size; left < 0 {
			return lines, true
		}
		lines, text = append(lines, slices.Clone(paint.colours(line))), rest
	}
	return lines, false
}
