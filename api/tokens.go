package api

import (
	"bytes"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/api/web"
	"github.com/shoalsearch/shoal/node/browse"
)

// tokenJSON is a run of characters in one line with its class for coloring.
type tokenJSON struct {
	Start int    `json:"start"` // number of characters before the run in the line
	End   int    `json:"end"`
	Class string `json:"class"`
}

// tokensOf returns the colored runs of each line of a file. cut reports that it stopped early, because
// the file is large. A binary file has no lines.
func tokensOf(r *browse.SourceResponse) (lines [][]tokenJSON, cut bool) {
	lines = [][]tokenJSON{}
	if r.Binary {
		return lines, false
	}

	// Color the text as JSON will contain it, so that positions match.
	text := validText(r.Content)
	found, cut := web.Tokens(text, r.Open, r.Language)

	for _, spans := range found {
		line, rest := text, []byte(nil)
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, rest = text[:i], text[i+1:]
		}
		text = rest

		// Convert offsets in bytes to characters in one walk over the line.
		at, chars := 0, 0
		charsUpTo := func(n int) int {
			chars += utf8.RuneCount(line[at:n])
			at = n
			return chars
		}
		row := make([]tokenJSON, len(spans))
		for i, s := range spans {
			row[i] = tokenJSON{Start: charsUpTo(s.Start), End: charsUpTo(s.End), Class: s.Class.String()}
		}
		lines = append(lines, row)
	}
	return lines, cut
}

// validText returns the text with U+FFFD in place of each invalid byte, as the JSON has it.
func validText(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	out := make([]byte, 0, len(text)+len(text)/2)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		out, text = utf8.AppendRune(out, r), text[size:]
	}
	return out
}
