package shard

import (
	"bytes"

	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/shard/symbols"
)

// The weights of words that stand together. Each outweighs all that the words
// score one by one: whoever searches for `func main` wants "func main(".
const (
	scoreAdjacent = 40_000 // next to each other, in the order of the query
	scoreSameLine = 20_000
)

const (
	togetherLooks = 2000 // matches of a file that are judged
	togetherGap   = 3    // bytes between neighbours at most, none of them of a word
)

// phrase returns the words of a query that all have to be there, in the order of
// the query; nil for fewer than two.
func (p *plan) phrase() [][]byte {
	var words [][]byte
	var walk func(n *node)
	walk = func(n *node) {
		// Words below an Or or a Not need not be there.
		switch n.op {
		case opAnd:
			for _, sub := range n.subs {
				walk(sub)
			}
		case opContent:
			if c := p.patterns[n.pat]; !c.text.Regexp && c.text.Field == query.Content && len(c.name) > 0 {
				words = append(words, c.name)
			}
		}
	}

	walk(p.root)
	if len(words) < 2 {
		return nil
	}
	return words
}

// together judges how close the words of the query stand in the present
// document.
func (e *evaluator) together(spans []match.Span) float64 {
	words := e.p.words
	if words == nil {
		return 0
	}

	best := 0.0
	// The first looks decide: a document full of the words is not read to its end.
	for _, sp := range spans[:min(len(spans), togetherLooks)] {
		if !e.t.have[e.t.unitAt(sp.Start)] || !bytes.EqualFold(e.t.buf[sp.Start:sp.End], words[0]) {
			continue
		}

		low, high := e.t.around(sp, scoreSight)
		if follow(e.t.buf[sp.End:high], words[1:]) {
			return scoreAdjacent
		}
		if best == 0 && onLine(e.t.buf[low:high], sp.Start-low, words[1:]) {
			best = scoreSameLine
		}
	}
	return best
}

// follow reports whether a text begins with words, each after a gap of at most
// togetherGap bytes: "main" follows in " main(", "->main" and " = main", not in
// "domain" nor in "(x) main".
func follow(text []byte, words [][]byte) bool {
	for _, w := range words {
		gap := 0
		for gap < len(text) && gap <= togetherGap && text[gap] != '\n' &&
			!symbols.IsWord(text[gap]) && !startsFold(text[gap:], w) {
			gap++
		}

		// Without a gap a word would only be the rest of a longer one.
		if gap == 0 && symbols.IsWord(w[0]) || !startsFold(text[gap:], w) {
			return false
		}

		text = text[gap+len(w):]
	}
	return true
}

// startsFold reports whether a text begins with a word, in any case.
func startsFold(text, word []byte) bool {
	return len(text) >= len(word) && bytes.EqualFold(text[:len(word)], word)
}

// onLine reports whether the line of a text around a place has all words.
func onLine(text []byte, at int, words [][]byte) bool {
	from := bytes.LastIndexByte(text[:at], '\n') + 1
	to := len(text)
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		to = at + i
	}

	// The word in any case: a line that has all of them is worth more, however they are written.
	for _, w := range words {
		if !containsFold(text[from:to], w) {
			return false
		}
	}
	return true
}
