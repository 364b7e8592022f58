package trigram

import (
	"fmt"
	"regexp/syntax"
	"strings"
)

// Scope says what a candidate unit promises about the matches.
type Scope uint8

const (
	// ScopeStart: every match starts at a byte that a candidate unit owns
	// ([Span]), or at the end of the document and the last unit is one. Read
	// from there as far as the match goes.
	ScopeStart Scope = iota
	// ScopeLine: no match contains a newline, and the line of every match has
	// a byte owned by a candidate unit (or is the empty line at its start or
	// end). Read the lines that touch candidate units.
	ScopeLine
	// ScopeDocument: every document with a match has a candidate unit. Read
	// the document.
	ScopeDocument
)

// Formula is a condition over trigrams that every match implies. It is
// immutable and safe for concurrent use.
// Its leaves are factors and runs. A factor is a string of at most some sixty bytes or
// byte classes that a match contains without a gap; so it lies in the window of the
// unit that owns its first byte. A run is a number of bytes of a class. Only inside one
// factor may trigrams be intersected unit by unit: different factors of a match can lie
// in different units. So a sequence of factors is evaluated with a reach: from the units
// of one factor to all units where, by order and by newlines, the others may be.
type Formula struct {
	root  *node // nil: it narrows nothing
	scope Scope
	reach reach
}

// reach says where the other factors of a match can be.
type reach uint8

const (
	reachNear     reach = iota // in the same unit or the next
	reachLine                  // on the same line
	reachDocument              // in the same document
)

type op uint8

const (
	opNone   op = iota // no match anywhere
	opFactor           // classes in a row
	opRun              // count bytes of a run class in a row
	opSeq              // all of subs, in the order of their starts
	opOr               // one of subs
)

// node is a condition. A nil node always holds.
type node struct {
	op    op
	subs  []*node
	set   []byteSet // of a factor, folded
	picks []int     // positions in set whose trigrams are looked up; none for one or two bytes
	class int       // of a run
	count int       // of a run
	// special: in the text U+212A (Kelvin) may stand for k, or U+017F (long s) for s.
	// Units that have one of these are candidates without looking further.
	special bool
}

// FromLiteral returns the formula of a literal. With fold it is found in any case, by
// simple Unicode folding.
func FromLiteral(lit string, fold bool) *Formula {
	chars := toRunes(lit)
	if strings.Contains(lit, "\n") {
		chars = chars[:min(len(chars), maxBroken)]
	}
	return newFormula((&flattener{}).literal(chars, fold))
}

// FromRegexp returns the formula of a parsed expression. With fold every literal in it
// ignores case.
func FromRegexp(re *syntax.Regexp, fold bool) *Formula {
	return newFormula((&flattener{fold: fold}).flatten(re))
}

// maxNear is how many classes of a literal are used: even if each were three bytes, the
// last would be in the unit after the first.
const maxNear = 1200

// maxBroken is how many characters of a literal of several lines are used: they are
// multiplied by the ways to write its line breaks.
const maxBroken = 500

// newFormula makes the formula of alternatives, and decides what its candidates promise.
func newFormula(alts []seq) *Formula {
	f := &Formula{scope: ScopeDocument, reach: reachDocument}
	fixed, atStart := true, true
	for _, s := range alts {
		fixed = fixed && s.fixed()
		atStart = atStart && s.located()
	}

	// The narrowest promise that all alternatives keep.
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

	f.root = orOf(alts, true)
	return f
}

// Scope reports how candidates relate to matches.
func (f *Formula) Scope() Scope { return f.scope }

// String prints the formula: factors quoted with classes in brackets, runs as
// class{count}, sequences with spaces, alternatives in parentheses with bars.
func (f *Formula) String() string {
	if f.root == nil {
		return "all"
	}
	return f.root.String()
}

// String prints a condition as [Formula.String] does.
func (n *node) String() string {
	switch n.op {
	case opNone:
		return "none"

	// A star: a character beyond ASCII may stand for a k or an s.
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

// orOf makes the condition of alternatives. With edges they are the whole expression,
// whose line anchors stand for newlines.
func orOf(alts []seq, edges bool) *node {
	var subs []*node
	seen := make(map[string]bool)
	for _, s := range alts {
		n := s.node(edges)
		if n == nil {
			return nil
		}

		// Alternatives that print alike are alike.
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

// seqOf makes the condition that all of subs hold.
func seqOf(subs []*node) *node {
	switch len(subs) {
	case 0:
		return nil
	case 1:
		return subs[0]
	}
	return &node{op: opSeq, subs: subs}
}
