package query

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Format writes q as a query text that Parse, with the same options, reads as an equal query. ok is
// false if the language cannot express it, such as literals beside regular expressions, or a set of
// repository ids.
func Format(q *Query, opt Options) (text string, ok bool) {
	f := &formatter{opt: opt, ok: true, c: q.Case}
	f.q(q.Q, true)

	// Write case: only if it differs from the toggle.
	toggle := CaseNo
	if opt.CaseSensitive {
		toggle = CaseYes
	}
	if q.Case != toggle {
		f.word("case:" + [...]string{"no", "yes", "auto"}[q.Case])
	}

	if q.Type != AnyType {
		f.word("type:" + [...]string{"", "file", "repo", "commit", "diff"}[q.Type])
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

// formatter writes a query. ok becomes false if a part cannot be expressed.
type formatter struct {
	opt Options
	c   Case
	b   strings.Builder
	ok  bool
}

// word writes a word, after a blank if one is needed.
func (f *formatter) word(s string) {
	if b := f.b.String(); b != "" && !strings.HasSuffix(b, "(") && !strings.HasSuffix(b, "-") {
		f.b.WriteByte(' ')
	}
	f.b.WriteString(s)
}

// q writes a tree. Members of the topmost And need no parentheses.
func (f *formatter) q(q Q, top bool) {
	// Operators become a group in parentheses, or a minus.
	switch n := q.(type) {
	case *And:
		f.group(n.Subs, "", top)
	case *Or:
		f.group(n.Subs, "or", false)
	case *Not:
		f.word("-")
		f.q(n.Sub, false)

	// An empty group matches nothing, and its negation everything.
	case Const:
		if n {
			f.word("-")
		}
		f.word("()")
	default:
		f.atom(q)
	}
}

// group writes an operator with its members; with bare it writes no parentheses.
func (f *formatter) group(subs []Q, op string, bare bool) {
	if !bare {
		f.word("(")
	}

	// An and has no word: its members follow each other.
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

	// A name with a comma cannot be written.
	case *RepoSet:
		for _, name := range n.Names {
			f.ok = f.ok && !strings.Contains(name, ",")
		}
		f.word("reposet:" + f.quote(strings.Join(n.Names, ",")))
	case *Flag, *Merge, *Dates:
		f.word(n.String())

	// Other atoms have no form in the query language.
	default:
		f.ok = false
	}
}

// text writes a Text.
func (f *formatter) text(t *Text) {
	f.fold(t.Fold, t.Pattern, t.Regexp)
	always := t.Field == Name || t.Field == Symbol || t.Field == Author || t.Field == Committer // the value is a regular expression whatever the toggle says

	name, pattern := "", t.Pattern
	if t.Field != Content {
		name = fieldNames[t.Field] + ":"
	}
	switch {
	case always:
		if !t.Regexp {
			pattern = regexp.QuoteMeta(pattern)
		}
		f.word(name + f.regexp(pattern))

	case t.WordBegins != f.opt.Words || t.WordEnds != f.opt.Words:
		f.ok = false

	// With the toggle every word is an expression; without it no word is.
	case f.opt.Regexp:
		if !t.Regexp {
			pattern = regexp.QuoteMeta(pattern)
		}
		f.word(name + f.regexp(pattern))
	default:
		f.ok = f.ok && !t.Regexp
		f.word(name + f.quote(pattern))
	}
}

// fold sets ok to false if a pattern would be matched with another case when the formatted query is
// parsed again.
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
	f.ok = f.ok && escapes%2 == 0 // it must not end in half an escape
	return QuoteRegexp(expr)
}
