package web

import (
	"slices"

	"github.com/shoalsearch/shoal/api/web/lex"
)

// LinesBefore is how many lines before a part of a file are read for what they leave
// open: a comment, a text of several lines.
const LinesBefore = linesBefore

// Tokens are the colours of the lines of a part of a file as pages have them, in
// bytes of each line. The first lines of the part are read for what they leave open,
// and not among them; whole is whether the part begins where the file does. Of a text
// that is longer than pages colour at once there are those of its beginning, and cut
// says so.
func Tokens(part []byte, before int, whole bool, language string) (lines [][]lex.Span, cut bool) {
	text, paint := paintAfter(part, before, whole, language)

	// With the ends of lines, for a file may consist of nothing else.
	for left := colourBlock; len(text) > 0; {
		line, rest, size := nextLine(text)
		if left -= size; left < 0 {
			return lines, true
		}
		lines, text = append(lines, slices.Clone(paint.colours(line))), rest
	}
	return lines, false
}
