package query

import (
	"regexp"
	"strconv"
	"strings"
)

// Format writes q as a query text that Parse reads back, with the same
// options, as an equal query. ok is false where the language has no words for
// it: texts of both kinds side by side, a line break in a literal, a set of
// repositories by number.
func Format(q *Query, opt Options) (text string, ok bool) {
	f := &formatter{opt: opt, ok: true, c: q.Case}
	f.q(q.Q, true)
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
	return f.b.String(), f.ok
}

type formatter struct {
	opt Options
	c   Case
	b   strings.Builder
	ok  bool
}

func (f *formatter) word(s string) {
	if b := f.b.String(); b != "" && !strings.HasSuffix(b, "(") && !strings.HasSuffix(b, "-") {
		f.b.WriteByte(' ')
	}
	f.b.WriteString(s)
}

func (f *formatter) q(q Q, top bool) {
	switch n := q.(type) {
	case *And:
		f.group(n.Subs, "", top)
	case *Or:
		f.group(n.Subs, "or", false)
	case *Not:
		f.word("-")
		f.q(n.Sub, false)
	case Const:
		if n {
			f.word("-")
		}
		f.word("()")
	default:
		f.atom(q)
	}
}

func (f *formatter) group(subs []Q, op string, bare bool) {
	if !bare {
		f.word("(")
	}
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
	case *RepoSet:
		for _, name := range n.Names {
			f.ok = f.ok && !strings.Contains(name, ",")
		}
		f.word("reposet:" + f.quote(strings.Join(n.Names, ",")))
	case *Flag:
		f.word(n.String())
	default:
		f.ok = false
	}
}

func (f *formatter) text(t *Text) {
	f.fold(t.Fold, t.Pattern, t.Regexp)
	always := t.Field != Content
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

// fold notes whether the case of the query says how this pattern folds.
func (f *formatter) fold(fold bool, pattern string, regexp bool) {
	want := f.c == CaseNo || f.c == CaseAuto && !hasCapital(pattern, regexp)
	f.ok = f.ok && want == fold
}

func (f *formatter) quote(s string) string {
	f.ok = f.ok && s != "" && !strings.Contains(s, "\n")
	return Quote(s)
}

// regexp quotes an expression: backslashes stay, quotes and line breaks are
// escaped unless they are already.
func (f *formatter) regexp(expr string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(expr); i++ {
		switch c := expr[i]; {
		case c == '\\' && i+1 < len(expr) && expr[i+1] != '\n':
			b.WriteByte(c)
			i++
			b.WriteByte(expr[i])
		case c == '"':
			b.WriteString(`\"`)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\\':
			f.ok = false
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
