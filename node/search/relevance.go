package search

import (
	"bytes"
	"math"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/match"
)

// relevance scores how relevant a file is to some words. With w the weight of a word, which is
// higher if fewer files have it, the score is
//
//	sum over its words   w * (half + often + 3 in its name, or 2 in a directory + 1 in the name of a symbol)
//	the best line        a quarter of what its words weigh
//	the best 10 lines    all that their words weigh together
//	the best symbol      what the words of its name weigh, by how much of the name they are
//
// times a factor for the kind of its path. often is n/(n+8) for n lines, as in BM25: the tenth line
// with a word says less than the second. The figures were chosen by a test: the subject of a commit
// should find the files that the commit changed. They come from five repositories and hold for five
// others (bench, part localise).
type relevance struct {
	has, inName, inDir, inSymbol uint64               // one bit for each word
	linesWith                    [rankedWords]float64 // by word: lines that have it; an estimate until the lines are read
	bestLine, bestWindow         float64
	windowFrom, windowTo         int // first and last line of bestWindow
	bestSymbol                   float64
	factor                       float64   // by the kind of the path
	recent                       []wordsAt // lines of the window that ends at the latest line
}

const (
	insideWord   = 0.3 // strength of a word inside another one, such as gc in bugcheck
	often        = 8.0
	windowLines  = 10
	longLine     = 400 // bytes; a program wrote such a line
	perHas       = 0.5
	perName      = 3.0
	perDir       = 2.0
	perLine      = 0.25
	longLineRate = 0.25
	placesJudged = 8   // places of a word in a line that are tried
	rareCounts   = 1.6 // exponent that makes rare words count more than common ones
	codeCounts   = 1.6 // factor for a word that can only be code
	leastShare   = 0.1 // share of the weight of all words; a file with less is about something else
)

// weigh sets the weight of a word. Rare words weigh most, and words that are written like names in
// code weigh more.
func (w *rankedWord) weigh(total int) {
	share := float64(max(total, w.files)) / float64(w.files)
	w.weight = math.Pow(math.Log(1+share), rareCounts)
	if codeWord.MatchString(w.text) {
		w.weight *= codeCounts
	}
}

// codeWord matches words that occur in code but not in prose: fooBar, foo_bar, foo.bar, a::b, utf8.
var codeWord = regexp.MustCompile(`[a-z][A-Z]|\w[._]\w|::|\d`)

// kindFactor is the factor for the kind of a file's path, in the order of shard.PathRank.
var kindFactor = []float64{1, 0.7, 0.5, 0.4, 0.4}

// repeats matches paths of files that repeat other files: change logs, many files copied into one,
// documentation of old versions, and recorded output of programs.
var repeats = mustMatch(`(?i)(?:^|[/._-])(?:change[s_-]?(?:logs?)?|history|news|release[-_ ]?notes?|releases)(?:\.(?:md|markdown|rst|txt|adoc))?$` +
	`|(?:^|/)(?:change-?logs?(?:\.d)?|news|changes|release[-_]?notes|versioned_docs|version-[^/]*\d[^/]*|single[-_](?:include|header)|baselines?|__snapshots__)/` +
	`|amalgamat|[._](?:approved|verified|baseline)\.\w+$|\.(?:api|snap)$`)

// mustMatch compiles an expression for paths. For thousands of paths this automaton is faster than
// package regexp.
func mustMatch(expr string) *match.Matcher {
	m, err := match.Compile(expr, match.Options{Names: true})
	if err != nil {
		panic(err)
	}
	return m
}

// extensionFactor is the factor for files that configure others or are prose, wherever they lie.
var extensionFactor = map[string]float64{
	".json": 0.6, ".yml": 0.6, ".yaml": 0.6, ".toml": 0.6, ".cfg": 0.6, ".ini": 0.6, ".xml": 0.6, ".csv": 0.6, ".cmake": 0.6, ".gradle": 0.6,
	".in": 0.6, ".am": 0.6, ".ac": 0.6, ".markdown": 0.7, ".md": 0.7, ".mdx": 0.7,
}

const (
	repeatsFactor = 0.4
	hiddenFactor  = 0.6 // for .github/, .eslintrc
)

