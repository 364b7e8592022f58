package shard

import (
	"bytes"
	"math"

	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
)

// The weights of a score. A kind of evidence always outweighs all weaker
// kinds together: a definition any use, a whole word any part of one.
const (
	scoreDefinition = 4000 // the match is the name of a symbol defined there; scoreKind comes on top
	scoreExact      = 3000 // the case of the name too is that of the query
	scoreShape      = 2000 // it looks like a definition
	scoreExactShape = 1000 // in the case of the query
	scoreWord       = 800  // it is a whole word
	scoreExactWord  = 400  // in the case of the query
	scorePart       = 100  // it begins or ends one
	scoreBase       = 400  // the file is named so
	scoreBasePart   = 100  // the name of the file contains it
	scoreNameOnly   = 200  // a match in the name where only names were asked
	scoreCount      = 20   // times the logarithm of the number of matches
	scoreEarly      = 10   // near the top of the file
	scoreRecency    = 30   // of the repository
)

// What a definition is worth by the rank of its kind: who looks for a name
// looks for what it does before where a member is called so.
var scoreKind = [...]float64{2000, 1000, 0}

// KindRank orders kinds of symbols, as universal-ctags names them: what can be
// called or instantiated, what has a value, members and the rest. An
// implementation, as of Rust, adds to what is defined elsewhere.
func KindRank(kind string) int {
	switch kind {
	case "function", "method", "class", "struct", "interface", "trait", "type", "typedef", "enum", "union", "macro", "module", "namespace",
		"protocol", "constructor", "target", "table", "view":
		return 0
	case "constant", "variable", "package":
		return 1
	}
	return 2
}

// Deductions, by category: code before documentation, generated, test and
// vendored files. They stay below the step from a use to a definition.
var scoreCategory = [...]float64{plainCode: 0, documentation: 60, generatedCode: 150, testCode: 250, vendoredCode: 300}

// scoreLooks is how many matches of a file are looked at.
const scoreLooks = 24

// score ranks an occurrence of the present document by its first matches.
func (s *search) score(e *evaluator, r *run, occ int, spans []match.Span) float64 {
	sh := r.b.s
	best, most := e.b.definition(e.doc, &e.symbols), s.p.bestUse()
	for i := 0; best < most && i < min(len(spans), scoreLooks); i++ {
		best = max(best, e.scoreSpan(spans[i]))
	}
	score := best + scoreCount*math.Log2(float64(1+len(spans)))
	if len(spans) > 0 {
		score += scoreEarly / (1 + float64(spans[0].Start)/4096)
	}
	score += e.scoreName(occ, len(spans) == 0)
	kind := sh.occKind[occ]
	score -= scoreCategory[min(int(kind), len(scoreCategory)-1)]
	score += scoreRecency * e.recencyOf(s, r.m.repos[sh.occRepo.at(occ)])
	// Few distinct values: equal files fall back on the order of names.
	return math.Round(score)
}

// bestUse is the most that scoreSpan gives: no better match need be looked for.
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

// recencyOf asks how recent a repository is; for the one that was asked about
// last, it is known.
func (e *evaluator) recencyOf(s *search, repo *repoView) float64 {
	if s.r.Rank != nil && repo != e.ranked {
		e.ranked = repo
		_, e.recency = s.r.Rank(repo.id)
	}
	return e.recency
}

// scoreSpan judges one match by what surrounds it.
func (e *evaluator) scoreSpan(sp match.Span) float64 {
	if sp.Start == sp.End {
		return 0
	}
	text := e.t.buf
	if u := e.t.unitAt(sp.Start); !e.t.have[u] {
		return scoreDefinition // a symbol's name: nothing was read for it
	}
	low, high := e.t.around(sp, scoreSight)
	score := scoreShapeOf(text, sp, low, high)
	switch {
	case score < scoreWord || !e.exact(text[sp.Start:sp.End]):
		return score
	case score < scoreShape:
		return score + scoreExactWord
	}
	return score + scoreExactShape
}

