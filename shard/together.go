package shard

import (
	"bytes"
	"slices"

	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/symbols"
)

// The weights of words of the query that are close to each other. Each outweighs the rest of a
// score: a search for `func main` wants "func main(".
const (
	scoreAdjacent = 60_000 // next to each other, in the order of the query
	scoreSameLine = 20_000
	scoreRun      = 40_000 // times the share of the words that stand next to each other
)

// maxDeduction is more than all deductions from a score.
const maxDeduction = 1000

// Together reports whether a file with this score has the words of the query next to each other.
// Without scoreAdjacent a score is always lower.
func Together(score float64) bool { return score >= scoreAdjacent-maxDeduction }

const (
	maxJoinedMatches = 2000 // greatest number of matches of a file that are examined, of one word or in a row
	togetherGap      = 3    // greatest number of punctuation bytes between words that are next to each other
)

// sentenceWords is from how many words on a query is a sentence, and not some names.
const sentenceWords = 4

// scoreTogether scores how close together the words of the query are in the current document. For a
// sentence it also returns where the document has all of it.
func (e *evaluator) scoreTogether(spans []match.Span) (best float64, sentences []match.Span) {
	words := e.p.required
	if words == nil {
		return 0, nil
	}

	examined := 0
	for _, sp := range spans {
		// Matches of other words do not count: a file of 2,000 lines has thousands of "a".
		if sp.End-sp.Start != len(words[0]) || !e.t.decoded[e.t.unitAt(sp.Start)] || !bytes.EqualFold(e.t.buf[sp.Start:sp.End], words[0]) {
			continue
		}
		if examined++; examined > maxJoinedMatches {
			break
		}

		low, high := e.t.decodedAround(sp, scoreSight)
		switch length := lengthOf(e.t.buf[sp.End:high], words[1:]); {
		case length >= 0 && len(words) < sentenceWords:
			return scoreAdjacent, nil
		case length >= 0:
			sentences = append(sentences, match.Span{Start: sp.Start, End: sp.End + length})
		case best < scoreSameLine && lineHasAll(e.t.buf[low:high], sp.Start-low, words[1:]):
			best = scoreSameLine
		}
	}
	if sentences != nil {
		return scoreAdjacent, sentences
	}
	return max(best, e.scoreRunOfWords(spans, words)), nil
}

// isWithin reports whether a position is in one of some ranges. nil stands for the whole document.
func isWithin(at int, ranges []match.Span) bool {
	return ranges == nil || slices.ContainsFunc(ranges, func(r match.Span) bool { return at >= r.Start && at < r.End })
}

// scoreRunOfWords scores the longest run of words that are next to each other in the order of the
// query. A run scores 0 if it is shorter than three words and than half of the query.
func (e *evaluator) scoreRunOfWords(spans []match.Span, words [][]byte) float64 {
	if len(words) < 3 {
		return 0
	}

	longest, run, last := 0, 0, -1 // last is the index of the word that ends the run
	for i, sp := range spans[:min(len(spans), maxJoinedMatches)] {
		if !e.t.decoded[e.t.unitAt(sp.Start)] {
			run, last = 0, -1
			continue
		}
		next := last + 1
		follows := i > 0 && run > 0 && next < len(words) && bytes.EqualFold(e.t.buf[sp.Start:sp.End], words[next]) && areAdjacent(e.t.buf[spans[i-1].End:sp.Start])
		if follows {
			run, last = run+1, next
		} else {
			run, last = 1, slices.IndexFunc(words, func(w []byte) bool { return bytes.EqualFold(e.t.buf[sp.Start:sp.End], w) })
		}
		longest = max(longest, run)
	}
	if longest < 3 && 2*longest < len(words) {
		return 0
	}
	return scoreRun * float64(longest) / float64(len(words))
}

// areAdjacent reports whether two words with this text between them are next to each other: the text
// is short, and has no other word and at most togetherGap punctuation bytes.
func areAdjacent(between []byte) bool {
	signs := 0
	for _, c := range between {
		switch {
		case symbols.IsWord(c):
			return false
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			signs++
		}
	}
	return len(between) > 0 && signs <= togetherGap && len(between) < scoreSight
}

// lengthOf returns the length of the words with which a text begins, each after a gap of blanks, line
// breaks and at most togetherGap other bytes; -1 if the text does not begin with them. "main" follows
// in " main(", "->main" and " = main", but not in "domain" nor in "(x) main". Earlier words may repeat
// between them, because a query has each word once: "int f(void *a, void *b)" has two voids.
func lengthOf(text []byte, words [][]byte) int {
	size := len(text)
	for i := 0; i < len(words); {
		w := words[i]
		gap, signs := 0, 0
		for gap < len(text) && signs <= togetherGap && !symbols.IsWord(text[gap]) && !startsFold(text[gap:], w) {
			if c := text[gap]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
				signs++
			}
			gap++
		}

		// Without a gap the word would only be the end of a longer word.
		if gap == 0 && symbols.IsWord(w[0]) {
			return -1
		}

		rest := text[gap:]
		before := slices.IndexFunc(words[:i], func(w []byte) bool { return startsFold(rest, w) })
		switch {
		case startsFold(rest, w):
			i, text = i+1, rest[len(w):]
		case before >= 0:
			text = rest[len(words[before]):]
		default:
			return -1
		}
	}
	return size - len(text)
}

// startsFold reports whether a text begins with a word, in any case.
func startsFold(text, word []byte) bool {
	return len(text) >= len(word) && bytes.EqualFold(text[:len(word)], word)
}

// lineHasAll reports whether the line that contains offset at has all words.
func lineHasAll(text []byte, at int, words [][]byte) bool {
	from := bytes.LastIndexByte(text[:at], '\n') + 1
	to := len(text)
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		to = at + i
	}

	for _, w := range words {
		if !containsFold(text[from:to], w) {
			return false
		}
	}
	return true
}
