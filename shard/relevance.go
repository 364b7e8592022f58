package shard

import (
	"math/bits"
	"path/filepath"
	"strings"

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
	has, inName, inDir uint64            // one bit for each word
	matches            [MaxWords]float64 // by word: how often the text has it; an estimate until it is read
	bestBlock          float64           // 0 until the file is read, as bestSymbol
	bestSymbol         float64
}

const (
	often        = 8.0
	perUnit      = 4.0 // estimate of the matches in a unit of 4 KiB that has some
	perHas       = 0.5
	perName      = 3.0
	perDir       = 2.0
	placesJudged = 8   // places of a word in a name that are tried
	insideWord   = 0.3 // strength of a word inside another one, such as gc in bugcheck
	longLineRate = 0.25
	proseLine    = 400 // bytes; a program wrote a longer line
	blockLines   = 10
)

// kindFactor is the factor for the kind of a file.
var kindFactor = [...]float64{plainCode: 1, documentation: 0.7, generatedCode: 0.5, testCode: 0.4, vendoredCode: 0.4}

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

// extensionFactor is the factor for files that configure others or are prose, wherever they lie. Files without
// an extension, such as ISSUE_TEMPLATE, are rarely source.
var extensionFactor = map[string]float64{
	".json": 0.6, ".yml": 0.6, ".yaml": 0.6, ".toml": 0.6, ".cfg": 0.6, ".ini": 0.6, ".xml": 0.6, ".csv": 0.6, ".cmake": 0.6, ".gradle": 0.6,
	".in": 0.6, ".am": 0.6, ".ac": 0.6, ".markdown": 0.7, ".md": 0.7, ".mdx": 0.7, ".properties": 0.6, "": 0.6,
	".pbxproj": 0.4, ".xcscheme": 0.4, ".vcxproj": 0.4, ".filters": 0.4, ".csproj": 0.6, ".sln": 0.4, ".props": 0.6, ".targets": 0.6,
}

const repeatsFactor = 0.4

// pathFactor returns the factor for a file of a kind. Source code has the highest. It is at most the
// factor of the kind.
func pathFactor(kind category, path []byte) float64 {
	factor := kindFactor[min(int(kind), len(kindFactor)-1)]
	if own, ok := extensionFactor[strings.ToLower(filepath.Ext(string(path)))]; ok {
		factor = min(factor, own)
	}
	if factor > repeatsFactor && repeats.Matches(path) {
		factor = repeatsFactor
	}
	return factor
}

// namesKind reports whether a word names directories of examples or documents. Those of tests are no kind:
// who changes a test runner wants its source.
func namesKind(word *match.Matcher) bool {
	for name, dirs := range dirCategories {
		if dirs&(sampleDir|docDir) == 0 {
			continue
		}
		start, end, ok := word.Next([]byte(name), 0)
		if ok && start == 0 && end >= 3 && len(name)-end <= len("ing") {
			return true
		}
	}
	return false
}

// lift returns what takes back the factor for the kind of a file: a query with the word example wants
// examples. It is 1 if no word of the path names a kind.
func (p *wordPlan) lift(c *relevance, kind category) float64 {
	if (c.inName|c.inDir)&p.kinds == 0 || kind == generatedCode || kind == vendoredCode {
		return 1
	}
	return 1 / kindFactor[kind]
}

// score returns how relevant the file is to the words, without the factor for its path.
func (c *relevance) score(words []Word) float64 {
	score := c.bestBlock + c.bestSymbol

	for i := range words {
		bit, w := uint64(1)<<i, words[i].Weight
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
	return score
}

// scorePath notes which words the path has, and which of them are whole words of the file's name or
// of its directories (strength 1).
func (c *relevance) scorePath(p *wordPlan, path []byte) {
	name := strings.LastIndexByte(string(path), '/') + 1
	for i := range p.words {
		inName, inDir := p.strength(i, path[name:]), p.strength(i, path[:name])
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

// scoreSymbol scores the name of a symbol.
func (c *relevance) scoreSymbol(p *wordPlan, name []byte) {
	weight, found := 0.0, 0
	for i := range p.words {
		if c.has>>i&1 != 0 && p.strength(i, name) == 1 {
			weight += p.words[i].Weight
			found++
		}
	}
	if weight > 0 {
		c.bestSymbol = max(c.bestSymbol, weight*min(1, float64(found)/float64(partsOf(name))))
	}
}

// partsOf returns how many parts a name has: two in a_b and in aB.
func partsOf(name []byte) (n int) {
	for i, at := range name {
		if letter := at|0x20 >= 'a' && at|0x20 <= 'z'; letter && beginsPart(name, i) {
			n++
		}
	}
	return max(n, 1)
}

// strength returns how well a text has word i: 0 if not at all, 1 if the word begins a word of the
// text or a part of one, as retry in doRetry and retry_count.
func (p *wordPlan) strength(i int, text []byte) float64 {
	// Try only the first places: if none begins a word, the word is a part of others in this text.
	strength, from := 0.0, 0
	for range placesJudged {
		start, end, ok := p.texts[i].m.Next(text, from)
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

// wordLine is a line of a file and which words it has.
type wordLine struct {
	number   int
	from, to int    // its bytes
	has      uint64 // one bit for each word
	begins   uint64 // words that begin a word of the line; others are inside words
	spans    []match.Span
}

// short reports whether a person may have written the line.
func (l *wordLine) short() bool { return l.to-l.from <= proseLine }

// weightOf returns what the words of a line or of several lines weigh: all of the weight for those that begin
// words, less for others.
func weightOf(words []Word, has, begins uint64) (sum float64) {
	for ; has != 0; has &= has - 1 {
		i := bits.TrailingZeros64(has)
		if begins>>i&1 != 0 {
			sum += words[i].Weight
		} else {
			sum += insideWord * words[i].Weight
		}
	}
	return sum
}

// weight returns what the words of the line weigh. An overlong line has everything side by side: it
// counts less.
func (l *wordLine) weight(words []Word) float64 {
	w := weightOf(words, l.has, l.begins)
	if !l.short() {
		w *= longLineRate
	}
	return w
}

// bestBlock returns the run of lines, at most blockLines apart, whose words weigh the most together:
// lines[first] to lines[last]. Its weight is 0 if all lines are overlong.
func bestBlock(lines []wordLine, words []Word) (first, last int, weight float64) {
	for end := range lines {
		if !lines[end].short() {
			continue
		}
		var has, begins uint64
		start := end
		for i := end; i >= 0 && lines[i].number > lines[end].number-blockLines; i-- {
			if lines[i].short() {
				start, has, begins = i, has|lines[i].has, begins|lines[i].begins
			}
		}
		if sum := weightOf(words, has, begins); sum > weight {
			first, last, weight = start, end, sum
		}
	}
	return first, last, weight
}
