package match

import (
	"regexp/syntax"
	"unicode/utf8"
)

const (
	maxStrings = 24 // strings of a need
	maxBytes   = 64 // bytes of a string; a longer one is cut
	// maxBefore is the greatest value of need.before; for a greater one it is -1.
	maxBefore = 1 << 16
)

// A need is a set of strings, and every match contains one of them: `(foo|bar)\d` needs "foo" or
// "bar". A filter searches for a need.
type need struct {
	strings [][]elem // none is empty, and no elem has alts
	before  int      // greatest number of bytes of a match before the string; -1 means no limit
	lead    bool     // the strings begin with the newline before the match, because of ^
	trail   bool     // the strings end with the newline after the match, because of $
}

// needFinder walks a concatenation from left to right and finds its cheapest need. run has all
// strings that the elements so far can match. Each element extends all of them. If there would be
// too many strings, or the strings of an element are not known, run ends and a new one begins:
//
//	x[12](a|bc)+z   run {x} -> {x1 x2} -> {x1a x1bc x2a x2bc}; + ends it; then {z}
type needFinder struct {
	inBranch bool    // it walks one branch of an alternation; then its needs cannot use newlines for anchors
	best     *need   // the cheapest need so far
	price    float64 // the price of best

	run    [][]elem // all strings that the elements since the start of run can match
	before int      // greatest number of bytes between the start of the match and run; -1 means no limit
	lead   bool     // run begins with a newline because of ^
}

// needOf returns the cheapest need of re and its price; nil if there is none.
func needOf(re *syntax.Regexp) (*need, float64) {
	g := newNeedFinder()
	g.add(re)
	g.offerRun(false)
	return g.best, g.price
}

func newNeedFinder() *needFinder {
	return &needFinder{run: [][]elem{nil}}
}

// add extends the concatenation by re, which follows what was added before.
func (g *needFinder) add(re *syntax.Regexp) {
	// Groups, concatenations and literals consist of parts.
	switch re.Op {
	case syntax.OpCapture:
		g.add(re.Sub[0])
		return
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			g.add(sub)
		}
		return
	case syntax.OpLiteral:
		g.addLiteral(re)
		return

	// A repetition contains at least one copy, and anything may follow.
	case syntax.OpPlus:
		g.add(re.Sub[0])
		g.endRun(-1)
		return
	case syntax.OpRepeat:
		if re.Min > 0 {
			g.add(re.Sub[0])
			if re.Min == 1 && re.Max == 1 {
				return
			}

			// The other copies may read anything.
			_, n := matchLengths(re)
			g.endRun(n)
			return
		}

	// Assertions read nothing.
	case syntax.OpBeginLine, syntax.OpEndLine:
		g.addAnchor(re.Op)
		return
	case syntax.OpEmptyMatch, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return
	}

	if set := allStrings(re); set != nil {
		_, n := matchLengths(re)
		g.extendRun(set, n)
		return
	}

	_, n := matchLengths(re)
	if re.Op == syntax.OpAlternate {
		g.addAlternation(re, n)
		return
	}
	g.endRun(n)
}

// addLiteral adds the runes of a literal one by one. A rune whose cases have different lengths ends
// the run.
func (g *needFinder) addLiteral(re *syntax.Regexp) {
	for _, r := range re.Rune {
		// This rune also matches any broken byte, which has another encoding.
		if r == utf8.RuneError || !utf8.ValidRune(r) {
			g.endRun(utf8.UTFMax)
			continue
		}

		es := elemsOf(string(r), re.Flags&syntax.FoldCase != 0)
		if es[0].alts != nil {
			g.endRun(utf8.UTFMax)
			continue
		}
		g.extendRun([][]elem{es}, len(es))
	}
}

// addAnchor adds a newline for an anchor if that makes the run rarer.
func (g *needFinder) addAnchor(op syntax.Op) {
	// lead and trail apply to all strings of a need, but other branches may lack the anchor.
	if g.inBranch {
		return
	}

	newline := [][]elem{{{b: '\n'}}}
	started := len(g.run[0]) > 0 || len(g.run) > 1

	// At the start of the pattern, the newline is the byte before the match.
	if op == syntax.OpBeginLine && !started && g.before == 0 {
		g.run, g.lead = newline, true
	}

	// The anchor does not consume its newline, so the next element may begin with the same newline:
	// end the run here.
	if op == syntax.OpEndLine && started && len(g.run) <= maxStrings && !g.hasFullString() {
		for i := range g.run {
			g.run[i] = append(g.run[i][:len(g.run[i]):len(g.run[i])], newline[0]...)
		}
		g.offerRun(true)
		g.endRun(0)
	}
}

// hasFullString reports whether a string of the run has its greatest length.
func (g *needFinder) hasFullString() bool {
	for _, s := range g.run {
		if len(s) >= maxBytes {
			return true
		}
	}
	return false
}

// extendRun extends the run by each string of set. The strings have at most n bytes.
func (g *needFinder) extendRun(set [][]elem, n int) {
	// If there would be too many strings or they are long enough, the run becomes a need, and set
	// starts a new run.
	if len(g.run)*len(set) > maxStrings || g.hasFullString() {
		g.endRun(0)

		// An optional element may have one string more than a run can have.
		if len(set) > maxStrings {
			g.endRun(n)
			return
		}
	}

	// The strings share memory: without cutting the capacity, appending to one string would
	// overwrite the next.
	next := make([][]elem, 0, len(g.run)*len(set))
	for _, a := range g.run {
		for _, b := range set {
			next = append(next, append(a[:len(a):len(a)], b...))
		}
	}
	g.run = next
}

