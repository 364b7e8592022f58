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

// marking chooses the matches to mark in a query with several words. Common words such as "a" are
// nearly everywhere, so marking all of them would not help.
type marking struct {
	words int // of the query; below two everything is marked
	least int // different words that a line needs to have marks, in the current file
}

// markingOf returns the marking for the query of a box.
func markingOf(b layout.Box) marking {
	q, err := query.Parse(b.Query, query.Options{Regexp: b.Regexp, CaseSensitive: b.Case})
	if err != nil {
		return marking{}
	}
	return marking{words: query.Words(q.Q)}
}

// forFile returns the marking for one file: lines with most of the words are marked, or if there
// are none, the lines with the most words.
func (m marking) forFile(chunks []shard.Chunk) marking {
	if m.words < 3 {
		return m
	}
	most := 0
	for i := range chunks {
		eachLine(&chunks[i], func(line []byte, marks []span) { most = max(most, different(line, marks)) })
	}
	m.least = min(most, (m.words+1)/2)
	return m
}

// eachLine calls f for the lines of a chunk with their matches.
func eachLine(c *shard.Chunk, f func(line []byte, marks []span)) {
	at := int(c.Start.Offset)
	for rest := c.Content; len(rest) > 0; {
		line, after, size := nextLine(rest)
		f(line, marksOf(c.Ranges, at, at+len(line)))
		rest, at = after, at+size
	}
}

// different counts the different texts that match on a line.
func different(line []byte, marks []span) int {
	texts := map[string]bool{}
	for _, m := range marks {
		texts[strings.ToLower(string(line[m.start:m.end]))] = true
	}
	return len(texts)
}

// keep returns the marks of a line to show. Small words are only marked as whole words next to
// another match.
func (m marking) keep(line []byte, marks []span) []span {
	if m.words < 2 || len(marks) == 0 {
		return marks
	}
	if m.words > 2 && different(line, marks) < m.least {
		return nil
	}

	kept := marks[:0:0]
	for i, s := range marks {
		first, _ := utf8.DecodeRune(line[s.start:])
		if utf8.RuneCount(line[s.start:s.end]) > 2 || !match.IsWord(first) || wholeWord(line, s) && (near(line, marks, i-1) || near(line, marks, i)) {
			kept = append(kept, s)
		}
	}
	// If there are only small words, keep all.
	if len(kept) == 0 {
		return marks
	}
	return kept
}

// wholeWord reports whether a match is a whole word.
func wholeWord(line []byte, s span) bool {
	before, _ := utf8.DecodeLastRune(line[:s.start])
	behind, _ := utf8.DecodeRune(line[s.end:])
	return !match.IsWord(before) && !match.IsWord(behind)
}

// near reports whether only a few bytes are between a mark and the next.
func near(line []byte, marks []span, i int) bool {
	if i < 0 || i+1 >= len(marks) {
		return false
	}
	between := bytes.TrimSpace(line[marks[i].end:marks[i+1].start])
	return len(between) <= 2 && bytes.IndexFunc(between, match.IsWord) < 0
}
