// Package glob matches names with slashes: paths of repositories, topics,
// branches, directories.
//
//	pattern ──parse──▶ tree ──resolveStars──▶ tree without ** ──compile──▶ program ──▶ Match
//
// It implements the dialect of micromatch, because existing configuration files use it. There are
// four differences. A name that begins with a dot is a name like others. A range of numbers matches each of them.
// {a} also matches a. A class never matches a slash.
//
// Matching takes time in proportion to pattern times name, whatever the pattern is.
package glob

import (
	"fmt"
	"strings"
)

// Case says whether upper and lower case differ.
type Case bool

// The two ways to compare letters.
const (
	Exact Case = false
	Fold  Case = true
)

// Globs are compiled patterns. The zero value matches nothing. They are safe for concurrent use.
type Globs struct{ globs []*matcher }

// matcher matches names with one pattern.
type matcher struct {
	text    string // without leading ! marks
	literal bool   // text matches only itself
	prefix  string // ASCII text that every match begins with, in the case of the pattern
	fold    Case
	negated bool // the pattern begins with an odd number of !
	program *program
}

// Compile compiles patterns for names with slashes:
//
//	?              one character, no slash
//	*              any text without a slash
//	**             any text, if it stands alone between slashes
//	[a-c] [!a]     one character of a class, or none of it; no slash
//	{a,b}          one of some patterns
//	{1..9} {a..e}  one of a range of numbers or letters
//	(a|b) @(a|b)   one of some patterns
//	?(a|b)         at most one of them
//	*(a) +(a)      any number of them, at least one
//	!(a|b)         text without a slash that is neither of them; if more follows, it begins with neither
//	!a             in front of a pattern: every name that a does not match
//	\*             the character itself
//
// The error for a malformed pattern says what is wrong.
func Compile(c Case, patterns ...string) (Globs, error) {
	var g Globs
	for _, p := range patterns {
		m, err := compile(c, p)
		if err != nil {
			return Globs{}, fmt.Errorf("glob %q: %w", p, err)
		}
		g.globs = append(g.globs, m)
	}
	return g, nil
}

// Match reports whether one of the patterns matches the whole name.
func (g Globs) Match(name string) bool {
	for _, m := range g.globs {
		if m.match(name) != m.negated {
			return true
		}
	}
	return false
}

// MatchAny reports whether one of the patterns matches one of the names.
func (g Globs) MatchAny(names []string) bool {
	for _, name := range names {
		if g.Match(name) {
			return true
		}
	}
	return false
}

// Below reports whether a name that begins with dir and a slash may match. It may report true
// although !(...) excludes all such names.
func (g Globs) Below(dir string) bool {
	for _, m := range g.globs {
		if m.negated || m.program.mayMatchBelow(dir+"/") {
			return true
		}
	}
	return false
}

// Empty reports whether there are no patterns.
func (g Globs) Empty() bool { return len(g.globs) == 0 }

// Check returns an error that says what is wrong with a pattern; nil if it is valid.
func Check(pattern string) error {
	_, err := compile(Exact, pattern)
	return err
}

// Start returns the text of a pattern before its first special character, and whether that is the
// whole pattern. Every match begins with that text, except for a slash before **.
func Start(pattern string) (text string, all bool) {
	seq, _, negated, err := parsePattern(pattern)
	if err != nil || negated {
		return "", false
	}
	var b strings.Builder
	for _, n := range seq {
		if n.op != opRune || n.r < 0 {
			return b.String(), false
		}
		b.WriteRune(n.r)
	}
	return b.String(), true
}

// parsePattern parses a pattern without its leading ! marks. negated reports whether they negate the
// pattern.
func parsePattern(pattern string) (seq []node, plain string, negated bool, err error) {
	if len(pattern) > maxPattern {
		return nil, "", false, errTooLong
	}
	for strings.HasPrefix(pattern, "!") && !strings.HasPrefix(pattern, "!(") {
		negated = !negated
		pattern = pattern[1:]
	}
	p := &parser{text: pattern}
	seq, err = p.readSequence(0)
	return seq, pattern, negated, err
}

// compile compiles one pattern.
func compile(c Case, pattern string) (*matcher, error) {
	seq, plain, negated, err := parsePattern(pattern)
	if err != nil {
		return nil, err
	}
	seq = resolveStars(seq, true, true)
	g := &matcher{text: plain, fold: c, negated: negated}
	for _, n := range seq {
		if n.op != opRune || n.r < 0 || n.r >= 0x80 {
			break
		}
		g.prefix += string(n.r)
	}
	g.literal = len(g.prefix) == len(seq)

	g.program, err = buildProgram(seq, c)
	return g, err
}

// match reports whether a name matches the pattern, apart from a leading !.
func (g *matcher) match(name string) bool {
	// A name that equals the text of the pattern always matches, as (old) does. Most names differ in
	// their first characters, so compare these first.
	for i := 0; i < len(g.prefix); i++ {
		switch {
		case i == len(name):
			return name == g.text
		case name[i] >= 0x80 && g.fold == Fold:
			return g.program.match(name) // for example the Kelvin sign, which folds to k
		case name[i] != g.prefix[i] && (g.fold == Exact || lowerByte(name[i]) != lowerByte(g.prefix[i])):
			return name == g.text
		}
	}
	if g.literal && len(name) == len(g.prefix) {
		return true
	}

	// A pattern also matches its own text as a name, such as (old).
	return g.program.match(name) || name == g.text
}

func lowerByte(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}
