package search

import (
	"math"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/match"
)

// relevance scores how relevant a file is to some words. With w the weight of a word, which is
// higher if fewer files have it, the score is
//
//	sum over its words   w * (half + often + 3 in its name, or 2 in a directory)
//	the best 10 lines    all that their words weigh together
//	the best symbol      what the words of its name weigh, by how much of the name they are
//
// times a factor for the kind of its path. often is n/(n+8) for n matches, as in BM25: the tenth match
// of a word says less than the second. The figures were chosen by a test: the subject of a commit
// should find the files that the commit changed. bench/report/agents.md says what each part wins.
type relevance struct {
	has, inName, inDir uint64               // one bit for each word
	matches            [rankedWords]float64 // by word: how often the text has it; an estimate until it is read
	bestBlock          float64              // 0 until the file is read, as bestSymbol
	bestSymbol         float64
	factor             float64 // by the kind of the path
}

const (
	often        = 8.0
	perUnit      = 4.0 // estimate of the matches in a unit of 4 KiB that has some
	perHas       = 0.5
	perName      = 3.0
	perDir       = 2.0
	placesJudged = 8   // places of a word in a name that are tried
	rareCounts   = 1.6 // exponent that makes rare words count more than common ones
	codeCounts   = 1.6 // factor for a word that can only be code
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

const repeatsFactor = 0.4

// pathFactor returns the factor for the kind of a file's path. Source code has the highest.
func pathFactor(path string) float64 {
	factor := kindFactor[min(shard.PathRank(path), len(kindFactor)-1)]
	if own, ok := extensionFactor[strings.ToLower(filepath.Ext(path))]; ok {
		factor = min(factor, own)
	}
	if repeats.Matches([]byte(path)) {
		factor = min(factor, repeatsFactor)
	}
	return factor
}

// score returns how relevant the file is to the words.
func (c *relevance) score(words []rankedWord) float64 {
	score := c.bestBlock + c.bestSymbol

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

		// Many matches count more, but at most as much as the weight once more: n/(n+often) < 1.
		score += w * c.matches[i] / (c.matches[i] + often)
	}
	return score * c.factor
}

// scorePath notes which words the path has, and which of them are whole words of the file's name or
// of its directories (strength 1).
func (c *relevance) scorePath(words []rankedWord, path string) {
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

// takeTally replaces the estimates of the words, and scores the symbols.
func (c *relevance) takeTally(words []rankedWord, t *shard.Tally) {
	for i := range words {
		c.matches[i] = float64(t.Matches[words[i].expr])
	}
	for _, name := range t.Names {
		c.scoreSymbol(words, name)
	}
}

// scoreSymbol scores the name of a symbol.
func (c *relevance) scoreSymbol(words []rankedWord, name string) {
	weight, found := 0.0, 0
	for i := range words {
		if words[i].strength([]byte(name)) == 1 {
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
