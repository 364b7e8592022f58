package query

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Format writes q as a query text that Parse reads back, with the same options, as an equal
// query. ok is false if the language cannot say it: literals beside regular expressions, a
// set of repositories by number.
func Format(q *Query, opt Options) (text string, ok bool) {
	f := &formatter{opt: opt, ok: true, c: q.Case}
	f.q(q.Q, true)

	// case: is said only where it differs from the toggle that the text is read with.
	toggle := CaseNo
	if opt.CaseSensitive {
		toggle = CaseYes
	}
	if q.Case != toggle {
		f.word("case:" + [...]string{"no", "yes", "auto"}[q.Case])
	}

	if q.Type != AnyType {
		f.word("type:" + [...]string{"", "file", "repo"}[q.Type])
	}

	switch {
	case q.Count == CountAll:
		f.word("count:all")
	case q.Count > 0:
		f.word("count:" + strconv.Itoa(q.Count))
	}

	if q.Timeout > 0 {
		f.word("timeout:" + q.Timeout.String())
	}
	if !q.At.IsZero() {
		f.word("at:" + q.At.Format(time.RFC3339))
	}
	return f.b.String(), f.ok
}

// formatter writes a query; ok is set to false by what cannot be said.
type formatter struct {
	opt Options
	c   Case
	b   strings.Builder
	ok  bool
}

// word writes a word, with a blank before it where one is needed.
func (f *formatter) word(s string) {
	if b := f.b.String(); b != "" && !strings.HasSuffix(b, "(") && !strings.HasSuffix(b, "-") {
		f.b.WriteByte(' ')
	}
	f.b.WriteString(s)
}

// q writes a tree; the subs of the topmost And need no parentheses.
func (f *formatter) q(q Q, top bool) {
	// Nodes: a group in parentheses, or a minus.
	switch n := q.(type) {
	case *And:
		f.group(n.Subs, "", top)
	case *Or:
		f.group(n.Subs, "or", false)
	case *Not:
		f.word("-")
		f.q(n.Sub, false)

	// An empty group matches nothing; everything is its negation.
	case Const:
		if n {
			f.word("-")
		}
		f.word("()")
	default:
		f.atom(q)
	}
}

// group writes an operator with its arms, bare without parentheses.
func (f *formatter) group(subs []Q, op string, bare bool) {
	if !bare {
		f.word("(")
	}

	// An and stands without a word: its arms follow each other.
	for i, s := range subs {
		if i > 0 && op != "" {
			f.word(op)
		}
		f.q(s, false)
	}

	if !bare {
		f.b.WriteByte(')')
	}
}

// atom writes an atom.
func (f *formatter) atom(q Q) {
	switch n := q.(type) {
	case *Text:
		f.text(n)
	case *Repo:
		f.fold(n.Fold, n.Pattern, true)
		f.word("repo:" + f.regexp(n.Pattern))
	case *Lang:
		f.word("lang:" + f.quote(n.Name))
	case *Rev:
		f.word("rev:" + f.quote(n.Pattern))
	case *Context:
		f.word("context:" + f.quote(n.Name))

	// A comma in a name cannot be written.
	case *RepoSet:
		for _, name := range n.Names {
			f.ok = f.ok && !strings.Contains(name, ",")
		}
		f.word("reposet:" + f.quote(strings.Join(n.Names, ",")))
	case *Flag:
		f.word(n.String())

	// What the language of queries has no form for.
	default:
		f.ok = false
	}
}

// text writes a Text.
func (f *formatter) text(t *Text) {
	f.fold(t.Fold, t.Pattern, t.Regexp)
	always := t.Field != Content // a regular expression whatever the toggle

	pattern := t.Pattern
	switch {
	case always:
		name := "file:"
		if t.Field == Symbol {
			name = "sym:"
		}
		if !t.Regexp {
			pattern = regexp.QuoteMeta(pattern)
		}
		f.word(name + f.regexp(pattern))

	case t.WordBegins != f.opt.Words || t.WordEnds != f.opt.Words:
		f.ok = false

	// With the toggle every word is an expression; without it none can be.
	case f.opt.Regexp:
		if !t.Regexp {
			pattern = regexp.QuoteMeta(pattern)
		}
		f.word(f.regexp(pattern))
	default:
		f.ok = f.ok && !t.Regexp
		f.word(f.quote(pattern))
	}
}

// fold checks that the case of the query folds this pattern as it should be.
func (f *formatter) fold(fold bool, pattern string, regexp bool) {
	want := f.c == CaseNo || f.c == CaseAuto && !hasCapital(pattern, regexp)
	f.ok = f.ok && want == fold
}

// quote quotes a text.
func (f *formatter) quote(s string) string {
	f.ok = f.ok && s != ""
	return Quote(s)
}

// regexp quotes an expression.
func (f *formatter) regexp(expr string) string {
	escapes := len(expr) - len(strings.TrimRight(expr, `\`))
	f.ok = f.ok && escapes%2 == 0 // it does not end in half an escape
	return QuoteRegexp(expr)
}
