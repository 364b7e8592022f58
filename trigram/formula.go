package trigram

import "regexp/syntax"

// Scope tells what a candidate unit promises about the matches.
type Scope uint8

const (
	// ScopeStart: every match starts at a byte that a candidate unit owns
	// ([Span]). Read from there as far as the match goes.
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
type Formula struct {
	root  *node
	scope Scope
}

type node struct{}

// FromLiteral returns the formula of a literal. With fold it is found in any
// case, by simple Unicode folding.
func FromLiteral(lit string, fold bool) *Formula { return &Formula{} }

// FromRegexp returns the formula of a parsed regular expression. With fold
// every literal of it counts as case-insensitive.
func FromRegexp(re *syntax.Regexp, fold bool) *Formula { return &Formula{scope: ScopeDocument} }

// Scope tells how candidates relate to matches.
func (f *Formula) Scope() Scope { return f.scope }

// MatchesAll reports whether the formula narrows nothing: every unit is a
// candidate and a scan of everything is the only way.
func (f *Formula) MatchesAll() bool { return f.root == nil }

// String prints the formula.
func (f *Formula) String() string { return "all" }
