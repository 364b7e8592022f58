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

// colouredJSON is a run of characters of one line that is of a class.
type colouredJSON struct {
	Start int    `json:"start"` // characters of the line before it
	End   int    `json:"end"`
	Class string `json:"class"`
}

// tokens returns the coloured runs of each line of a source.
func (a *fileRoutes) tokens(ctx context.Context, c *call, r *browse.SourceResponse) (lines [][]colouredJSON, cut bool, err error) {
	lines = [][]colouredJSON{}
	if r.Binary {
		return lines, false, nil
	}
	before, count, err := a.before(ctx, c, r)
	if err != nil {
		return nil, false, err
	}

	// Of the text as it is sent: places in other bytes would be those of nothing.
	first, text := max(r.FirstLine, 1), readable(r.Content)
	part := slices.Concat(readable(before), text)
	found, cut := web.Tokens(part, count, first-count == 1, r.Language)

	for _, spans := range found {
		line, rest := text, []byte(nil)
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, rest = text[:i], text[i+1:]
		}
		text = rest

		// One walk over the line, however many runs it has.
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

// before is the lines before a part of a file, which tell what is open where it
// begins; none where there are none, or where they are too long to be read for that.
func (a *fileRoutes) before(ctx context.Context, c *call, r *browse.SourceResponse) (text []byte, count int, err error) {
	count = min(r.FirstLine-1, web.LinesBefore)
	if count < 1 || len(r.Content) == 0 {
		return nil, 0, nil
	}

	// Of the very commit that the part is of: a branch may have moved on.
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

// readable is a text as JSON has it: U+FFFD stands for each byte that is no UTF-8.
func readable(text []byte) []byte {
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
