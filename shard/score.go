package shard

import (
	"bytes"
	"math"
	"strings"

	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/shard/symbols"
)

// The weights of a score. Each kind of evidence outweighs all weaker kinds together: a definition
// outweighs any use, a whole word any part of a word.
const (
	scoreDefinition = 4000 // the match is the name of a symbol that is defined there; scoreKind is added
	scoreExact      = 3000 // the name has the query's case too
	scoreShape      = 2000 // the line looks like a definition of the match
	scoreExactShape = 1000 // and the match has the query's case
	scoreWord       = 800  // the match is a whole word
	scoreExactWord  = 400  // and has the query's case
	scorePart       = 100  // the match begins or ends a word
	scoreBase       = 400  // the name of the file is a word of the query
	scoreBasePart   = 100  // the name of the file contains a word of the query
	scoreNameOnly   = 200  // the name of the file matches a query for names only
	scoreCount      = 20   // times the logarithm of the number of matches
	scoreEarly      = 10   // the first match is near the top of the file: half of it at scoreEarlyAt
	scoreRecency    = 30   // times the recency of the repository
)

// scoreEarlyAt is the offset at which a first match gets half of scoreEarly.
const scoreEarlyAt = 4096

// scoreKind is added to a definition, by the rank of its kind: a reader who looks for a name rather
// wants the function than a member.
var scoreKind = [...]float64{2000, 1000, 0, -1500}

// KindRank returns the rank of a kind of symbols, as universal-ctags names it: 0 for functions and
// types, 1 for values, 2 for all others, 3 for keys of configuration.
func KindRank(kind string) int {
	switch kind {
	case "function", "method", "class", "struct", "interface", "trait", "type", "typedef", "enum", "union", "macro", "module", "namespace",
		"protocol", "constructor", "target", "table", "view":
		return 0
	case "constant", "variable", "package":
		return 1
	case "key":
		return 3
	}
	return 2
}

// scoreCategory is deducted by category: code comes before documentation, generated files, tests
// and vendored files. A deduction is less than the step from a use to a definition.
var scoreCategory = [...]float64{plainCode: 0, documentation: 60, generatedCode: 150, testCode: 250, vendoredCode: 300}

// maxScoredMatches is how many matches of a file score looks at.
const maxScoredMatches = 24

// score returns the score of an occurrence of the current document; spans are its matches. It adds
// up the best definition or match, how close the words are, the number of matches, and what the
// name, the category and the repository of the file are worth.
func (s *search) score(e *evaluator, r *run, occ int, spans []match.Span) float64 {
	sh := r.b.s

	// The best definition or match counts. Of a sentence that a file has, only what it has of it there:
	// whether the file also defines "key" or "value" says nothing.
	together, sentences := e.scoreTogether(spans)
	best := max(e.b.bestDefinition(e.doc, &e.symbols, sentences), e.bestSpan(spans, sentences))

	score := best + together + scoreCount*math.Log2(float64(1+len(spans)))
	if len(spans) > 0 {
		score += scoreEarly / (1 + float64(spans[0].Start)/scoreEarlyAt)
	}

	score += e.scoreName(occ, len(spans) == 0)
	kind := sh.occKind[occ]
	score -= scoreCategory[min(int(kind), len(scoreCategory)-1)]
	score += scoreRecency * e.recencyOf(s, r.m.repos[sh.occRepo.At(occ)])

	return math.Round(score) // so that equal files have equal scores, and their names decide
}

// bestSpan returns the score of the best of the first matches within some ranges; nil stands for the
// whole document.
func (e *evaluator) bestSpan(spans []match.Span, within []match.Span) (best float64) {
	scored, limit := 0, e.p.bestUse() // a match cannot score more
	for _, sp := range spans {
		if best >= limit || scored == maxScoredMatches {
			break
		}
		if isWithin(sp.Start, within) {
			best = max(best, e.scoreSpan(sp))
			scored++
		}
	}
	return best
}

// bestUse returns the highest score that scoreSpan can return. When bestSpan has found such a match,
// it does not look at further matches.
func (p *plan) bestUse() float64 {
	best := float64(scoreShape)
	for _, c := range p.patterns {
		switch {
		case c.text.Field == query.Symbol:
			return scoreDefinition
		case c.text.Fold && !c.text.Regexp && c.text.Field == query.Content:
			best = scoreShape + scoreExactShape
		}
	}
	return best
}

// recencyOf returns how recent a repository is. It caches the result, because documents of one
// repository follow each other.
func (e *evaluator) recencyOf(s *search, repo *repoView) float64 {
	if s.r.Rank != nil && repo != e.ranked {
		e.ranked = repo
		_, e.recency = s.r.Rank(repo.id)
	}
	return e.recency
}

// scoreSpan scores one match by the text around it. A match in text that was not decoded is the name
// of a symbol.
func (e *evaluator) scoreSpan(sp match.Span) float64 {
	if sp.Start == sp.End {
		return 0
	}

	text := e.t.buf
	if u := e.t.unitAt(sp.Start); !e.t.decoded[u] {
		return scoreDefinition // it is a symbol's name: the text was not read
	}

	low, high := e.t.decodedAround(sp, scoreSight)
	score := scoreShapeOf(text, sp, low, high)
	switch {
	case score < scoreWord || !e.hasQueryCase(text[sp.Start:sp.End]):
		return score
	case score < scoreShape:
		return score + scoreExactWord
	}
	return score + scoreExactShape
}

