package shard

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/shoalsearch/shoal/shard/match"
)

// mostTexts is how many different texts of a line are told apart.
const mostTexts = 8

// bestLine is a line with matches.
type bestLine struct {
	first, end int // its spans: [first, end)
	texts      int // different ones that match on it
}

// bestSpans returns at most n of the spans of the document, in order: those on the
// lines where the most different texts match, the first lines of the file before
// others like them.
//
//	2 of [func] Walk / // a [tree] / [func] [Tree]   ->   [func] [Tree]
func (e *evaluator) bestSpans(spans []match.Span, n int) ([]match.Span, error) {
	if err := e.t.load(0, e.t.units-1); err != nil {
		return nil, err
	}
	lines := linesOf(e.t.buf, spans)

	slices.SortStableFunc(lines, func(a, b bestLine) int { return cmp.Compare(b.texts, a.texts) })

	var best []match.Span
	for _, l := range lines {
		taken := min(l.end-l.first, n-len(best))
		best = append(best, spans[l.first:l.first+taken]...)
		if len(best) == n {
			break
		}
	}

	slices.SortFunc(best, func(a, b match.Span) int { return cmp.Compare(a.Start, b.Start) })
	return best, nil
}

// linesOf groups spans, which are in order, by the line of content that they
// begin on.
func linesOf(content []byte, spans []match.Span) []bestLine {
	var lines []bestLine
	var texts [][]byte
	last := 0
	for i, sp := range spans {
		if i == 0 || bytes.IndexByte(content[last:sp.Start], '\n') >= 0 {
			lines = append(lines, bestLine{first: i})
			texts = texts[:0]
		}
		last = sp.Start

		text := content[sp.Start:sp.End]
		if len(texts) < mostTexts && !slices.ContainsFunc(texts, func(t []byte) bool { return bytes.EqualFold(t, text) }) {
			texts = append(texts, text)
		}

		l := &lines[len(lines)-1]
		l.end, l.texts = i+1, len(texts)
	}
	return lines
}
