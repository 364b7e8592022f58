package glob

import (
	"strings"
	"unicode"
)

// maxProgram is the maximum number of steps in a pattern.
const maxProgram = 25_000

// program is a pattern as a nondeterministic automaton. It runs from the end of a name to its
// beginning. So what follows a step is known, and the text that !(...) excludes can be tested by a
// program of its own.
type program struct {
	code  []step
	entry int
	subs  []*program // programs of !(...)
}

type kind uint8

const (
	stepMatch   kind = iota // matches here
	stepEnd                 // matches at the end of the name
	stepChar                // matches a character of set, then step x
	stepFork                // matches step x or step y
	stepExclude             // matches step x, if the program subs[y] does not match
)

type step struct {
	kind kind
	set  func(rune) bool
	x, y int
}

// builder writes a program from its end to its beginning, because each step needs the step that
// follows it.
type builder struct {
	p    *program
	fold Case
	size *int // steps of all programs of the pattern
}

// buildProgram returns the program of a pattern.
func buildProgram(seq []node, c Case) (*program, error) {
	size := 0
	b := &builder{p: &program{}, fold: c, size: &size}
	b.p.entry = b.addSequence(seq, b.addStep(step{kind: stepEnd}))
	if size > maxProgram {
		return nil, errTooLarge
	}
	return b.p, nil
}

// addStep appends a step and returns its number.
func (b *builder) addStep(s step) int {
	if *b.size++; *b.size > maxProgram {
		return 0 // buildProgram then returns an error
	}
	b.p.code = append(b.p.code, s)
	return len(b.p.code) - 1
}

// addSequence adds a sequence of nodes, then next, from the end to the start. It returns the first step.
func (b *builder) addSequence(seq []node, next int) int {
	for i := len(seq) - 1; i >= 0; i-- {
		next = b.addNode(&seq[i], next)
	}
	return next
}

// addNode adds a node, then next. It returns the first step.
func (b *builder) addNode(n *node, next int) int {
	switch n.op {
	case opRune:
		return b.addStep(step{kind: stepChar, set: b.exactly(n.r), x: next})
	case opAny:
		return b.addStep(step{kind: stepChar, set: noSlash, x: next})
	case opClass:
		return b.addStep(step{kind: stepChar, set: b.memberOf(n.class), x: next})
	case opStar, opStars:
		return b.addRepeated(noSlash, next)
	case opAll:
		return b.addRepeated(anything, next)
	}
	return b.addGroup(n, next)
}

// addLoop adds a body that repeats, then next. It returns the entry for any number of repetitions and
// the entry for at least one.
func (b *builder) addLoop(next int, body func(again int) int) (any, least int) {
	any = b.addStep(step{kind: stepFork, x: next, y: next})
	least = body(any)
	b.p.code[any].y = least
	return any, least
}

// addRepeated adds any number of characters of a set, then next. It returns the first step.
func (b *builder) addRepeated(set func(rune) bool, next int) int {
	any, _ := b.addLoop(next, func(again int) int { return b.addStep(step{kind: stepChar, set: set, x: again}) })
	return any
}

// addGroup adds a group with its repetition, then next. It returns the first step.
func (b *builder) addGroup(n *node, next int) int {
	alts := func(next int) int {
		first := b.addSequence(n.alts[0], next)
		for _, alt := range n.alts[1:] {
			first = b.addStep(step{kind: stepFork, x: first, y: b.addSequence(alt, next)})
		}
		return first
	}

	switch n.rep {
	case '?':
		return b.addStep(step{kind: stepFork, x: alts(next), y: next})
	case '*', '+':
		any, least := b.addLoop(next, alts)
		if n.rep == '+' {
			return least
		}
		return any
	case '!':
		return b.addExclusion(n, next)
	}
	return alts(next)
}

// addExclusion adds !(a|b), then next: the text from here on must not be one of the alternatives. If
// the pattern continues, the text must not begin with one of them. It returns the first step.
func (b *builder) addExclusion(n *node, next int) int {
	end, text, follow := stepMatch, node{op: opStar}, []node(nil)
	if strings.Trim(n.next, ")") == "" {
		end = stepEnd
	}
	if len(n.inner) > 1 && strings.Contains(n.inner, "/") {
		end, text = stepEnd, node{op: opAll}
	}
	if strings.Contains(n.inner, "*") && n.after != nil {
		end = stepMatch
		follow = n.after
	}

	sub := &builder{p: &program{}, fold: b.fold, size: b.size}
	alts := node{op: opGroup, rep: '@', alts: n.alts}
	sub.p.entry = sub.addNode(&alts, sub.addSequence(follow, sub.addStep(step{kind: end})))
	b.p.subs = append(b.p.subs, sub.p)
	y := len(b.p.subs) - 1
	return b.addStep(step{kind: stepExclude, x: b.addNode(&text, next), y: y})
}

