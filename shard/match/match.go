package match

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// MaxPattern is the longest pattern that [Compile] takes, in bytes.
const MaxPattern = 32 << 10

// ErrTooLong is returned for a pattern longer than [MaxPattern].
var ErrTooLong = errors.New("pattern is too long")

// Options tell how a pattern is to be read.
type Options struct {
	Literal bool // the pattern is a run of bytes, not an expression
	Fold    bool // letters match without regard to case
}

// Span is a half-open run of bytes, in offsets from the start of a text.
type Span struct{ Start, End int }

// Matcher is a compiled pattern. It is safe for concurrent use.
type Matcher struct {
	*compiled
	stop atomic.Bool
}

// Again returns a matcher of the same pattern that shares with m whatever it
// has found out, but is not ended by its Stop.
func (m *Matcher) Again() *Matcher { return &Matcher{compiled: m.compiled} }

// compiled is what the matchers of one pattern share.
type compiled struct {
	// One of these does the work: a literal, runs of a class, or the
	// automaton of plan, which may have a filter to tell it where to look.
	literal *literal
	runs    *runs
	plan    *plan
	filter  *filter

	pool sync.Pool // of *scratch
	once sync.Once // guards here
	here twins
}

// scratch is what one search at a time works with.
type scratch struct {
	cursor      cursor
	ahead, back *machine
}

// Compile reads a pattern. The error of a bad expression is a *syntax.Error.
func Compile(expr string, o Options) (*Matcher, error) {
	if len(expr) > MaxPattern {
		return nil, ErrTooLong
	}
	if o.Literal && expr != "" {
		if l := newLiteral(bytesOf(expr, o.Fold)); l != nil {
			return &Matcher{compiled: &compiled{literal: l}}, nil
		}
	}
	if o.Literal {
		expr = regexp.QuoteMeta(expr)
	}
	re, err := parse(expr, o.Fold)
	if err != nil {
		return nil, err
	}
	if l := literalOf(re); l != nil {
		return &Matcher{compiled: &compiled{literal: l}}, nil
	}
	if r := runsOf(re); r != nil {
		return &Matcher{compiled: &compiled{runs: r}}, nil
	}
	p, err := newPlan(re)
	if err != nil {
		return nil, err
	}
	m := &Matcher{compiled: &compiled{plan: p}}
	m.filter = filterOf(p)
	p.skips = p.crosses && m.filter != nil
	return m, nil
}

// parse is the one reading of an expression: lines for anchors, no newline
// for a dot.
func parse(expr string, fold bool) (*syntax.Regexp, error) {
	flags := syntax.ClassNL | syntax.PerlX | syntax.UnicodeGroups
	if fold {
		flags |= syntax.FoldCase
	}
	return syntax.Parse(expr, flags)
}

// SpansLines reports whether a match of the expression may hold a newline. The
// error of a bad expression is a *syntax.Error.
func SpansLines(expr string) (bool, error) {
	re, err := parse(expr, false)
	if err != nil {
		return false, err
	}
	return crosses(re), nil
}

// Next returns the first match that starts at from or later. What stands
// before from is context for anchors and word borders. To go on, pass end,
// or end+1 where the match is empty.
func (m *Matcher) Next(text []byte, from int) (start, end int, ok bool) {
	if from > len(text) {
		return 0, 0, false
	}
	s := m.scratch(text)
	start, end, ok = m.next(s, text, from)
	m.release(s)
	return start, end, ok
}

// Append appends the matches of text to dst, from the first to the last but
// at most limit of them (limit < 0: all), and returns the longer slice.
func (m *Matcher) Append(dst []Span, text []byte, limit int) []Span {
	s := m.scratch(text)
	for from := 0; limit != 0 && from <= len(text); limit-- {
		start, end, ok := m.next(s, text, from)
		if !ok {
			break
		}
		dst = append(dst, Span{start, end})
		from = max(end, start+1)
	}
	m.release(s)
	return dst
}

// Count returns the number of matches in text. It takes less time than to
// list them.
func (m *Matcher) Count(text []byte) int {
	s := m.scratch(text)
	n := 0
	for from := 0; from <= len(text); n++ {
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
	s := m.scratch(text)
	_, _, ok := m.next(s, text, 0)
	m.release(s)
	return ok
}

// Stop makes the searches that run, and those to come, end early with
// whatever they found, once they take long. It is for a search whose
// deadline has passed.
func (m *Matcher) Stop() { m.stop.Store(true) }

func (m *Matcher) scratch(text []byte) *scratch {
	s, ok := m.pool.Get().(*scratch)
	if !ok {
		s = &scratch{}
		if m.plan != nil {
			s.ahead = newMachine(m.plan, m.plan.prog, false)
			s.back = newMachine(m.plan, m.plan.back, true)
		}
	}
	if s.ahead != nil {
		s.ahead.stop, s.back.stop = &m.stop, &m.stop
	}
	switch {
	case m.literal != nil:
		s.cursor.reset(text, m.literal)
	case m.runs != nil:
		s.cursor.reset(text, m.runs)
	case m.filter != nil:
		s.cursor.reset(text, m.filter)
	}
	return s
}

// release gives s back, without the text.
func (m *Matcher) release(s *scratch) {
	s.cursor.text = nil
	m.pool.Put(s)
}

func (m *Matcher) next(s *scratch, text []byte, from int) (start, end int, ok bool) {
	switch {
	case m.literal != nil:
		return m.literal.next(&s.cursor, from)
	case m.runs != nil:
		return m.runs.next(&s.cursor, from)
	case m.plan.empty:
		return m.nextLine(s, text, from)
	}
	lo, end, ok := m.nextEnd(s, text, from)
	if !ok {
		return 0, 0, false
	}
	start, err := m.startOf(s, text, lo, end)
	return start, end, err == nil
}

// nextEnd returns the end of the first match in text[from:] and a place at
// or before its start.
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

// byLines looks at the lines that the filter names.
func (m *Matcher) byLines(s *scratch, text []byte, from int) (lo, end int, err error) {
	for from <= len(text) {
		at := m.filter.next(&s.cursor, from)
		if at < 0 {
			break
		}
		lo := m.filter.lowest(text, from, at)
		limit := len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			limit = at + i
		}
		end, err := s.ahead.forward(text, lo, limit, false, nil)
		if err != nil || end >= 0 {
			return lo, end, err
		}
		from = limit + 1
	}
	return 0, -1, nil
}

// acrossLines starts, and starts again, where the filter says.
func (m *Matcher) acrossLines(s *scratch, text []byte, from int) (lo, end int, err error) {
	at := m.filter.next(&s.cursor, from)
	if at < 0 {
		return 0, -1, nil
	}
	lo = m.filter.lowest(text, from, at)
	low := lo
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

// boundary returns the start of the rune at a place, but nothing before lo.
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
	// A nullable expression may prefer nothing at the place found, although
	// it could have come this far: `(|ab)|b` on "ab".
	for ; start < end; start += runeWidth(text[start:]) {
		if e, ok := m.anchored(text, start); ok && e == end {
			return start, nil
		}
	}
	return -1, errStopped
}

func runeWidth(b []byte) int {
	_, n := utf8.DecodeRune(b)
	return max(n, 1)
}
