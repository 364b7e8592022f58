package match

import (
	"regexp/syntax"
	"unicode/utf8"
)

const (
	maxStrings = 24 // of a need
	maxBytes   = 64 // of a string of a need; the rest is cut off
	// maxBefore is the most bytes of a match before a string that are counted: a need that
	// stands farther inside counts as one without a bound.
	maxBefore = 1 << 16
)

// A need is a set of strings of which every match contains one, as `(foo|bar)\d`
// needs "foo" or "bar". It is what a filter looks for.
type need struct {
	strings [][]elem // none empty; no elem with alts
	before  int      // bytes of a match before the string at most; -1 for no bound
	lead    bool     // the strings begin with the newline before the match, by ^
	trail   bool     // they end with the newline after it, by $
}

// gather walks a concatenation from left to right and keeps the cheapest need it
// meets. run are all strings that can stand at the present place; each element
// extends all of them, until there are too many or one is not known exactly:
//
//	x[12](a|bc)+z    run {x} -> {x1 x2} -> {x1a x1bc x2a x2bc}, ended by +; then {z}
type gather struct {
	arm   bool  // it walks an arm of an alternation: a need of it has no newline for an anchor
	best  *need // so far
	price float64

	run    [][]elem // the cross product so far
	before int      // most bytes from the start of the match to run; -1 for no bound
	lead   bool     // run begins with a newline for ^
}

// needOf returns the cheapest need of re, nil if there is none, and the price of
// looking for it.
func needOf(re *syntax.Regexp) (*need, float64) {
	g := newGather()
	g.add(re)
	g.flush(false)
	return g.best, g.price
}

func newGather() *gather {
	return &gather{run: [][]elem{nil}}
}

// add extends the concatenation by re.
func (g *gather) add(re *syntax.Regexp) {
	// What is the sum of its parts.
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

	// Repetitions: one copy is needed, and then anything may follow.
	case syntax.OpPlus:
		g.add(re.Sub[0])
		g.skip(-1)
		return
	case syntax.OpRepeat:
		if re.Min > 0 {
			g.add(re.Sub[0])
			if re.Min == 1 && re.Max == 1 {
				return
			}

			// Whatever the other copies read.
			_, n := lengths(re)
			g.skip(n)
			return
		}

	// What reads nothing.
	case syntax.OpBeginLine, syntax.OpEndLine:
		g.addAnchor(re.Op)
		return
	case syntax.OpEmptyMatch, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return
	}

	if set := exact(re); set != nil {
		_, n := lengths(re)
		g.cross(set, n)
		return
	}

	_, n := lengths(re)
	if re.Op == syntax.OpAlternate {
		g.alternate(re, n)
		return
	}
	g.skip(n)
}

// addLiteral adds the runes of a literal one by one. A rune whose cases have
// different lengths ends the run.
func (g *gather) addLiteral(re *syntax.Regexp) {
	for _, r := range re.Rune {
		// This rune also stands for any broken byte, and those are not its bytes.
		if r == utf8.RuneError || !utf8.ValidRune(r) {
			g.skip(utf8.UTFMax)
			continue
		}

		es := bytesOf(string(r), re.Flags&syntax.FoldCase != 0)
		if es[0].alts != nil {
			g.skip(utf8.UTFMax)
			continue
		}
		g.cross([][]elem{es}, len(es))
	}
}

// addAnchor makes a newline of an anchor where that makes the run rarer.
func (g *gather) addAnchor(op syntax.Op) {
	// lead and trail speak of all strings of a need, and not all arms have the anchor.
	if g.arm {
		return
	}

	newline := [][]elem{{{b: '\n'}}}
	started := len(g.run[0]) > 0 || len(g.run) > 1

	// Nothing of the pattern stands before: the newline is the byte before the match.
	if op == syntax.OpBeginLine && !started && g.before == 0 {
		g.run, g.lead = newline, true
	}

	// The anchor does not read its newline, so what follows in the pattern may begin with the same
	// one: the run ends here.
	if op == syntax.OpEndLine && started && len(g.run) <= maxStrings && !g.cut() {
		for i := range g.run {
			g.run[i] = append(g.run[i][:len(g.run[i]):len(g.run[i])], newline[0]...)
		}
		g.flush(true)
		g.skip(0)
	}
}

// cut reports whether a string of the run has reached its greatest length.
func (g *gather) cut() bool {
	for _, s := range g.run {
		if len(s) >= maxBytes {
			return true
		}
	}
	return false
}

// cross extends the run by each string of set, which have at most n bytes.
func (g *gather) cross(set [][]elem, n int) {
	// Too many strings, or long enough already: what there is becomes a need, and set begins a run.
	if len(g.run)*len(set) > maxStrings || g.cut() {
		g.skip(0)

		// As many strings as may be, made optional, are one more.
		if len(set) > maxStrings {
			g.skip(n)
			return
		}
	}

	// The strings share their beginnings: without the cut capacity, appending to one would
	// overwrite the next.
	next := make([][]elem, 0, len(g.run)*len(set))
	for _, a := range g.run {
		for _, b := range set {
			next = append(next, append(a[:len(a):len(a)], b...))
		}
	}
	g.run = next
}