func noSlash(r rune) bool  { return r != '/' }
func anything(r rune) bool { return true }

func (b *builder) exactly(want rune) func(rune) bool {
	if b.fold == Exact || want < 0 {
		return func(r rune) bool { return r == want }
	}
	return func(r rune) bool { return r == want || anyOtherCase(r, func(r rune) bool { return r == want }) }
}

// memberOf returns a class as a function. A slash is never a member.
func (b *builder) memberOf(c *class) func(rune) bool {
	member := func(r rune) bool {
		for _, span := range c.ranges {
			if span[0] <= r && r <= span[1] {
				return true
			}
		}
		return false
	}
	return func(r rune) bool {
		found := member(r) || b.fold == Fold && anyOtherCase(r, member)
		return found != c.negated && r != '/'
	}
}

// anyOtherCase reports whether f is true for the rune in another case.
func anyOtherCase(r rune, f func(rune) bool) bool {
	if r < 0 {
		return false
	}
	for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
		if f(o) {
			return true
		}
	}
	return false
}

// match reports whether the program matches the whole name.
func (p *program) match(name string) bool {
	s, runes := p.newState(), runesOf(name)
	for i := len(runes); i >= 0; i-- {
		if i == len(runes) {
			s.moveBack(0, true)
		} else {
			s.moveBack(runes[i], false)
		}
	}
	return s.here[p.entry]
}

// mayMatchBelow reports whether the program matches some name that begins with text.
func (p *program) mayMatchBelow(text string) bool {
	s, runes := p.newState(), runesOf(text)
	s.subs, s.open = nil, true
	for i := range s.here {
		s.here[i] = true // anything may follow the text
	}
	for i := len(runes) - 1; i >= 0; i-- {
		s.moveBack(runes[i], false)
	}
	return s.here[p.entry]
}

// runesOf returns the characters of a name, as decode gives them.
func runesOf(name string) []rune {
	runes := make([]rune, 0, len(name))
	for name != "" {
		r, size := decode(name)
		runes, name = append(runes, r), name[size:]
	}
	return runes
}

// state knows which steps of a program lead to a match: from a position in the name (here), and
// from the position after it (behind).
type state struct {
	p            *program
	here, behind []bool
	subs         []*state
	open         bool // the end of the name is not known, so !(...) excludes nothing
}

func (p *program) newState() *state {
	s := &state{p: p, here: make([]bool, len(p.code)), behind: make([]bool, len(p.code))}
	for _, sub := range p.subs {
		s.subs = append(s.subs, sub.newState())
	}
	return s
}

// moveBack moves the position one character towards the beginning of the name, over r. If atEnd is
// set, it sets the position to the end of the name instead.
func (s *state) moveBack(r rune, atEnd bool) {
	for _, sub := range s.subs {
		sub.moveBack(r, atEnd)
	}
	s.here, s.behind = s.behind, s.here

	// A character step looks only at behind. Other steps look at steps before them in the code,
	// except for the end of a loop: each nested loop needs one more pass.
	for i := range s.p.code {
		step := &s.p.code[i]
		s.here[i] = step.kind == stepChar && !atEnd && s.behind[step.x] && step.set(r)
	}
	for changed := true; changed; {
		changed = false
		for i := range s.p.code {
			if !s.here[i] && s.leadsToMatch(&s.p.code[i], atEnd) {
				s.here[i], changed = true, true
			}
		}
	}
}

// leadsToMatch reports whether a step that consumes no character leads to a match from here.
func (s *state) leadsToMatch(step *step, atEnd bool) bool {
	switch step.kind {
	case stepMatch:
		return true
	case stepEnd:
		return atEnd
	case stepFork:
		return s.here[step.x] || s.here[step.y]
	case stepExclude:
		return s.here[step.x] && (s.open || !s.subs[step.y].here[s.p.subs[step.y].entry])
	}
	return false
}
