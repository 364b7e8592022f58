package match

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// MaxPattern is the greatest length of a pattern for [Compile], in bytes.
const MaxPattern = 32 << 10

// ErrTooLong is the error for a pattern longer than [MaxPattern].
var ErrTooLong = errors.New("pattern is too long")

// Options say how to read a pattern.
type Options struct {
	Literal bool // the pattern is a run of bytes, not an expression
	Fold    bool // letters match without regard to case
	Names   bool // the texts are file names: each is one line, even if it contains line breaks

	// A match must begin a word, or end one: no letter, mark, digit or `_` of any script is before
	// it, or after it. With both, it must be a whole word.
	WordBegins, WordEnds bool
}

func (o Options) words() bool { return o.WordBegins || o.WordEnds }

// Span is a half-open run of bytes, in offsets from the start of a text.
type Span struct{ Start, End int }

// Matcher is a compiled pattern. It is safe for concurrent use.
type Matcher struct {
	*compiled
	stop atomic.Bool
}

// Again returns a matcher of the same pattern. It shares the states of the automaton with m, but
// m.Stop does not stop it.
func (m *Matcher) Again() *Matcher { return &Matcher{compiled: m.compiled} }

// compiled is shared by all matchers of one pattern.
type compiled struct {
	// One of these engines finds matches: a literal, runs of a class, a list of whole texts, or the
	// automaton of plan. filter, if not nil, finds candidates for the automaton.
	literal *literal
	runs    *runs
	texts   textList
	plan    *plan
	filter  *filter

	lineEnds bool // it reads line ends; see readsLineEnds
	oneLine  bool // a text is one line, even if it contains line breaks

	pool      sync.Pool // of *scratch
	once      sync.Once // guards the field below
	reference reference
}

// scratch is the working memory of one search.
type scratch struct {
	text []byte // the text that is searched, without "\r" if lineEnds
	unix []byte // buffer for a text without "\r"

	cursor      cursor   // for the literal, the runs or the filter
	ahead, back *machine // automata of the plan

	line, lineEnd int // the part of a line that endOfLine searched last: it contains no newline
}

// Compile compiles a pattern. It chooses a literal if the pattern is one, otherwise runs of a class
// or a list of whole texts, otherwise an automaton. A bad expression gives a *syntax.Error.
func Compile(expr string, o Options) (*Matcher, error) {
	if len(expr) > MaxPattern {
		return nil, ErrTooLong
	}

	// With folding a literal may have no byte that is the same in every case, such as "ſ". Then
	// compile it as an expression.
	if o.Literal && expr != "" {
		if l := newLiteral(elemsOf(expr, o.Fold)); l != nil {
			l.requireWords(o)
			ends := strings.Contains(expr, "\n") && !strings.Contains(expr, "\r")
			return &Matcher{compiled: &compiled{literal: l, lineEnds: ends}}, nil
		}
	}
	if o.Literal {
		expr = regexp.QuoteMeta(expr)
	}

	flags := syntax.Flags(0)
	if o.Names {
		flags = syntax.DotNL | syntax.OneLine
	}
	re, err := parseFlags(expr, o.Fold, flags)
	if err != nil {
		return nil, err
	}

	c, err := compileTree(re, o)
	if err != nil {
		return nil, err
	}

	c.oneLine = o.Names
	c.lineEnds = !o.Names && readsLineEnds(re)
	return &Matcher{compiled: c}, nil
}

// compileTree chooses the engine for a parsed expression and prepares it.
func compileTree(re *syntax.Regexp, o Options) (*compiled, error) {
	// Literals and runs have their own kernels and never need the automaton.
	if l := literalOf(re); l != nil {
		l.requireWords(o)
		return &compiled{literal: l}, nil
	}
	if r := runsOf(re); r != nil && !o.words() {
		return &compiled{runs: r}, nil
	}
	if w := textListOf(re); w != nil {
		return &compiled{texts: w}, nil
	}

	p, err := newPlan(re, o)
	if err != nil {
		return nil, err
	}

	c := &compiled{plan: p, filter: chooseFilter(p)}

	// Only nextEndAcrossLines skips from an idle state to the next candidate.
	p.skips = p.crosses && c.filter != nil
	return c, nil
}

// parse parses an expression. ^ and $ match at the ends of lines, and a dot matches no newline.
func parse(expr string, fold bool) (*syntax.Regexp, error) { return parseFlags(expr, fold, 0) }

// parseFlags is parse with further flags, which may change what ^, $ and a dot match.
func parseFlags(expr string, fold bool, further syntax.Flags) (*syntax.Regexp, error) {
	flags := syntax.ClassNL | syntax.PerlX | syntax.UnicodeGroups | further
	if fold {
		flags |= syntax.FoldCase
	}
	return syntax.Parse(expr, flags)
}