// hasQueryCase reports whether the text of a match equals a word of the query in its case, although
// the query ignores case.
func (e *evaluator) hasQueryCase(found []byte) bool {
	for _, p := range e.p.patterns {
		if p.text.Fold && !p.text.Regexp && p.text.Field == query.Content && string(found) == p.text.Pattern {
			return true
		}
	}
	return false
}

// scoreShapeOf scores a match by the text around it. It reads only [low, high).
func scoreShapeOf(text []byte, sp match.Span, low, high int) float64 {
	left := sp.Start == low || symbols.IsBorder(text[sp.Start-1], text[sp.Start])
	right := sp.End == high || symbols.IsBorder(text[sp.End-1], text[sp.End])

	switch {
	case !left && !right:
		return 0
	case !left || !right:
		return scorePart
	}

	if !symbols.IsWord(text[sp.Start]) {
		return scoreWord // it is no name
	}

	// The line tells whether it defines the match.
	from, to := low+bytes.LastIndexByte(text[low:sp.Start], '\n')+1, high
	if i := bytes.IndexByte(text[sp.End:high], '\n'); i >= 0 {
		to = sp.End + i
	}

	if looksDefined(text[from:sp.Start], text[sp.End:to]) {
		return scoreShape
	}
	return scoreWord
}

// scoreSight is how many bytes on each side of a match scoring reads.
const scoreSight = 128

// definingWords are the words that define the name directly after them.
var definingWords = [][]byte{
	[]byte("func "), []byte("def "), []byte("class "), []byte("struct "), []byte("interface "), []byte("type "),
	[]byte("enum "), []byte("union "), []byte("trait "), []byte("fn "), []byte("#define "), []byte("module "),
	[]byte("namespace "), []byte("typedef "), []byte("function "), []byte("macro_rules! "), []byte("sub "),
	[]byte("package "), []byte("const "), []byte("object "), []byte("impl "),
}

// looksDefined guesses whether a line defines the word between before and after.
func looksDefined(before, after []byte) bool {
	after = bytes.TrimRight(after, " \t\r")
	if d := endingWord(before); d != nil {
		return !looksUsed(d, after)
	}
	if looksCDefined(before, after) {
		return true
	}

	// Such as name := ..., name = function, name = (...) => ...
	if len(after) == 0 || after[0] != ' ' {
		return false
	}
	return bytes.HasPrefix(after, []byte(" := ")) || bytes.HasPrefix(after, []byte(" = function")) ||
		bytes.HasPrefix(after, []byte(" = (")) && bytes.Contains(after, []byte("=>"))
}

// endingWord returns the word of definingWords with which a text ends; nil if there is none.
func endingWord(before []byte) []byte {
	if n := len(before); n == 0 || before[n-1] != ' ' {
		return nil
	}
	for _, d := range definingWords {
		if bytes.HasSuffix(before, d) {
			return d
		}
	}
	return nil
}

// looksUsed reports whether a line only uses a name after a defining word: "struct list;"
// declares it, and "struct list *next" declares a variable of that type. After #define, const and
// type, the line is a definition even if it ends with ; or has a *.
func looksUsed(definer, after []byte) bool {
	if len(after) == 0 || definer[0] == '#' || string(definer) == "const " || string(definer) == "type " {
		return false
	}
	return after[len(after)-1] == ';' || bytes.IndexByte(after, '*') == 1
}

// looksCDefined reports whether the line looks like the head of a C function: it begins at the
// margin, a parenthesis follows the name, and no semicolon ends the line. "static int parse(char
// *s)" is one; "x = parse(s)" and "int parse(char *s);" are none.
func looksCDefined(before, after []byte) bool {
	if len(after) == 0 || after[0] != '(' || after[len(after)-1] == ';' {
		return false
	}
	if len(before) > 0 && strings.IndexByte(" \t#*/", before[0]) >= 0 {
		return false
	}
	return bytes.IndexByte(before, '(') < 0 && bytes.IndexByte(before, '=') < 0
}

// scoreName scores the name of the file: whether it is, or contains, a word of the query (list.c
// for "list"). If nameOnly is set, the file has no match in its content, and a match in the name
// counts, too.
func (e *evaluator) scoreName(occ int, nameOnly bool) float64 {
	path := e.b.s.path(int(e.b.s.occPath.At(occ)))
	base := path[bytes.LastIndexByte(path, '/')+1:]
	stem := base
	if i := bytes.IndexByte(base, '.'); i > 0 {
		stem = base[:i]
	}

	score := 0.0
	for _, p := range e.p.patterns {
		switch {
		case !p.positive:
		case p.text.Field == query.Name && nameOnly:
			if p.m.Matches(base) {
				score = max(score, scoreNameOnly)
			}

		// An expression is not what a file is called.
		case p.text.Field == query.Content && !p.text.Regexp && len(p.name) > 1:
			if bytes.EqualFold(stem, p.name) || bytes.EqualFold(base, p.name) {
				score = max(score, scoreBase)
			} else if len(p.name) > 2 && containsFold(base, p.name) {
				score = max(score, scoreBasePart)
			}
		}
	}
	return score
}

// containsFold reports whether a name contains a part, in any case. The part must not be empty.
func containsFold(name, part []byte) bool {
	for i := 0; i+len(part) <= len(name); i++ {
		// The first byte decides most places: a letter differs from its capital only in the bit 0x20.
		if (name[i]^part[0])&^0x20 == 0 && bytes.EqualFold(name[i:i+len(part)], part) {
			return true
		}
	}
	return false
}
