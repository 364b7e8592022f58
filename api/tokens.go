package api

import (
	"bytes"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/api/web"
	"github.com/shoalsearch/shoal/node/browse"
)

// colouredJSON is a run of characters in one line with its class for coloring.
type colouredJSON struct {
	Start int    `json:"start"` // number of characters before it in the line
	End   int    `json:"end"`
	Class string `json:"class"`
}

// coloured returns the colored runs of each line of a file.
func coloured(r *browse.SourceResponse) (lines [][]colouredJSON, cut bool) {
	lines = [][]colouredJSON{}
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

		// Walk over the line once, however many runs it has.
		at, chars := 0, 0
		upTo := func(n int) int {
			chars += utf8.RuneCount(line[at:n])
			at = n
			return chars
		}
		row := make([]colouredJSON, len(spans))
		for i, s := range spans {
			row[i] = colouredJSON{Start: upTo(s.Start), End: upTo(s.End), Class: s.Class.String()}
		}
		lines = append(lines, row)
	}
	return lines, cut
}

// validText returns the text as JSON has it: U+FFFD replaces each invalid byte.
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
