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

// marking chooses which matches of a query of several words are marked. A word of a
// sentence is nearly everywhere: a page that marks every "a" marks nothing.
type marking struct {
	words int // of the query; below two everything is marked
	least int // different words of a line that has marks, in the present file
}

// markingOf is the marking for the query of a box.
func markingOf(b layout.Box) marking {
	q, err := query.Parse(b.Query, query.Options{Regexp: b.Regexp, CaseSensitive: b.Case})
	if err != nil {
		return marking{}
	}
	return marking{words: query.Words(q.Q)}
}

// forFile is the marking for the chunks of one file: lines with most of the words are
// marked, or where there is none, those with as many as any.
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

// keep is the marks of a line that are shown. Small words are marked where they are
// whole words beside another match.
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
	// Of nothing but small words all are as good.
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

// near reports whether only a few signs stand between the mark of that index and the next.
func near(line []byte, marks []span, i int) bool {
	if i < 0 || i+1 >= len(marks) {
		return false
	}
	between := bytes.TrimSpace(line[marks[i].end:marks[i+1].start])
	return len(between) <= 2 && bytes.IndexFunc(between, match.IsWord) < 0
}