// pathFactor returns the factor for the kind of a file's path. Source code has the highest.
func pathFactor(path string) float64 {
	factor := kindFactor[min(shard.PathRank(path), len(kindFactor)-1)]
	if name := strings.LastIndexByte(path, '/') + 1; path[0] == '.' || path[name] == '.' {
		factor = min(factor, hiddenFactor)
	}
	if own, ok := extensionFactor[strings.ToLower(filepath.Ext(path))]; ok {
		factor = min(factor, own)
	}
	if repeats.Matches([]byte(path)) {
		factor = min(factor, repeatsFactor)
	}
	return factor
}

// wordsAt is a line of a file and how strongly it has each word.
type wordsAt struct {
	number int
	words  [rankedWords]float64
}

// score returns how relevant the file is to the words.
func (c *relevance) score(words []rankedWord) float64 {
	score := perLine*c.bestLine + c.bestWindow + c.bestSymbol

	for i := range words {
		bit, w := uint64(1)<<i, words[i].weight
		if c.has&bit != 0 {
			score += perHas * w
		}
		switch {
		case c.inName&bit != 0:
			score += perName * w
		case c.inDir&bit != 0:
			score += perDir * w
		}
		if c.inSymbol&bit != 0 {
			score += w
		}

		// Many lines count more, but at most as much as the weight once more: n/(n+often) < 1.
		score += w * c.linesWith[i] / (c.linesWith[i] + often)
	}
	return score * c.factor
}

// scorePath notes which words the path has, and which of them are whole words of the file's name or
// of its directories (strength 1).
func (c *relevance) scorePath(words []rankedWord, path string) {
	c.factor = pathFactor(path)
	name := strings.LastIndexByte(path, '/') + 1
	for i := range words {
		inName, inDir := words[i].strength([]byte(path[name:])), words[i].strength([]byte(path[:name]))
		if inName > 0 || inDir > 0 {
			c.has |= 1 << i
		}
		if inName == 1 {
			c.inName |= 1 << i
		}
		if inDir == 1 {
			c.inDir |= 1 << i
		}
	}
}

// scoreLine scores a line and returns what its words weigh. The caller passes the lines in order.
func (c *relevance) scoreLine(words []rankedWord, l browse.Line) float64 {
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

	// An overlong line was written by a program and has everything side by side: it counts less and
	// belongs to no window.
	if len(bytes.TrimSpace(l.Text)) > longLine {
		weight *= longLineRate
	} else if sum := c.windowWeight(words, at); sum > c.bestWindow {
		c.bestWindow, c.windowFrom, c.windowTo = sum, c.recent[0].number, l.Number
	}
	c.bestLine = max(c.bestLine, weight)
	return weight
}

// windowWeight returns the total weight of the words on a line and a few lines before it.
func (c *relevance) windowWeight(words []rankedWord, last wordsAt) float64 {
	c.recent = append(c.recent, last)

	for c.recent[0].number <= last.number-windowLines {
		c.recent = c.recent[1:]
	}

	// Each word counts with its strongest place in the window.
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

// scoreSymbol scores the name of a symbol.
func (c *relevance) scoreSymbol(words []rankedWord, name string) {
	weight, found := 0.0, 0
	for i := range words {
		if words[i].strength([]byte(name)) == 1 {
			c.inSymbol |= 1 << i
			weight += words[i].weight
			found++
		}
	}
	if weight > 0 {
		c.bestSymbol = max(c.bestSymbol, weight*min(1, float64(found)/float64(partsOf(name))))
	}
}

// partsOf returns how many parts a name has: two in a_b and in aB.
func partsOf(name string) (n int) {
	for i := range len(name) {
		if letter := name[i]|0x20 >= 'a' && name[i]|0x20 <= 'z'; letter && beginsPart([]byte(name), i) {
			n++
		}
	}
	return max(n, 1)
}

// strength returns how well a text has a word: 0 if not at all, 1 if the word begins a word of the
// text or a part of one, as retry in doRetry and retry_count.
func (w *rankedWord) strength(text []byte) float64 {
	// Try only the first places: if none begins a word, the word is a part of others in this text.
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

// beginsPart reports whether a part of a name begins at i. a_b, aB and a.b have two parts.
func beginsPart(text []byte, i int) bool {
	if i == 0 {
		return true
	}
	before, at := text[i-1], text[i]
	letter := before|0x20 >= 'a' && before|0x20 <= 'z' || before >= 0x80
	return !letter || before >= 'a' && at >= 'A' && at <= 'Z'
}
