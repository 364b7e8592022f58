package match

import (
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
	plan *plan

	pool sync.Pool   // of *scratch
	slow atomic.Bool // the automaton has too many states
	once sync.Once   // guards at0 and later
	re   twins
}

// scratch is what one search at a time works with.
type scratch struct{ ahead, back *machine }

// Compile reads a pattern. The error of a bad expression is a *syntax.Error.
func Compile(expr string, o Options) (*Matcher, error) {
	if len(expr) > MaxPattern {
		return nil, ErrTooLong
	}
	if o.Literal {
		expr = regexp.QuoteMeta(expr)
	}
	re, err := parse(expr, o.Fold)
	if err != nil {
		return nil, err
	}
	p, err := newPlan(re)
	if err != nil {
		return nil, err
	}
	return &Matcher{plan: p}, nil
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

// Next returns the first match that starts at from or later. What stands
// before from is context for anchors and word borders. To go on, pass end,
// or end+1 where the match is empty.
func (m *Matcher) Next(text []byte, from int) (start, end int, ok bool) {
	s := m.scratch()
	defer m.pool.Put(s)
	return m.next(s, text, from)
}

// Append appends the matches of text to dst, from the first to the last but
// at most limit of them (limit < 0: all), and returns the longer slice.
func (m *Matcher) Append(dst []Span, text []byte, limit int) []Span {
	s := m.scratch()
	defer m.pool.Put(s)
	for from := 0; limit != 0; limit-- {
		start, end, ok := m.next(s, text, from)
		if !ok {
			break
		}
		dst = append(dst, Span{start, end})
		from = max(end, start+1)
	}
	return dst
}

// Count returns the number of matches in text.
func (m *Matcher) Count(text []byte) int {
	return len(m.Append(nil, text, -1))
}

// Matches reports whether text has a match.
func (m *Matcher) Matches(text []byte) bool {
	_, _, ok := m.Next(text, 0)
	return ok
}

func (m *Matcher) scratch() *scratch {
	if s, ok := m.pool.Get().(*scratch); ok {
		return s
	}
	return &scratch{
		ahead: newMachine(m.plan, m.plan.prog, false),
		back:  newMachine(m.plan, m.plan.back, true),
	}
}

func (m *Matcher) next(s *scratch, text []byte, from int) (start, end int, ok bool) {
	if from > len(text) {
		return 0, 0, false
	}
	if m.plan.empty {
		return m.nextLine(s, text, from)
	}
	if !m.slow.Load() {
		start, end, err := m.find(s, text, from, len(text))
		if err == nil {
			return start, end, end >= 0
		}
		m.slow.Store(true)
	}
	return m.nextSlow(text, from)
}

// find returns the first match in text[from:] that ends at limit or before,
// or an end of -1.
func (m *Matcher) find(s *scratch, text []byte, from, limit int) (start, end int, err error) {
	end, err = s.ahead.forward(text, from, limit, false, nil)
	if err != nil || end < 0 {
		return -1, -1, err
	}
	start, err = m.startOf(s, text, from, end)
	return start, end, err
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
	return -1, errGaveUp
}

func runeWidth(b []byte) int {
	_, n := utf8.DecodeRune(b)
	return max(n, 1)
}
