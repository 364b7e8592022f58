package web

import (
	"slices"

	"github.com/shoalsearch/shoal/shard/lex"
)

// Tokens returns the colours of lines of a part of a file as pages show them, in bytes of each
// line. open is what the lines before the part leave open. Only the beginning of a long text is
// coloured; cut is then true.
func Tokens(text []byte, open lex.State, language string) (lines [][]lex.Span, cut bool) {
	paint := newPainter(language, open)

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
