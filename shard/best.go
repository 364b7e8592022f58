package shard

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/shard/match"
)

// bestLine is a line with matches.
type bestLine struct {
	first, end int // indexes of its spans: [first, end)
	weight     float32
}

// bestLines returns the lines of the document on which matches begin, with their weights. spans
// must be in order and not empty.
func (e *evaluator) bestLines(spans []match.Span) ([]bestLine, error) {
	if err := e.t.decodeRange(spans[0].Start, spans[len(spans)-1].End); err != nil {
		return nil, err
	}
	return weighLines(e.t.buf, spans), nil
}

// matchedText is one distinct text that matches, in lower case.
type matchedText struct {
	matches int // how often it matches in the file
	line    int // number of the last line that counted it, from 1
}

// weighLines groups spans by lines of content and gives each line a weight. Each distinct text that
// matches on the line adds to its weight. A text that is rare in the file adds more. Case is
// ignored.
//
//	weight = sum over the texts of the line of 1 / (matches of the text in the file)
//	       + 1 for each text that follows another one directly
//
//	[func] Walk        1/3
//	// a [tree]              1/2
//	[func] [Tree]      1/3 + 1/2 + 1
//	[func] Old         1/3
func weighLines(content []byte, spans []match.Span) []bestLine {
	texts := make([]*matchedText, len(spans))
	known := map[string]*matchedText{}
	var lower []byte
	for i, sp := range spans {
		lower = appendLower(lower[:0], content[sp.Start:sp.End])
		t := known[string(lower)]
		if t == nil {
			t = &matchedText{}
			known[string(lower)] = t
		}
		texts[i] = t
		t.matches++
	}

	// A line counts each distinct text once.
	var lines []bestLine
	last := 0
	for i, sp := range spans {
		if i == 0 || bytes.IndexByte(content[last:sp.Start], '\n') >= 0 {
			lines = append(lines, bestLine{first: i})
		}
		last = sp.Start

		l := &lines[len(lines)-1]
		if i > l.first && texts[i] != texts[i-1] && areAdjacent(content[spans[i-1].End:sp.Start]) {
			l.weight++
		}
		if t := texts[i]; t.line != len(lines) {
			t.line = len(lines)
			l.weight += 1 / float32(t.matches)
		}
		l.end = i + 1
	}
	return lines
}

// appendLower appends a text in lower case.
func appendLower(dst, text []byte) []byte {
	for i, c := range text {
		switch {
		case c >= utf8.RuneSelf:
			return append(dst, bytes.ToLower(text[i:])...)
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// bestSpans returns at most n spans, in order: those on the heaviest lines. Among equal lines the
// first of the file wins.
func bestSpans(spans []match.Span, lines []bestLine, n int) []match.Span {
	heaviest := slices.Clone(lines)
	slices.SortStableFunc(heaviest, func(a, b bestLine) int { return cmp.Compare(b.weight, a.weight) })

	var best []match.Span
	for _, l := range heaviest {
		count := min(l.end-l.first, n-len(best))
		best = append(best, spans[l.first:l.first+count]...)
		if len(best) == n {
			break
		}
	}

	slices.SortFunc(best, func(a, b match.Span) int { return cmp.Compare(a.Start, b.Start) })
	return best
}

// setWeights sets the weight of each chunk to that of its heaviest line. chunks, spans and lines
// must be in the order of the file.
func setWeights(chunks []Chunk, spans []match.Span, lines []bestLine) {
	line := 0 // index of the line that contains the present range
	for i := range chunks {
		for _, r := range chunks[i].Ranges {
			for spans[lines[line].end-1].Start < int(r.Start.Offset) {
				line++
			}
			chunks[i].Weight = max(chunks[i].Weight, lines[line].weight)
		}
	}
}
