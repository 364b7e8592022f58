package api

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/api/web"
	"github.com/shoalsearch/shoal/node/browse"
	nodecall "github.com/shoalsearch/shoal/node/call"
)

// colouredJSON is a run of characters in one line with its class for coloring.
type colouredJSON struct {
	Start int    `json:"start"` // number of characters before it in the line
	End   int    `json:"end"`
	Class string `json:"class"`
}

// tokens returns the colored runs of each line of a file.
func (a *fileRoutes) tokens(ctx context.Context, c *call, r *browse.SourceResponse) (lines [][]colouredJSON, cut bool, err error) {
	lines = [][]colouredJSON{}
	if r.Binary {
		return lines, false, nil
	}
	before, count, err := a.linesBefore(ctx, c, r)
	if err != nil {
		return nil, false, err
	}

	// Color the text as JSON will contain it, so that positions match.
	first, text := max(r.FirstLine, 1), validText(r.Content)
	part := slices.Concat(validText(before), text)
	found, cut := web.Tokens(part, count, first-count == 1, r.Language)

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
	return lines, cut, nil
}

// linesBefore returns the lines before a part of a file. They tell the coloring, for example, that a
// comment is open. It returns none if there are none or they are too long.
func (a *fileRoutes) linesBefore(ctx context.Context, c *call, r *browse.SourceResponse) (text []byte, count int, err error) {
	count = min(r.FirstLine-1, web.LinesBefore)
	if count < 1 || len(r.Content) == 0 {
		return nil, 0, nil
	}

	// Read the same commit: the branch may have moved.
	req := browse.SourceRequest{Repo: r.Repo, Path: r.Path, Ref: r.Commit, FirstLine: r.FirstLine - count, Lines: count}
	lines, err := a.files.Source(ctx, c.viewer, req)
	if errors.Is(err, nodecall.ErrTooLarge) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return lines.Content, count, nil
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