// SpansLines reports whether a match of the expression may contain a newline. A bad expression
// gives a *syntax.Error.
func SpansLines(expr string) (bool, error) {
	re, err := parse(expr, false)
	if err != nil {
		return false, err
	}
	return mayContainNewline(re), nil
}

// Next returns the first match that starts at from or later. Text before from counts for anchors
// and word boundaries. To continue, pass end, or end+1 if the match is empty.
func (m *Matcher) Next(text []byte, from int) (start, end int, ok bool) {
	if from > len(text) {
		return 0, 0, false
	}
	s := m.scratch(text, m.lineEnds)
	defer m.release(s)
	if len(s.text) == len(text) {
		return m.next(s, text, from)
	}

	o := newOrigin(text)
	start, end, ok = m.next(s, s.text, unixOffset(text, from))
	return o.toText(start), o.toText(end), ok
}

// Append appends up to limit matches in text to dst and returns the longer slice. A negative limit
// means all matches.
func (m *Matcher) Append(dst []Span, text []byte, limit int) []Span {
	return m.appendMatches(dst, text, limit, m.lineEnds)
}

// AppendUnix is like [Matcher.Append], for a text without "\r".
func (m *Matcher) AppendUnix(dst []Span, text []byte, limit int) []Span {
	const dropCR = false
	return m.appendMatches(dst, text, limit, dropCR)
}

// appendMatches does the work of Append. dropCR is as in scratch.
func (m *Matcher) appendMatches(dst []Span, text []byte, limit int, dropCR bool) []Span {
	s := m.scratch(text, dropCR)
	before := len(dst)

	// With a negative limit, the loop finds all matches.
	for from := 0; limit != 0 && from <= len(s.text) && !m.stop.Load(); limit-- {
		start, end, ok := m.next(s, s.text, from)
		if !ok {
			break
		}
		dst = append(dst, Span{start, end})

		// Advance by at least one byte, so that an empty match is not found again forever.
		from = max(end, start+1)
	}

	if len(s.text) < len(text) {
		o := newOrigin(text)
		for i := before; i < len(dst); i++ {
			dst[i] = Span{o.toText(dst[i].Start), o.toText(dst[i].End)}
		}
	}
	m.release(s)
	return dst
}

// Count returns the number of matches in text. It is cheaper than listing them, because it needs
// only the end of each match.
func (m *Matcher) Count(text []byte) int {
	s := m.scratch(text, m.lineEnds)
	text = s.text

	n := 0
	for from := 0; from <= len(text) && !m.stop.Load(); n++ {
		start, end, ok := 0, 0, false
		if m.plan == nil || m.plan.empty {
			start, end, ok = m.next(s, text, from)
		} else {
			_, end, ok = m.nextEnd(s, text, from)
		}

		if !ok {
			break
		}
		from = max(end, start+1)
	}

	m.release(s)
	return n
}

// Matches reports whether text has a match.
func (m *Matcher) Matches(text []byte) bool {
	s := m.scratch(text, m.lineEnds)
	_, _, ok := m.next(s, s.text, 0)
	m.release(s)
	return ok
}

// Stop makes running and later searches with m return early, with the matches found so far. Short
// searches do not check it. It is for a search whose deadline has passed.
func (m *Matcher) Stop() { m.stop.Store(true) }

// maxPooledUnix is the size, in bytes, of the largest buffer that release returns to the pool.
const maxPooledUnix = 4 << 20

// scratch returns working memory for a search in a text, from the pool if it has some. If dropCR is
// set and the text has line ends of "\r\n", the search is in a copy without "\r".
func (m *Matcher) scratch(text []byte, dropCR bool) *scratch {
	// Machines from the pool still have the states that they computed for earlier texts.
	s, ok := m.pool.Get().(*scratch)
	if !ok {
		s = &scratch{}
		if m.plan != nil {
			s.ahead = newMachine(m.plan, m.plan.prog, readForward)
			s.back = newMachine(m.plan, m.plan.back, readBackward)
		}
	}

	// The pool serves all matchers of the pattern, but each matcher stops only its own searches.
	if s.ahead != nil {
		s.ahead.stop, s.back.stop = &m.stop, &m.stop
	}

	s.text = text
	if dropCR && bytes.Contains(text, crlf) {
		s.unix = appendUnix(s.unix[:0], text)
		s.text = s.unix
	}

	s.line, s.lineEnd = 0, -1
	switch {
	case m.literal != nil:
		s.cursor.reset(s.text, m.literal)
	case m.runs != nil:
		s.cursor.reset(s.text, m.runs)
	case m.filter != nil:
		s.cursor.reset(s.text, m.filter)
	}
	return s
}

