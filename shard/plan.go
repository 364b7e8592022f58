package shard

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/trigram"
)

// op is the kind of a node of a plan. The constants are in the order of cost: an And evaluates its
// cheapest member first.
type op uint8

const (
	opConst op = iota
	opRepos
	opRev
	opLang
	opName
	opSymbol
	opContent
	opNot
	opAnd
	opOr
)

// node is a part of a compiled query.
type node struct {
	op    op
	subs  []*node
	yes   bool            // opConst
	repos *roaring.Bitmap // opRepos
	name  string          // opRev, opLang
	pat   int             // opName, opSymbol, opContent: index in plan.patterns
	slot  int             // number of the node: index in bound.nodes
}

// pattern is a Text of the query, compiled.
type pattern struct {
	text    query.Text
	name    []byte // bytes of text.Pattern
	m       *match.Matcher
	formula *trigram.Formula
	reach   reach
	// longest is the greatest length of a match of a literal, in bytes. It is -1 for an expression
	// and for a whole word: with reachStart, their matches end in the line in which they start.
	longest    int
	lookBehind bool // a match depends on the text before it, as with ^ or \b
	positive   bool // the query has it outside of any Not, so its matches are shown
}

// reach is how much of a document a search must read to verify a candidate unit. With
// units of 4 KiB, a match that starts in unit 7 needs
//
//	reachStart     unit 7, and unit 8 up to the end of the line (or the longest match)
//	reachLine      the same, and unit 6 back to where the line begins
//	reachDocument  all units
type reach uint8

const (
	reachStart    reach = iota // the match starts in the candidate unit
	reachLine                  // the match is in a line that touches the candidate unit
	reachDocument              // the match is anywhere in the document
)

// plan is a query compiled for all shards. Only stop changes it.
type plan struct {
	known    *patterns // patterns compiled for earlier searches; nil means none
	root     *node
	patterns []*pattern
	contents []int     // indices of the patterns in the content
	required [][]byte  // see requiredWords
	symbols  bool      // the query has an opSymbol
	named    bool      // a pattern of paths has matches that are shown
	untagged bool      // find only documents whose symbols are not known
	slots    int       // number of nodes
	words    *wordPlan // nil if the search does not rank by words
}

// maxNodes limits the number of nodes of a query, and with it the depth of recursion.
const maxNodes = 10_000

// newPlan compiles a query, and words by which its files are ranked. Its atoms about repositories must be resolved.
func newPlan(q query.Q, words []Word, known *patterns) (*plan, error) {
	p := &plan{known: known}
	root, err := p.addNode(q, true)
	if err != nil {
		return nil, err
	}

	p.root = root
	p.required = p.requiredWords()
	if len(words) > 0 {
		if err := p.addWords(words); err != nil {
			return nil, err
		}
	}

	for i, t := range p.patterns {
		if t.text.Field == query.Content {
			p.contents = append(p.contents, i)
		}
		p.symbols = p.symbols || t.text.Field == query.Symbol
		p.named = p.named || t.text.Field == query.Name && t.positive
	}
	return p, nil
}

// addNode makes the node of q. positive is false below a Not.
func (p *plan) addNode(q query.Q, positive bool) (*node, error) {
	n := &node{slot: p.slots}
	if p.slots++; p.slots > maxNodes {
		return nil, fmt.Errorf("plan search: more than %d terms", maxNodes)
	}

	var subs []query.Q

	// Atoms are conditions on a document or an occurrence.
	switch q := q.(type) {
	case query.Const:
		n.op, n.yes = opConst, bool(q)
	case *query.Repos:
		n.op, n.repos = opRepos, q.Set
	case *query.Rev:
		n.op, n.name = opRev, q.Pattern
	case *query.Lang:
		n.op, n.name = opLang, q.Name

	case *query.Text:
		var err error
		n.op = [...]op{opContent, opName, opSymbol}[q.Field]
		n.pat, err = p.addPattern(*q, positive)
		return n, err

	// Operators get their members below.
	case *query.Not:
		n.op, subs, positive = opNot, []query.Q{q.Sub}, false
	case *query.And:
		n.op, subs = opAnd, q.Subs
	case *query.Or:
		n.op, subs = opOr, q.Subs
	default:
		return nil, fmt.Errorf("plan search: %s is not resolved", q)
	}

	for _, s := range subs {
		sub, err := p.addNode(s, positive)
		if err != nil {
			return nil, err
		}
		n.subs = append(n.subs, sub)
	}

	slices.SortStableFunc(n.subs, func(a, b *node) int { return int(a.op) - int(b.op) })
	return n, nil
}

