package suggest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/shard/query"
)

// A query's parts have places and meanings. The result also has the full form and warnings.
func TestExplainQuery_returnsPartsWithMeanings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		opt  query.Options
		want string
	}{
		{`foo -f:_test`, query.Options{}, `
text 0-3 foo
not 4-5 - (leaves out what matches behind it)
filter 5-7 f: (files whose path matches)
value 7-12 _test
= "foo" -file:"_test" rev:"HEAD"`},

		{`(a or "b c") branch:v1`, query.Options{Regexp: true, CaseSensitive: true}, `
open 0-1 (
regexp 1-2 a
or 3-5 or (what stands before it, or what stands behind)
regexp 6-11 "b c"
close 11-12 )
filter 13-20 branch: (a branch, tag or commit)
value 20-22 v1
= ("a" or "b c") rev:"v1"`},

		{`é language:go`, query.Options{}, `
text 0-2 é
text 3-14 language:go
= "é" "language:go" rev:"HEAD"
! 3-14 language:go is searched for as text: lang: does that -> lang:go`},

		{`x lang:nolang y`, query.Options{}, `
text 0-1 x
filter 2-7 lang: (files of a language)
value 7-13 nolang
error 7+6 the name of a language -> "x lang:nolang y"`},

		{`a "b" c[`, query.Options{Regexp: true}, `
regexp 0-1 a
regexp 2-5 "b"
regexp 6-8 c[
error 7+1 a regular expression -> "a \"b\" c\["`},

		{"a \xff", query.Options{}, `
error 2+1 text in UTF-8 -> `},
		{strings.Repeat("a", query.MaxLength+1), query.Options{}, `
error 16384+1 a query of at most 16384 bytes -> `},
	} {
		e := Explain(c.text, c.opt)
		var b strings.Builder
		for _, x := range e.Tokens {
			fmt.Fprintf(&b, "\n%s %d-%d %s", x.Kind, x.Start, x.End, x.Text)
			if x.Meaning != "" {
				fmt.Fprintf(&b, " (%s)", x.Meaning)
			}
		}
		if e.Canonical != "" {
			b.WriteString("\n= " + e.Canonical)
		}
		for _, w := range e.Warnings {
			fmt.Fprintf(&b, "\n! %d-%d %s -> %s", w.Start, w.End, w.Message, w.Suggestion)
		}
		if m := e.Mistake; m != nil {
			expected, _, _ := strings.Cut(m.Expected, ",")
			expected, _, _ = strings.Cut(expected, ";")
			expected, _, _ = strings.Cut(expected, " after")
			expected, _, _ = strings.Cut(expected, " in RE2")
			fmt.Fprintf(&b, "\nerror %d+%d %s -> %s", m.Offset, m.Length, expected, m.Suggestion)
		}
		if b.String() != c.want {
			t.Errorf("%.60s:\n got%s\nwant%s", c.text, b.String(), c.want)
		}
	}
}

// Every filter has a meaning, by each of its names.
func TestExplainQuery_everyFilterHasAMeaning(t *testing.T) {
	t.Parallel()
	for _, f := range query.Filters() {
		for _, name := range f.Names {
			e := Explain(name+":"+f.Example, query.Options{})
			if len(e.Tokens) != 2 || e.Tokens[0].Kind != FilterToken || e.Tokens[0].Meaning != f.Meaning() {
				t.Errorf("%s:%s is %+v", name, f.Example, e.Tokens)
			}
		}
	}
}