// release returns s to the pool, without the text.
func (m *Matcher) release(s *scratch) {
	s.cursor.text, s.text = nil, nil
	if cap(s.unix) > maxPooledUnix {
		s.unix = nil
	}
	m.pool.Put(s)
}

// next returns the first match that starts at from or later.
func (m *Matcher) next(s *scratch, text []byte, from int) (start, end int, ok bool) {
	switch {
	case m.literal != nil:
		return m.literal.next(&s.cursor, from)
	case m.runs != nil:
		return m.runs.next(&s.cursor, from)
	case m.texts != nil:
		return m.texts.next(text, from)
	case m.plan.empty:
		return m.nextEmptyMatch(s, text, from)
	}

	// One automaton reads forward to the end of the match, another one backward to its start.
	lo, end, ok := m.nextEnd(s, text, from)
	if !ok {
		return 0, 0, false
	}

	start, err := m.findStart(s, text, lo, end)
	return start, end, err == nil
}

// nextEnd returns the end of the first match in text[from:], and an offset lo at or before the
// start of that match. It uses the automaton, and the filter if there is one.
func (m *Matcher) nextEnd(s *scratch, text []byte, from int) (lo, end int, ok bool) {
	var err error
	switch {
	case m.filter == nil:
		end, err = s.ahead.forward(text, from, len(text), nil)
		lo = from
	case m.plan.crosses:
		lo, end, err = m.nextEndAcrossLines(s, text, from)
	default:
		lo, end, err = m.nextEndByLines(s, text, from)
	}
	return lo, end, err == nil && end >= 0
}

// nextEndByLines is nextEnd for a pattern whose matches contain no newline: it runs the automaton
// over each line with a candidate. end is -1 if there is no match.
func (m *Matcher) nextEndByLines(s *scratch, text []byte, from int) (lo, end int, err error) {
	for from <= len(text) {
		at := m.filter.next(&s.cursor, from)
		if at < 0 {
			break
		}

		lo := m.filter.earliestStart(text, from, at)
		limit := s.endOfLine(text, at)

		end, err := s.ahead.forward(text, lo, limit, nil)
		if err != nil || end >= 0 {
			return lo, end, err
		}

		from = limit + 1
	}
	return 0, -1, nil
}

// endOfLine returns the end of the line that contains an offset. It searches a line with many
// matches only once.
func (s *scratch) endOfLine(text []byte, at int) int {
	if at < s.line || at > s.lineEnd {
		s.line, s.lineEnd = at, len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			s.lineEnd = at + i
		}
	}
	return s.lineEnd
}

// nextEndAcrossLines is nextEnd for a pattern whose matches may contain a newline: it runs the
// automaton over the text from the first candidate on. While no match has begun, it skips to the
// next candidate. end is -1 if there is no match.
func (m *Matcher) nextEndAcrossLines(s *scratch, text []byte, from int) (lo, end int, err error) {
	at := m.filter.next(&s.cursor, from)
	if at < 0 {
		return 0, -1, nil
	}

	lo = m.filter.earliestStart(text, from, at)
	low := lo // no match that contains candidate at starts before low
	end, err = s.ahead.forward(text, lo, len(text), func(i int) int {
		if at < i {
			if at = m.filter.next(&s.cursor, i); at < 0 {
				return -1
			}
			low = m.filter.earliestStart(text, i, at)
		}
		return max(i, low)
	})

	return lo, end, err
}

// runeStart returns the start of the rune that contains the byte at an offset, but not less than
// lo.
func runeStart(text []byte, lo, at int) int {
	for i := at; i >= lo && i > at-utf8.UTFMax && at < len(text); i-- {
		if utf8.RuneStart(text[i]) {
			if i+runeWidth(text[i:]) > at {
				return i
			}
			break
		}
	}
	return max(lo, at)
}

// findStart returns the start of the leftmost match in text[from:], given its end. After Stop it
// returns an error.
func (m *Matcher) findStart(s *scratch, text []byte, from, end int) (int, error) {
	start, err := s.back.backward(text, from, end)
	if err != nil || !m.plan.nullable {
		return start, err
	}

	// If the expression can match the empty text, it may prefer a shorter match at the start that
	// backward found, which backward cannot see. `(|ab)|b` prefers the empty match at 0 of "ab", so
	// the match that ends at 2 starts at 1.
	for ; start < end; start += runeWidth(text[start:]) {
		if e, ok := m.anchoredEnd(text, start); ok && e == end {
			return start, nil
		}
	}
	return -1, errStopped
}

// runeWidth returns the number of bytes of the first rune of b; 1 for a broken byte or an empty b.
func runeWidth(b []byte) int {
	_, n := utf8.DecodeRune(b)
	return max(n, 1)
}