// exact tells whether a match is a word of the query in its very case, where
// the query does not ask for it.
func (e *evaluator) exact(found []byte) bool {
	for _, p := range e.p.patterns {
		if p.text.Fold && !p.text.Regexp && p.text.Field == query.Content && string(found) == p.text.Pattern {
			return true
		}
	}
	return false
}

// scoreShapeOf judges one match by the text around it, of which low to high
// may be looked at.
func scoreShapeOf(text []byte, sp match.Span, low, high int) float64 {
	left := sp.Start == low || isBorder(text[sp.Start-1], text[sp.Start])
	right := sp.End == high || isBorder(text[sp.End-1], text[sp.End])
	switch {
	case !left && !right:
		return 0
	case !left || !right:
		return scorePart
	}
	if !isWord(text[sp.Start]) {
		return scoreWord // not a name
	}
	from, to := low+bytes.LastIndexByte(text[low:sp.Start], '\n')+1, high
	if i := bytes.IndexByte(text[sp.End:high], '\n'); i >= 0 {
		to = sp.End + i
	}
	if looksDefined(text[from:sp.Start], text[sp.End:to]) {
		return scoreShape
	}
	return scoreWord
}

// scoreSight is how far around a match the score looks.
const scoreSight = 128

// isBorder tells whether a word begins or ends between two bytes.
func isBorder(before, after byte) bool { return !isWord(before) || !isWord(after) }

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// Words in front of a name that define it, each with a space behind it.
var definers = [][]byte{
	[]byte("func "), []byte("def "), []byte("class "), []byte("struct "), []byte("interface "), []byte("type "),
	[]byte("enum "), []byte("union "), []byte("trait "), []byte("fn "), []byte("#define "), []byte("module "),
	[]byte("namespace "), []byte("typedef "), []byte("function "), []byte("macro_rules! "), []byte("sub "),
	[]byte("package "), []byte("const "), []byte("object "), []byte("impl "),
}

// looksDefined guesses from the line around a word whether the word is
// defined there. The definition of a C function begins at the margin and does
// not end with a semicolon.
func looksDefined(before, after []byte) bool {
	after = bytes.TrimRight(after, " \t\r")
	if n := len(before); n > 0 && before[n-1] == ' ' {
		for _, d := range definers {
			if bytes.HasSuffix(before, d) {
				use := len(after) > 0 && (after[len(after)-1] == ';' || bytes.IndexByte(after, '*') == 1)
				return !use || d[0] == '#' || bytes.Equal(d, []byte("const ")) || bytes.Equal(d, []byte("type "))
			}
		}
	}
	if len(before) > 0 && before[0] != ' ' && before[0] != '\t' && before[0] != '#' && before[0] != '*' && before[0] != '/' ||
		len(before) == 0 {
		if len(after) > 0 && after[0] == '(' && after[len(after)-1] != ';' && bytes.IndexByte(before, '(') < 0 &&
			bytes.IndexByte(before, '=') < 0 {
			return true
		}
	}
	if len(after) == 0 || after[0] != ' ' {
		return false
	}
	return bytes.HasPrefix(after, []byte(" := ")) || bytes.HasPrefix(after, []byte(" = function")) ||
		bytes.HasPrefix(after, []byte(" = (")) && bytes.Contains(after, []byte("=>"))
}

// scoreName adds what the name of the file says.
func (e *evaluator) scoreName(occ int, only bool) float64 {
	path := e.b.s.path(int(e.b.s.occPath.at(occ)))
	base := path[bytes.LastIndexByte(path, '/')+1:]
	stem := base
	if i := bytes.IndexByte(base, '.'); i > 0 {
		stem = base[:i]
	}
	score := 0.0
	for _, p := range e.p.patterns {
		switch {
		case !p.positive:
		case p.text.Field == query.Name && only:
			if p.m.Matches(base) {
				score = max(score, scoreNameOnly)
			}
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

// containsFold tells whether a name contains what bytes.EqualFold finds equal
// to part.
func containsFold(name, part []byte) bool {
	for i := 0; i+len(part) <= len(name); i++ {
		if (name[i]^part[0])&^0x20 == 0 && bytes.EqualFold(name[i:i+len(part)], part) {
			return true
		}
	}
	return false
}
