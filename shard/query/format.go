package query

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Format writes q as a query text that Parse, with the same options, reads as an equal query. ok is
// false if no text gives that query, for example one with literals and regular expressions, or with
// a set of repository ids.
func Format(q *Query, opt Options) (text string, ok bool) {
	f := &formatter{opt: opt, ok: true, c: q.Case}
	f.writeTree(q.Q, true)

	// Write case: only if it differs from the toggle.
	toggle := CaseNo
	if opt.CaseSensitive {
		toggle = CaseYes
	}
	if q.Case != toggle {
		f.writeWord("case:" + [...]string{"no", "yes", "auto"}[q.Case])
	}

	if q.Type != AnyType {
		f.writeWord("type:" + [...]string{"", "file", "repo", "commit", "diff"}[q.Type])
	}

	switch {
	case q.Count == CountAll:
		f.writeWord("count:all")
	case q.Count > 0:
		f.writeWord("count:" + strconv.Itoa(q.Count))
	}

	if q.Timeout > 0 {
		f.writeWord("timeout:" + q.Timeout.String())
	}
	if !q.At.IsZero() {
		f.writeWord("at:" + q.At.Format(time.RFC3339))
	}
	return f.b.String(), f.ok
}

// formatter writes a query.
type formatter struct {
	opt Options
	c   Case // of the query
	b   strings.Builder
	ok  bool // Parse reads the text so far as the query
}

// writeWord writes a word, after a blank if one is needed.
func (f *formatter) writeWord(s string) {
	if b := f.b.String(); b != "" && !strings.HasSuffix(b, "(") && !strings.HasSuffix(b, "-") {
		f.b.WriteByte(' ')
	}
	f.b.WriteString(s)
}

// writeTree writes a tree. top is set for the whole tree: if it is an And, its members need no
// parentheses.
func (f *formatter) writeTree(q Q, top bool) {
	switch n := q.(type) {
	case *And:
		f.writeGroup(n.Subs, "", top)
	case *Or:
		f.writeGroup(n.Subs, "or", false)
	case *Not:
		f.writeWord("-")
		f.writeTree(n.Sub, false)

	// An empty group matches nothing, so its negation matches everything.
	case Const:
		if n {
			f.writeWord("-")
		}
		f.writeWord("()")
	default:
		f.writeAtom(q)
	}
}

// writeGroup writes the members of an operator, with op between them if it is not empty. If bare is
// set, it writes no parentheses.
func (f *formatter) writeGroup(subs []Q, op string, bare bool) {
	if !bare {
		f.writeWord("(")
	}

	for i, s := range subs {
		if i > 0 && op != "" {
			f.writeWord(op)
		}
		f.writeTree(s, false)
	}

	if !bare {
		f.b.WriteByte(')')
	}
}

// writeAtom writes an atom.
func (f *formatter) writeAtom(q Q) {
	switch n := q.(type) {
	case *Text:
		f.writeText(n)
	case *Repo:
		f.checkCase(n.Fold, n.Pattern, true)
		f.writeWord("repo:" + f.quoteRegexp(n.Pattern))
	case *Lang:
		f.writeWord("lang:" + f.quote(n.Name))
	case *Rev:
		f.writeWord("rev:" + f.quote(n.Pattern))
	case *Context:
		f.writeWord("context:" + f.quote(n.Name))

	case *RepoSet:
		for _, name := range n.Names {
			f.ok = f.ok && !strings.Contains(name, ",") // it would be two names
		}
		f.writeWord("reposet:" + f.quote(strings.Join(n.Names, ",")))
	case *Flag, *Merge, *Dates:
		f.writeWord(n.String())

	// Other atoms have no form in the query language.
	default:
		f.ok = false
	}
}

// writeText writes a Text.
func (f *formatter) writeText(t *Text) {
	f.checkCase(t.Fold, t.Pattern, t.Regexp)
	alwaysRegexp := t.Field == Name || t.Field == Symbol || t.Field == Author || t.Field == Committer // whatever the toggle says

	name, pattern := "", t.Pattern
	if t.Field != Content {
		name = fieldNames[t.Field] + ":"
	}
	switch {
	case alwaysRegexp:
		if !t.Regexp {
			pattern = regexp.QuoteMeta(pattern)
		}
		f.writeWord(name + f.quoteRegexp(pattern))

	case t.WordBegins != f.opt.Words || t.WordEnds != f.opt.Words:
		f.ok = false

	// With the toggle every word is an expression; without it no word is.
	case f.opt.Regexp:
		if !t.Regexp {
			pattern = regexp.QuoteMeta(pattern)
		}
		f.writeWord(name + f.quoteRegexp(pattern))
	default:
		f.ok = f.ok && !t.Regexp
		f.writeWord(name + f.quote(pattern))
	}
}

// checkCase sets ok to false if Parse would give the pattern another value of Fold than fold.
func (f *formatter) checkCase(fold bool, pattern string, regexp bool) {
	parsed := f.c == CaseNo || f.c == CaseAuto && !hasCapital(pattern, regexp)
	f.ok = f.ok && parsed == fold
}

// quote returns a text in quotes. It sets ok to false for an empty text, which no query can have.
func (f *formatter) quote(s string) string {
	f.ok = f.ok && s != ""
	return Quote(s)
}

// quoteRegexp returns an expression in quotes. It sets ok to false if the last backslash of the
// expression would escape the quote.
func (f *formatter) quoteRegexp(expr string) string {
	backslashes := len(expr) - len(strings.TrimRight(expr, `\`)) // at the end
	f.ok = f.ok && backslashes%2 == 0
	return QuoteRegexp(expr)
}
