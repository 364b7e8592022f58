package match

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
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
	at0   *regexp.Regexp // for a search from the start of a text
	later *regexp.Regexp // for one from further in: one rune of context comes first
	empty bool           // only ever matches the empty string
}

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
	text := re.String()
	m := &Matcher{empty: maxLen(re) == 0}
	if m.at0, err = regexp.Compile("(" + text + ")"); err != nil {
		return nil, fmt.Errorf("compile pattern: %w", err)
	}
	if m.later, err = regexp.Compile(`\A(?s:.)(?s:.*?)(` + text + ")"); err != nil {
		return nil, fmt.Errorf("compile pattern: %w", err)
	}
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

// Next returns the first match that starts at from or later. What stands
// before from is context for anchors and word borders. To go on, pass end,
// or end+1 where the match is empty.
func (m *Matcher) Next(text []byte, from int) (start, end int, ok bool) {
	for from <= len(text) {
		start, end, ok = m.search(text, from)
		if !ok || end > start || m.empty {
			return start, end, ok
		}
		from = end + runeWidth(text[end:])
	}
	return 0, 0, false
}

// Append appends the matches of text to dst, from the first to the last but
// at most limit of them (limit < 0: all), and returns the longer slice.
func (m *Matcher) Append(dst []Span, text []byte, limit int) []Span {
	for from := 0; limit != 0; limit-- {
		start, end, ok := m.Next(text, from)
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
