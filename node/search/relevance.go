package search

import (
	"bytes"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/shard"
)

// How much a file has to do with some words. With w the weight of a word, by
// how few files have it, a file scores
//
//	sum over its words   w * (has + often + 2 in the path + 1 in the name of a symbol)
//	the best line        half of what its words weigh
//	the best 10 lines    all that their words weigh together
//	the best symbol      all that the words of its name weigh
//
// times a factor by the kind of its path. often is n/(n+4) for n lines, as in
// BM25: the tenth line with a word says less than the second. The figures were
// chosen by how often commits of four large repositories, asked for by their
// subjects, led to the files that they changed (bench, part localise).
type relevance struct {
	has, inPath, inSymbol uint64               // one bit for each word
	linesWith             [rankedWords]float64 // each word; an estimate until they are read
	bestLine, bestWindow  float64
	bestSymbol            float64
	recent                []wordsAt // the lines of the window that ends at the last one
}

const (
	insideWord   = 0.3 // what a word counts that is found within another one, as gc in bugcheck
	often        = 4.0
	windowLines  = 10
	longLine     = 400 // bytes: what is longer was made by a program
	perPath      = 2.0
	perLine      = 0.5
	longLineRate = 0.25
	placesJudged = 8 // of a word in a line
)

// wordsAt is a line of a file, and how strongly it has each word.
type wordsAt struct {
	number int
	words  [rankedWords]float64
}

// kindFactor is what the words of a file are worth by the kind of its path, in
// the order of shard.PathRank.
var kindFactor = []float64{1, 0.85, 0.5, 0.6, 0.4}

// score is how much the file has to do with the words.
func (c *relevance) score(words []rankedWord, path string) float64 {
	score := perLine*c.bestLine + c.bestWindow + c.bestSymbol

	for i := range words {
		bit, w := uint64(1)<<i, words[i].weight
		if c.has&bit != 0 {
			score += w
		}
		if c.inPath&bit != 0 {
			score += perPath * w
		}
		if c.inSymbol&bit != 0 {
			score += w
		}

		// Many lines count for more, up to the weight once again: n/(n+often) < 1.
		score += w * c.linesWith[i] / (c.linesWith[i] + often)
	}

	return score * kindFactor[min(shard.PathRank(path), len(kindFactor)-1)]
}

// named takes the path of the file into account.
func (c *relevance) named(words []rankedWord, path string) {
	for i := range words {
		s := words[i].strength([]byte(path))
		if s > 0 {
			c.has |= 1 << i
		}
		if s == 1 {
			c.inPath |= 1 << i
		}
	}
}

// line takes a line into account, and returns what its words weigh. Lines come
// in order.
func (c *relevance) line(words []rankedWord, l browse.Line) float64 {
	at := wordsAt{number: l.Number}
	weight := 0.0
	for i := range words {
		s := words[i].strength(l.Text)
		if s == 0 {
			continue
		}

		at.words[i] = s
		weight += s * words[i].weight
		c.has |= 1 << i
		c.linesWith[i] += s
	}

	// What a program made has everything side by side.
	if len(bytes.TrimSpace(l.Text)) > longLine {
		weight *= longLineRate
	} else {
		c.bestWindow = max(c.bestWindow, c.window(words, at))
	}
	c.bestLine = max(c.bestLine, weight)
	return weight
}

// window is what the words weigh that stand on a line or the few before it.
func (c *relevance) window(words []rankedWord, last wordsAt) float64 {
	c.recent = append(c.recent, last)

	for c.recent[0].number <= last.number-windowLines {
		c.recent = c.recent[1:]
	}

	// Of each word the strongest occurrence within the window counts.
	sum := 0.0
	for i := range words {
		strongest := 0.0
		for _, at := range c.recent {
			strongest = max(strongest, at.words[i])
		}
		sum += strongest * words[i].weight
	}
	return sum
}

// name takes the name of a symbol into account.
func (c *relevance) name(words []rankedWord, name string) {
	weight := 0.0
	for i := range words {
		s := words[i].strength([]byte(name))
		weight += s * words[i].weight
		if s == 1 {
			c.inSymbol |= 1 << i
		}
	}
	c.bestSymbol = max(c.bestSymbol, weight)
}

// strength is how much a text has of a word: 0 when it is not there, 1 when it
// begins a word or a part of one, as retry in doRetry and retry_count.
func (w *rankedWord) strength(text []byte) float64 {
	// Its first places tell: a word that begins none of them is a part of others here.
	strength, from := 0.0, 0
	for range placesJudged {
		start, end, ok := w.m.Next(text, from)
		switch {
		case !ok:
			return strength
		case beginsPart(text, start):
			return 1
		}
		strength, from = insideWord, end
	}
	return strength
}

// beginsPart reports whether a part of a name begins at i: a_b, aB and a.b have
// two parts.
func beginsPart(text []byte, i int) bool {
	if i == 0 {
		return true
	}
	before, at := text[i-1], text[i]
	letter := before|0x20 >= 'a' && before|0x20 <= 'z' || before >= 0x80
	return !letter || before >= 'a' && at >= 'A' && at <= 'Z'
}