// skip ends the run and goes on after something of at most n bytes (-1: any
// number).
func (g *gather) skip(n int) {
	longest := 0
	for _, s := range g.run {
		longest = max(longest, len(s))
	}

	// The newline before a match is none of its bytes.
	if g.lead {
		longest--
	}

	g.flush(false)
	if g.before >= 0 {
		if n < 0 || g.before+longest+n > maxBefore {
			g.before = -1
		} else {
			g.before += longest + n
		}
	}

	g.run, g.lead = [][]elem{nil}, false
}

// flush offers the run as a need.
func (g *gather) flush(trail bool) {
	g.offer(&need{strings: g.run, before: g.before, lead: g.lead, trail: trail})
}

// offer makes a need the best one if it is cheaper. A string that is empty, or
// only the newline of an anchor, is none.
func (g *gather) offer(n *need) {
	only := 0
	if n.lead {
		only = 1
	}
	for _, s := range n.strings {
		if len(s) <= only {
			return
		}
	}

	// Only what is cheaper: a run that ended with $ is offered again by skip, without its trail.
	if p := n.price(); g.best == nil || p < g.price {
		g.best, g.price = n, p
	}
}

// alternate offers the union of the needs of all arms, if each arm has one.
func (g *gather) alternate(re *syntax.Regexp, n int) {
	g.skip(0)
	union := &need{before: g.before}

	for _, sub := range re.Sub {
		arm := newGather()
		arm.arm = true
		arm.add(sub)
		arm.flush(false)

		// A match by this arm would have none of the strings.
		if arm.best == nil {
			union = nil
			break
		}

		union.strings = append(union.strings, arm.best.strings...)

		// What stands farthest from the start of a match is what lowest has to go back for.
		if arm.best.before < 0 || g.before < 0 {
			union.before = -1
		} else if union.before >= 0 {
			union.before = max(union.before, g.before+arm.best.before)
		}
	}

	if union != nil && len(union.strings) <= maxStrings {
		g.offer(union)
	}

	// The next run stands behind the longest arm.
	g.skip(n)
}

// exact returns all strings that re matches, nil if they are too many or cannot be
// written as bytes: exact(`a[bc]?`) = {ab ac a}.
func exact(re *syntax.Regexp) [][]elem {
	switch re.Op {
	case syntax.OpCapture:
		return exact(re.Sub[0])
	case syntax.OpEmptyMatch:
		return [][]elem{nil}
	case syntax.OpLiteral:
		return exactLiteral(re)

	// Unions and products of sets.
	case syntax.OpCharClass:
		return exactClass(re.Rune)
	case syntax.OpQuest:
		if set := exact(re.Sub[0]); set != nil {
			return append(set[:len(set):len(set)], nil)
		}
	case syntax.OpAlternate:
		return exactAlternate(re.Sub)
	case syntax.OpConcat:
		return exactConcat(re.Sub)
	}
	return nil
}

// exactLiteral is exact of a literal.
func exactLiteral(re *syntax.Regexp) [][]elem {
	var out []elem
	for _, r := range re.Rune {
		es := bytesOf(string(r), re.Flags&syntax.FoldCase != 0)

		// A broken byte, or cases of several lengths: not one sequence of bytes.
		if r == utf8.RuneError || !utf8.ValidRune(r) || es[0].alts != nil {
			return nil
		}
		out = append(out, es...)
	}

	// The first bytes of a string would be a need, but they are not all that re matches.
	if len(out) > maxBytes {
		return nil
	}
	return [][]elem{out}
}

// exactAlternate is the union of what the arms match.
func exactAlternate(arms []*syntax.Regexp) [][]elem {
	var out [][]elem
	for _, arm := range arms {
		set := exact(arm)

		// One arm that is not known makes the union unknown.
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

// exactConcat is the cross product of what the parts match.
func exactConcat(parts []*syntax.Regexp) [][]elem {
	out := [][]elem{nil}
	for _, part := range parts {
		set := exact(part)

		// Before the product is made, since it multiplies: (a|b)(c|d)(e|f)... doubles with each part.
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

// exactClass returns the members of a small class of runes.
func exactClass(ranges []rune) [][]elem {
	var out [][]elem

	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i+1]-ranges[i] > 8 || len(out) > 8 {
			return nil
		}

		for r := ranges[i]; r <= ranges[i+1]; r++ {
			// This rune also stands for any broken byte, which is no text of its own.
			if r == utf8.RuneError || !utf8.ValidRune(r) {
				return nil
			}
			out = append(out, bytesOf(string(r), false))
		}
	}
	return out
}
