package trigram

import (
	"fmt"
	"regexp/syntax"
	"strings"
)

// Scope says what candidate units promise about matches.
type Scope uint8

const (
	// ScopeStart means that every match starts at a byte that a candidate unit owns ([Span]), or at
	// the end of a document whose last unit is a candidate. Read from there as far as the match
	// goes.
	ScopeStart Scope = iota
	// ScopeLine means that no match contains a newline, and that the line of every match has a byte
	// owned by a candidate unit (or is the empty line at the unit's start or end). Read the lines
	// that touch candidate units.
	ScopeLine
	// ScopeDocument means that every document with a match has a candidate unit. Read the document.
	ScopeDocument
)

// Formula is a condition over trigrams that every match implies. It is immutable and safe for
// concurrent use.
//
// Its leaves are factors and runs. A factor is a string of up to some sixty bytes or byte classes
// that a match contains without a gap, so it lies in the window of the unit that owns its first
// byte. A run is a number of bytes of a class in a row. Trigrams may be intersected unit by unit
// only inside one factor, because different factors of a match can lie in different units. So a
// sequence of factors is evaluated with a reach: from the units of one factor to all units where
// the other factors may be, by order and by newlines.
type Formula struct {
	root  *node // nil means that all units are candidates
	scope Scope
	reach reach
}

// reach says where other factors of the same match can be.
type reach uint8

const (
	reachNear     reach = iota // in the same unit or the next
	reachLine                  // on the same line
	reachDocument              // in the same document
)

type op uint8

const (
	opNone   op = iota // matches nothing
	opFactor           // byte classes in a row
	opRun              // count bytes of a run class in a row
	opSeq              // all of subs, ordered by their starts
	opOr               // at least one of subs
)

// node is a condition. A nil node is always true.
type node struct {
	op    op
	subs  []*node
	set   []byteSet // for opFactor, folded
	picks []int     // positions in set whose trigrams are looked up; nil for a set of one or two bytes
	class int       // for opRun
	count int       // for opRun
	// special means that the text may have U+212A (Kelvin) for k, or U+017F (long s) for s. Units
	// with one of these characters are always candidates.
	special bool
}

// FromLiteral returns the formula of a literal. With fold it ignores case, by simple Unicode
// folding.
func FromLiteral(lit string, fold bool) *Formula {
	chars := splitChars(lit)
	if strings.Contains(lit, "\n") {
		chars = chars[:min(len(chars), maxBroken)]
	}
	return newFormula(new(flattener).flattenLiteral(chars, fold))
}

// FromRegexp returns the formula of a parsed expression. With fold every literal in it ignores
// case.
func FromRegexp(re *syntax.Regexp, fold bool) *Formula {
	return newFormula((&flattener{fold: fold}).flatten(re))
}

// maxNear is how many elements of a sequence a formula with reachNear uses. Even if each were three
// bytes long, the last would be in the same unit as the first or in the next.
const maxNear = 1200

// maxBroken is how many characters of a literal with line breaks a formula uses. The ways to write
// the line breaks, "\n" or "\r\n", multiply them.
const maxBroken = 500

// newFormula returns the formula of an expression that matches one of alts. It chooses the narrowest
// scope and reach that hold for all of them. It may cut the sequences in alts short.
func newFormula(alts []seq) *Formula {
	f := &Formula{scope: ScopeDocument, reach: reachDocument}
	fixed, atStart := true, true
	for _, s := range alts {
		fixed = fixed && s.hasFixedLength()
		atStart = atStart && s.beginsWithCondition()
	}

	switch {
	case fixed && atStart:
		f.scope, f.reach = ScopeStart, reachNear
		for i, s := range alts {
			alts[i] = s[:min(len(s), maxNear)]
		}
	case !bytesOf(alts).has('\n'):
		f.scope, f.reach = ScopeLine, reachLine
	case atStart:
		f.scope = ScopeStart
	}

	f.root = makeOr(alts, true)
	return f
}

// Scope returns what candidates promise about matches.
func (f *Formula) Scope() Scope { return f.scope }

// String returns the formula as text: factors in quotes with classes in brackets, runs as
// class{count}, sequences with spaces, alternatives in parentheses with bars.
func (f *Formula) String() string {
	if f.root == nil {
		return "all"
	}
	return f.root.String()
}

// String returns a condition in the form of [Formula.String].
func (n *node) String() string {
	switch n.op {
	case opNone:
		return "none"

	// A star marks an s or k that may also be a character beyond ASCII.
	case opFactor:
		var b strings.Builder
		b.WriteByte('"')
		for _, s := range n.set {
			b.WriteString(s.String())
		}
		b.WriteByte('"')
		if n.special {
			b.WriteByte('*')
		}
		return b.String()

	case opRun:
		return fmt.Sprintf("%s{%d}", [...]string{"digit", "upper", "hex", "word"}[n.class], n.count)
	}

	parts := make([]string, len(n.subs))
	for i, s := range n.subs {
		parts[i] = s.String()
	}

	if n.op == opSeq {
		return strings.Join(parts, " ")
	}
	return "(" + strings.Join(parts, " | ") + ")"
}

// makeOr returns the condition that one of the alternatives holds; nil if one of them is always
// true. edges says that the alternatives are the whole expression, so that anchors at their ends
// become newlines.
func makeOr(alts []seq, edges bool) *node {
	var subs []*node
	seen := make(map[string]bool)
	for _, s := range alts {
		n := s.makeNode(edges)
		if n == nil {
			return nil
		}

		// Alternatives with the same text are equal.
		if k := n.String(); !seen[k] {
			seen[k] = true
			subs = append(subs, n)
		}
	}

	switch len(subs) {
	case 0:
		return &node{op: opNone}
	case 1:
		return subs[0]
	}
	return &node{op: opOr, subs: subs}
}

// makeSeq returns the condition that all of subs hold; nil, which is always true, if there are none.
func makeSeq(subs []*node) *node {
	switch len(subs) {
	case 0:
		return nil
	case 1:
		return subs[0]
	}
	return &node{op: opSeq, subs: subs}
}
