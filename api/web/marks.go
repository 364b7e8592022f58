package web

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
)

// marking chooses which matches of a query are marked. Of a query with several words not all are: common
// words such as "a" are nearly everywhere.
type marking struct {
	words    int // number of words in the query; with less than two, all matches are marked
	minWords int // number of different words that a line of the file needs to get marks
}

// markingOf returns the marking for the query of a box. For an invalid query it marks all matches.
func markingOf(b layout.Box) marking {
	q, err := query.Parse(b.Query, query.Options{Regexp: b.Regexp, CaseSensitive: b.Case})
	if err != nil {
		return marking{}
	}
	return marking{words: query.Words(q.Q)}
}

// forFile returns the marking for a file with these chunks. A line gets marks if it has at least half
// of the words; or if no line has, if it has as many as any line.
func (m marking) forFile(chunks []shard.Chunk) marking {
	if m.words < 3 {
		return m
	}
	most := 0
	for i := range chunks {
		eachLine(&chunks[i], func(line []byte, marks []span) { most = max(most, countDifferent(line, marks)) })
	}
	m.minWords = min(most, (m.words+1)/2)
	return m
}

// eachLine calls f for each line of a chunk with its matches.
func eachLine(c *shard.Chunk, f func(line []byte, marks []span)) {
	at := int(c.Start.Offset)
	for rest := c.Content; len(rest) > 0; {
		line, after, size := nextLine(rest)
		f(line, marksOf(c.Ranges, at, at+len(line)))
		rest, at = after, at+size
	}
}

// countDifferent counts the different texts of a line's matches, without regard to case.
func countDifferent(line []byte, marks []span) int {
	texts := map[string]bool{}
	for _, m := range marks {
		texts[strings.ToLower(string(line[m.start:m.end]))] = true
	}
	return len(texts)
}

// keep returns which matches of a line to mark: none if the line has too few different words. A match
// of at most two letters is marked only if it is a whole word beside another match.
func (m marking) keep(line []byte, marks []span) []span {
	if m.words < 2 || len(marks) == 0 {
		return marks
	}
	if m.words > 2 && countDifferent(line, marks) < m.minWords {
		return nil
	}

	kept := marks[:0:0]
	for i, s := range marks {
		first, _ := utf8.DecodeRune(line[s.start:])
		if utf8.RuneCount(line[s.start:s.end]) > 2 || !match.IsWord(first) || isWholeWord(line, s) && (isNearNext(line, marks, i-1) || isNearNext(line, marks, i)) {
			kept = append(kept, s)
		}
	}
	// If the line has only short matches, mark all.
	if len(kept) == 0 {
		return marks
	}
	return kept
}

// isWholeWord reports whether a match neither begins nor ends within a word.
func isWholeWord(line []byte, s span) bool {
	before, _ := utf8.DecodeLastRune(line[:s.start])
	behind, _ := utf8.DecodeRune(line[s.end:])
	return !match.IsWord(before) && !match.IsWord(behind)
}

// isNearNext reports whether mark i and the next one have no word between them, and at most two other
// characters. It is false if one of the marks does not exist.
func isNearNext(line []byte, marks []span, i int) bool {
	if i < 0 || i+1 >= len(marks) {
		return false
	}
	between := bytes.TrimSpace(line[marks[i].end:marks[i+1].start])
	return len(between) <= 2 && bytes.IndexFunc(between, match.IsWord) < 0
}
