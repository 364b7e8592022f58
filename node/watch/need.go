package watch

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/shard/query"
)

// need is a condition on new texts, without which a query has no match there. It is one literal, or all or
// any of other needs. A nil need is always met. Different texts may meet the needs of an "and".
type need struct {
	literal int // number in the table, if there are no subs
	subs    []*need
	any     bool // of subs
}

// needs has the literals of all watches. One pass over a text finds those that the text has. The letters
// A to Z are in lower case. A literal has at least three bytes.
type needs struct {
	literals []string
	numbers  map[string]int
	begins   map[uint32][]int // literals by their first four bytes; those of three by these
	filter   [1 << 13]uint64  // a bit for each hash of a key of begins
}

func newNeeds() *needs { return &needs{numbers: map[string]int{}, begins: map[uint32][]int{}} }

const leastLiteral = 3

// add returns the need of a query.
func (t *needs) add(q query.Q) *need {
	switch n := q.(type) {
	case query.Const:
		if !n {
			return &need{any: true, subs: []*need{}}
		}
	case *query.And:
		return allOf(n.Subs, t.add)
	case *query.Or:
		return anyOf(n.Subs, t.add)
	case *query.Text:
		if n.Regexp && n.Field == query.Symbol {
			return nil // it is about the name of a symbol, which begins and ends elsewhere
		}
		pattern, flags := n.Pattern, query.RegexpFlags
		if !n.Regexp {
			pattern = regexp.QuoteMeta(pattern)
		}
		if n.Fold {
			flags |= syntax.FoldCase
		}
		if re, err := syntax.Parse(pattern, flags); err == nil {
			return t.ofRegexp(re)
		}
	}
	return nil
}

// allOf returns the need of a query that matches only if all of its parts do.
func allOf[T any](parts []T, of func(T) *need) *need {
	out := &need{}
	for _, p := range parts {
		if n := of(p); n != nil {
			out.subs = append(out.subs, n)
		}
	}
	switch len(out.subs) {
	case 0:
		return nil
	case 1:
		return out.subs[0]
	}
	return out
}

// anyOf returns the need of a query that matches if any of its parts does.
func anyOf[T any](parts []T, of func(T) *need) *need {
	out := &need{any: true, subs: []*need{}}
	for _, p := range parts {
		n := of(p)
		if n == nil {
			return nil
		}
		out.subs = append(out.subs, n)
	}
	return out
}

func (t *needs) ofRegexp(re *syntax.Regexp) *need {
	switch re.Op {
	case syntax.OpNoMatch:
		return &need{any: true, subs: []*need{}}
	case syntax.OpLiteral:
		return allOf(literalsIn(re), t.ofLiteral)
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		return allOf(re.Sub, t.ofRegexp)
	case syntax.OpAlternate:
		return anyOf(re.Sub, t.ofRegexp)
	case syntax.OpRepeat:
		if re.Min > 0 {
			return t.ofRegexp(re.Sub[0])
		}
	}
	return nil
}

// literalsIn cuts a literal of an expression at what a text may have in another form: the end of a
// line, a byte that is not UTF-8, and where case is ignored a letter that is not of ASCII.
func literalsIn(re *syntax.Regexp) []string {
	var out []string
	var part []byte
	for _, r := range append(slices.Clone(re.Rune), '\n') {
		if r == '\n' || r == '\r' || r == utf8.RuneError || r >= utf8.RuneSelf && re.Flags&syntax.FoldCase != 0 {
			if len(part) >= leastLiteral {
				out = append(out, string(part))
			}
			part = part[:0]
			continue
		}
		if r < utf8.RuneSelf {
			part = append(part, lower[r])
		} else {
			part = utf8.AppendRune(part, r)
		}
	}
	return out
}

func (t *needs) ofLiteral(text string) *need {
	n, ok := t.numbers[text]
	if !ok {
		n = len(t.literals)
		t.numbers[text], t.literals = n, append(t.literals, text)
		key := uint32(0)
		for _, c := range []byte(text[:min(len(text), 4)]) {
			key = key<<8 | uint32(c)
		}
		t.begins[key] = append(t.begins[key], n)
		h := hash(key)
		t.filter[h>>6] |= 1 << (h & 63)
	}
	return &need{literal: n}
}

func hash(key uint32) uint32 { return key * 0x9e3779b1 >> 13 }

var lower = func() (t [256]byte) {
	for c := range t {
		t[c] = byte(c)
		if 'A' <= c && c <= 'Z' {
			t[c] |= 0x20
		}
	}
	return t
}()

// findings are the literals that texts have.
type findings struct {
	t       *needs
	found   []bool // by number of a literal
	special bool   // a text has a letter that is k or s where case is ignored: it may have any literal
}

func (t *needs) findings() *findings { return &findings{t: t, found: make([]bool, len(t.literals))} }

// add finds the literals of a text.
func (f *findings) add(text []byte) {
	f.special = f.special || bytes.Contains(text, []byte("\u212a")) || bytes.Contains(text, []byte("\u017f"))
	key := uint32(0)
	for i, c := range text {
		key = key<<8 | uint32(lower[c])
		if i >= 2 {
			f.look(key&0xffffff, text[i-2:])
		}
		if i >= 3 {
			f.look(key, text[i-3:])
		}
	}
}

// look finds the literals with a key that a text begins with.
func (f *findings) look(key uint32, text []byte) {
	if h := hash(key); f.t.filter[h>>6]&(1<<(h&63)) == 0 {
		return
	}
	for _, n := range f.t.begins[key] {
		if !f.found[n] {
			f.found[n] = beginsWith(text, f.t.literals[n])
		}
	}
}

func beginsWith(text []byte, literal string) bool {
	if len(text) < len(literal) {
		return false
	}
	for i := range literal {
		if lower[text[i]] != literal[i] {
			return false
		}
	}
	return true
}

// meet reports whether the texts may have a match of a query with a need; false is certain.
func (f *findings) meet(n *need) bool {
	if n == nil || f.special {
		return true
	}
	if n.subs == nil {
		return f.found[n.literal]
	}
	for _, s := range n.subs {
		if f.meet(s) == n.any {
			return n.any
		}
	}
	return !n.any
}