// endRun offers the run as a need, and starts a new run after an element of at most n bytes; -1
// means no limit.
func (g *needFinder) endRun(n int) {
	longest := 0
	for _, s := range g.run {
		longest = max(longest, len(s))
	}

	// The newline before a match is not part of the match.
	if g.lead {
		longest--
	}

	g.offerRun(false)
	if g.before >= 0 {
		if n < 0 || g.before+longest+n > maxBefore {
			g.before = -1
		} else {
			g.before += longest + n
		}
	}

	g.run, g.lead = [][]elem{nil}, false
}

// offerRun makes a need of the run and takes it if it is cheaper; trail is as in need.
func (g *needFinder) offerRun(trail bool) {
	g.takeIfCheaper(&need{strings: g.run, before: g.before, lead: g.lead, trail: trail})
}

// takeIfCheaper sets g.best to n if n is cheaper. It ignores a need with a string that is empty, or
// is only the newline of an anchor.
func (g *needFinder) takeIfCheaper(n *need) {
	newline := 0 // its length in each string
	if n.lead {
		newline = 1
	}
	for _, s := range n.strings {
		if len(s) <= newline {
			return
		}
	}
	if p := n.estimatePrice(); g.best == nil || p < g.price {
		g.best, g.price = n, p
	}
}

// addAlternation offers the union of the needs of all branches, if each branch has one. Then it
// continues after the alternation, whose matches have at most n bytes.
func (g *needFinder) addAlternation(re *syntax.Regexp, n int) {
	g.endRun(0)
	union := &need{before: g.before}

	for _, sub := range re.Sub {
		branch := newNeedFinder()
		branch.inBranch = true
		branch.add(sub)
		branch.offerRun(false)

		// A match of this branch need not contain a string of known bytes.
		if branch.best == nil {
			union = nil
			break
		}

		union.strings = append(union.strings, branch.best.strings...)

		if branch.best.before < 0 || g.before < 0 {
			union.before = -1
		} else if union.before >= 0 {
			union.before = max(union.before, g.before+branch.best.before)
		}
	}

	if union != nil && len(union.strings) <= maxStrings {
		g.takeIfCheaper(union)
	}

	g.endRun(n)
}

// allStrings returns all strings that re matches: {ab ac a} for `a[bc]?`. It returns nil if there
// are too many, or if a string has no single sequence of bytes.
func allStrings(re *syntax.Regexp) [][]elem {
	switch re.Op {
	case syntax.OpCapture:
		return allStrings(re.Sub[0])
	case syntax.OpEmptyMatch:
		return [][]elem{nil}
	case syntax.OpLiteral:
		return literalStrings(re)

	// Classes and operators make unions and products of sets.
	case syntax.OpCharClass:
		return classStrings(re.Rune)
	case syntax.OpQuest:
		if set := allStrings(re.Sub[0]); set != nil {
			return append(set[:len(set):len(set)], nil)
		}
	case syntax.OpAlternate:
		return alternateStrings(re.Sub)
	case syntax.OpConcat:
		return concatStrings(re.Sub)
	}
	return nil
}

// literalStrings is allStrings for a literal: one string, or nil if it is too long or has no single
// sequence of bytes.
func literalStrings(re *syntax.Regexp) [][]elem {
	var out []elem
	for _, r := range re.Rune {
		es := elemsOf(string(r), re.Flags&syntax.FoldCase != 0)

		// A broken byte, or cases of different lengths, have no single sequence of bytes.
		if r == utf8.RuneError || !utf8.ValidRune(r) || es[0].alts != nil {
			return nil
		}
		out = append(out, es...)
	}

	// A shortened string could be a need, but it is not all that re matches.
	if len(out) > maxBytes {
		return nil
	}
	return [][]elem{out}
}

// alternateStrings is allStrings for an alternation: the union of the branches.
func alternateStrings(arms []*syntax.Regexp) [][]elem {
	var out [][]elem
	for _, arm := range arms {
		set := allStrings(arm)

		// If one branch is not known, the union is not known.
		if set == nil {
			return nil
		}
		out = append(out, set...)
	}

	if len(out) > maxStrings {
		return nil
	}
	return out
}

// concatStrings is allStrings for a concatenation: each string of a part followed by each string of
// the next part.
func concatStrings(parts []*syntax.Regexp) [][]elem {
	out := [][]elem{nil}
	for _, part := range parts {
		set := allStrings(part)

		// Check before multiplying: (a|b)(c|d)(e|f)... doubles with each part.
		if set == nil || len(out)*len(set) > maxStrings {
			return nil
		}

		var next [][]elem
		for _, a := range out {
			for _, b := range set {
				if len(a)+len(b) > maxBytes {
					return nil
				}
				next = append(next, append(a[:len(a):len(a)], b...))
			}
		}
		out = next
	}
	return out
}

// classStrings is allStrings for a class of runes. It returns nil for a class with many members.
func classStrings(ranges []rune) [][]elem {
	var out [][]elem

	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i+1]-ranges[i] > 8 || len(out) > 8 {
			return nil
		}

		for r := ranges[i]; r <= ranges[i+1]; r++ {
			// This rune also matches any broken byte, which is not a string of its own.
			if r == utf8.RuneError || !utf8.ValidRune(r) {
				return nil
			}
			out = append(out, elemsOf(string(r), false))
		}
	}
	return out
}
