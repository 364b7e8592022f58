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

// MaxPattern is the longest pattern that [Compile] takes, in bytes.
const MaxPattern = 32 << 10

// ErrTooLong is returned for a pattern longer than [MaxPattern].
var ErrTooLong = errors.New("pattern is too long")

// Options say how to read a pattern.
type Options struct {
	Literal bool // the pattern is a run of bytes, not an expression
	Fold    bool // letters match without regard to case
	Names   bool // the texts are names of files: each is one line, whatever bytes it has

	// A match begins a word, or ends one: no letter, mark, digit or `_` of any script stands
	// before it, or behind it. With both it is a whole word.
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

// Again returns a matcher of the same pattern that shares with m what the automaton
// has learned, but that m.Stop does not stop.
func (m *Matcher) Again() *Matcher { return &Matcher{compiled: m.compiled} }

// compiled is what all matchers of one pattern share.
type compiled struct {
	// One of these does the work: a literal, runs of a class, a list of whole texts, or
	// the automaton of plan, for which filter, if there is one, finds where to look.
	literal *literal
	runs    *runs
	whole   whole
	plan    *plan
	filter  *filter

	lineEnds bool // it reads line ends: see readsLineEnds
	oneLine  bool // a text is one line, whatever line breaks it has

	pool      sync.Pool // of *scratch
	once      sync.Once // guards the field below
	reference reference
}

// scratch is the working memory of one search at a time.
type scratch struct {
	text []byte // that is searched
	unix []byte // buffer for one whose line ends were "\r\n"

	cursor      cursor   // of the literal, the runs or the filter
	ahead, back *machine // of the plan

	line, lineEnd int // the part of a line that byLines looked at last: no newline lies in it
}

// Compile compiles a pattern: to a literal if it is one, to runs of a class or to a list
// of whole texts if it is that, else to an automaton. The error of a bad expression is a
// *syntax.Error.
func Compile(expr string, o Options) (*Matcher, error) {
	if len(expr) > MaxPattern {
		return nil, ErrTooLong
	}

	// With folding, a literal may have no byte that is the same in every case, as
	// "ſ": an expression does then.
	if o.Literal && expr != "" {
		if l := newLiteral(bytesOf(expr, o.Fold)); l != nil {
			l.atWords(o)
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

// compileTree chooses the engine of an expression.
func compileTree(re *syntax.Regexp, o Options) (*compiled, error) {
	// Literals and runs have kernels of their own, and no match of theirs needs the automaton.
	if l := literalOf(re); l != nil {
		l.atWords(o)
		return &compiled{literal: l}, nil
	}
	if r := runsOf(re); r != nil && !o.words() {
		return &compiled{runs: r}, nil
	}
	if w := wholeOf(re); w != nil {
		return &compiled{whole: w}, nil
	}

	p, err := newPlan(re, o)
	if err != nil {
		return nil, err
	}

	c := &compiled{plan: p, filter: filterOf(p)}

	// Idle states are flagged only for a search across lines: by lines each candidate begins anew.
	p.skips = p.crosses && c.filter != nil
	return c, nil
}

// parse reads an expression: ^ and $ are anchors of lines, and a dot matches no
// newline.
func parse(expr string, fold bool) (*syntax.Regexp, error) { return parseFlags(expr, fold, 0) }

// parseFlags is parse with further flags.
func parseFlags(expr string, fold bool, more syntax.Flags) (*syntax.Regexp, error) {
	flags := syntax.ClassNL | syntax.PerlX | syntax.UnicodeGroups | more
	if fold {
		flags |= syntax.FoldCase
	}
	return syntax.Parse(expr, flags)
}

// SpansLines reports whether a match of the expression may contain a newline. The
// error of a bad expression is a *syntax.Error.
func SpansLines(expr string) (bool, error) {
	re, err := parse(expr, false)
	if err != nil {
		return false, err
	}
	return crosses(re), nil
}

// Next returns the first match that starts at from or later. Text before from counts
// for anchors and word boundaries. To go on, pass end, or end+1 if the match is
// empty.
func (m *Matcher) Next(text []byte, from int) (start, end int, ok bool) {
	if from > len(text) {
		return 0, 0, false
	}
	s := m.scratch(text, m.lineEnds)
	defer m.release(s)
	if len(s.text) == len(text) {
		return m.next(s, text, from)
	}

	o := originOf(text)
	start, end, ok = m.next(s, s.text, unixOffset(text, from))
	return o.of(start), o.of(end), ok
}

// Append appends the first matches of text to dst, at most limit of them (all with
// a negative limit), and returns the longer slice.
func (m *Matcher) Append(dst []Span, text []byte, limit int) []Span {
	return m.append(dst, text, limit, m.lineEnds)
}

// AppendUnix is [Matcher.Append] for a text that is known to have no "\r".
func (m *Matcher) AppendUnix(dst []Span, text []byte, limit int) []Span {
	return m.append(dst, text, limit, false)
}

// append is Append. With ends, the text may have line ends of "\r\n".
func (m *Matcher) append(dst []Span, text []byte, limit int, ends bool) []Span {
	s := m.scratch(text, ends)
	have := len(dst)

	// A negative limit never counts down to zero.
	for from := 0; limit != 0 && from <= len(s.text) && !m.stop.Load(); limit-- {
		start, end, ok := m.next(s, s.text, from)
		if !ok {
			break
		}
		dst = append(dst, Span{start, end})

		// A byte further at least, or an empty match would be found again for ever.
		from = max(end, start+1)
	}

	if len(s.text) < len(text) {
		o := originOf(text)
		for i := have; i < len(dst); i++ {
			dst[i] = Span{o.of(dst[i].Start), o.of(dst[i].End)}
		}
	}
	m.release(s)
	return dst
}

// Count returns the number of matches in text. It is cheaper than listing them,
// since of a match only the end must be known.
func (m *Matcher) Count(text []byte) int {
	s := m.scratch(text, m.lineEnds)
	text = s.text

	n := 0
	for from := 0; from <= len(text) && !m.stop.Load(); n++ {
		start, end, ok := 0, 0, false
		if m.plan == nil || m.plan.empty {
			start, end, ok = m.next(s, text, from)
		} else {
			// Here the end is enough, and no second automaton has to look for the start.
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

// Stop makes present and later searches with m end early with whatever they have
// found, unless they are short. It is for a search whose deadline has passed.
func (m *Matcher) Stop() { m.stop.Store(true) }

// keepUnix is the largest buffer that is kept for the next text, in bytes.
const keepUnix = 4 << 20

// scratch returns working memory prepared for a text. With ends, the text may have line
// ends of "\r\n", and is read without their "\r".
func (m *Matcher) scratch(text []byte, ends bool) *scratch {
	// A pooled machine keeps the states that it has worked out for earlier texts.
	s, ok := m.pool.Get().(*scratch)
	if !ok {
		s = &scratch{}
		if m.plan != nil {
			s.ahead = newMachine(m.plan, m.plan.prog, false)
			s.back = newMachine(m.plan, m.plan.back, true)
		}
	}

	// The pool belongs to all matchers of the pattern, and each stops only its own searches.
	if s.ahead != nil {
		s.ahead.stop, s.back.stop = &m.stop, &m.stop
	}

	s.text = text
	if ends && bytes.Contains(text, crlf) {
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

// release keeps s for the next search, without the text.
func (m *Matcher) release(s *scratch) {
	s.cursor.text, s.text = nil, nil
	if cap(s.unix) > keepUnix {
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
	case m.whole != nil:
		return m.whole.next(text, from)
	case m.plan.empty:
		return m.nextLine(s, text, from)
	}

	// The automaton reads forward to where the match ends, then another one
	// backward to where it starts.
	lo, end, ok := m.nextEnd(s, text, from)
	if !ok {
		return 0, 0, false
	}

	start, err := m.startOf(s, text, lo, end)
	return start, end, err == nil
}

// nextEnd returns the end of the first match in text[from:], and a place lo at or
// before its start.
func (m *Matcher) nextEnd(s *scratch, text []byte, from int) (lo, end int, ok bool) {
	var err error
	switch {
	case m.filter == nil:
		end, err = s.ahead.forward(text, from, len(text), false, nil)
		lo = from
	case m.plan.crosses:
		lo, end, err = m.acrossLines(s, text, from)
	default:
		lo, end, err = m.byLines(s, text, from)
	}
	return lo, end, err == nil && end >= 0
}

// byLines runs the automaton over the lines that the filter names: matches hold no
// newline.
func (m *Matcher) byLines(s *scratch, text []byte, from int) (lo, end int, err error) {
	for from <= len(text) {
		at := m.filter.next(&s.cursor, from)
		if at < 0 {
			break
		}

		lo := m.filter.lowest(text, from, at)
		limit := s.endOfLine(text, at)

		// The limit is the end of the line: no match goes beyond it.
		end, err := s.ahead.forward(text, lo, limit, false, nil)
		if err != nil || end >= 0 {
			return lo, end, err
		}

		from = limit + 1
	}
	return 0, -1, nil
}

// endOfLine is where the line of a place ends. A line with many matches is looked through
// once.
func (s *scratch) endOfLine(text []byte, at int) int {
	if at < s.line || at > s.lineEnd {
		s.line, s.lineEnd = at, len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			s.lineEnd = at + i
		}
	}
	return s.lineEnd
}

// acrossLines runs the automaton over the text from the first candidate on. Where
// it is idle it skips to the next candidate.
func (m *Matcher) acrossLines(s *scratch, text []byte, from int) (lo, end int, err error) {
	at := m.filter.next(&s.cursor, from)
	if at < 0 {
		return 0, -1, nil
	}

	lo = m.filter.lowest(text, from, at)
	low := lo // where a match that contains candidate at may start
	end, err = s.ahead.forward(text, lo, len(text), false, func(i int) int {
		if at < i {
			if at = m.filter.next(&s.cursor, i); at < 0 {
				return -1
			}
			low = m.filter.lowest(text, i, at)
		}
		return max(i, low)
	})

	return lo, end, err
}

// boundary returns the start of the rune that holds the byte at a place, but nothing
// before lo.
func boundary(text []byte, lo, at int) int {
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

// startOf returns where the leftmost match from text[from:] begins, given
// its end.
func (m *Matcher) startOf(s *scratch, text []byte, from, end int) (int, error) {
	start, err := s.back.backward(text, from, end)
	if err != nil || !m.plan.nullable {
		return start, err
	}

	// A nullable expression may match less from the place found than up to end,
	// which backward cannot see: `(|ab)|b` prefers nothing at 0 of "ab", and the
	// match that ends at 2 starts at 1.
	for ; start < end; start += runeWidth(text[start:]) {
		if e, ok := m.anchored(text, start); ok && e == end {
			return start, nil
		}
	}
	return -1, errStopped
}

// runeWidth is the width of the first rune; a broken byte counts as one.
func runeWidth(b []byte) int {
	_, n := utf8.DecodeRune(b)
	return max(n, 1)
}