// addPattern compiles a text and returns its index. A repeated text is compiled once.
func (p *plan) addPattern(t query.Text, positive bool) (int, error) {
	for i, known := range p.patterns {
		if known.text == t {
			known.positive = known.positive || positive
			return i, nil
		}
	}

	c, err := p.known.compile(t)
	if err != nil {
		return 0, err
	}

	c.positive = positive
	p.patterns = append(p.patterns, c)
	return len(p.patterns) - 1, nil
}

// compile compiles a text for matching, and for the postings.
func compile(t query.Text) (*pattern, error) {
	m, err := match.Compile(t.Pattern, match.Options{Literal: !t.Regexp, Fold: t.Fold, Names: t.Field == query.Name, WordBegins: t.WordBegins, WordEnds: t.WordEnds})
	if err != nil {
		return nil, fmt.Errorf("plan search: %w", err)
	}
	c := &pattern{text: t, name: []byte(t.Pattern), m: m, longest: -1}

	if t.Regexp {
		err = c.planRegexp()
	} else {
		c.planLiteral()
	}
	return c, err
}

// planLiteral sets the formula and the reach of a literal.
func (c *pattern) planLiteral() {
	t := c.text
	c.formula = trigram.FromLiteral(t.Pattern, t.Fold)
	c.longest = longestMatch(t.Pattern, t.Fold)

	switch {
	// A line break may be two bytes, and another unit may own the first of them.
	case t.Pattern == "" || strings.Contains(t.Pattern, "\n"):
		c.reach = reachDocument
	case t.WordBegins || t.WordEnds:
		c.longest, c.lookBehind = -1, true
	}
}

// planRegexp sets the formula and the reach of a regular expression.
func (c *pattern) planRegexp() error {
	t := c.text
	flags := syntax.ClassNL | syntax.PerlX | syntax.UnicodeGroups
	if t.Field == query.Name {
		flags |= syntax.DotNL | syntax.OneLine
	}
	if t.Fold {
		flags |= syntax.FoldCase
	}

	re, err := syntax.Parse(t.Pattern, flags)
	if err != nil {
		return fmt.Errorf("plan search: %w", err)
	}

	c.formula = trigram.FromRegexp(re, t.Fold)

	// If a match may cross lines, or the postings do not show where it is, read the whole document.
	scope := c.formula.Scope()
	if !staysInLine(re) || scope == trigram.ScopeDocument {
		c.reach = reachDocument
		return nil
	}

	c.reach = reachLine

	// An empty match has no byte, so no unit owns its start.
	if scope == trigram.ScopeStart && !matchesEmpty(re) {
		c.reach, c.lookBehind = reachStart, t.WordBegins || looksBehind(re)
	}
	return nil
}

// longestMatch returns an upper bound for the bytes of a match of a literal. With folding an ASCII k
// also matches the Kelvin sign of three bytes, and an s the long s of two. A letter beyond ASCII
// may match any rune.
func longestMatch(lit string, fold bool) int {
	n := len(lit)
	if !fold {
		return n
	}

	// Add the extra bytes of each letter that has a longer partner.
	for i := range len(lit) {
		switch c := lit[i]; {
		case c >= 0x80:
			return 3 * len(lit)
		case c|0x20 == 'k':
			n += 2
		case c|0x20 == 's':
			n++
		}
	}
	return n
}

// matchesEmpty reports whether an expression matches the empty text.
func matchesEmpty(re *syntax.Regexp) bool {
	// Operators that read a rune match no empty text; a literal may have no rune.
	switch re.Op {
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpNoMatch:
		return len(re.Rune) == 0 && re.Op == syntax.OpLiteral

	// A repetition matches the empty text if it allows zero times or if its part does.
	case syntax.OpRepeat:
		return re.Min == 0 || matchesEmpty(re.Sub[0])
	case syntax.OpPlus, syntax.OpCapture:
		return matchesEmpty(re.Sub[0])

	// All parts of a sequence must match the empty text, or one of the alternatives.
	case syntax.OpConcat:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !matchesEmpty(sub) })
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, matchesEmpty)
	}
	return true
}

// looksBehind reports whether a match depends on the text before it.
func looksBehind(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	return slices.ContainsFunc(re.Sub, looksBehind)
}

// staysInLine reports whether every match of an expression lies inside one line, and does not
// depend on other lines.
func staysInLine(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginText, syntax.OpEndText, syntax.OpAnyChar:
		return false

	// A match with a newline is on two lines.
	case syntax.OpLiteral:
		return !slices.Contains(re.Rune, '\n')
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			if re.Rune[i] <= '\n' && '\n' <= re.Rune[i+1] {
				return false
			}
		}
	}
	return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !staysInLine(sub) })
}

// requiredWords returns the words that a file must all contain, in the order of the query; nil if
// fewer than two.
func (p *plan) requiredWords() [][]byte {
	var words [][]byte
	var walk func(n *node)
	walk = func(n *node) {
		// A word below an Or or a Not is not required.
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
