package query

import "testing"

func TestQuote_parsesBackToOneText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`a b`, `say "x"`, `C:\dir`, `file:x`, `a or b`, `\"`, `-x`, `(`, `"`, "two\nlines \"x\"\n"} {
		q, err := Parse(Quote(text), Options{CaseSensitive: true})
		if err != nil {
			t.Errorf("Quote(%q) = %s: %v", text, Quote(text), err)
			continue
		}
		want := (&And{[]Q{&Text{Pattern: text}, &Rev{"HEAD"}}}).String()
		if got := q.Q.String(); got != want {
			t.Errorf("Quote(%q) parses to %s, want %s", text, got, want)
		}
	}
}

func TestQuoteRegexp_parsesBackToOneExpression(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		`struct [a-z]+ \{`: `struct [a-z]+ \{`,
		`"[^"]+"`:          `\"[^\"]+\"`,
		`a\\b \d`:          `a\\b \d`,
		`\"x\" y`:          `"x" y`, // without an operator, so the parser makes a literal of it
		"a\nb":             "a\nb",
	} {
		q, err := Parse(QuoteRegexp(expr), Options{Regexp: true, CaseSensitive: true})
		if err != nil {
			t.Errorf("QuoteRegexp(%q) = %s: %v", expr, QuoteRegexp(expr), err)
			continue
		}
		text, ok := q.Q.(*And).Subs[0].(*Text)
		if !ok || text.Pattern != want {
			t.Errorf("QuoteRegexp(%q) parses to %s, want the expression %s", expr, q.Q, want)
		}
	}
}

func TestSuggestedQuery_quotesExpressions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"lang:python (def|class) +[a-z]":    `lang:python "(def|class) +[a-z]"`,
		"(def|class) +[a-z] -file:x repo:y": `"(def|class) +[a-z]" -file:x repo:y`,
		"a{1001} file:x b":                  `"a\{1001\} file:x b"`, // not a valid expression in any form
		"x or +a":                           `"x or \+a"`,
		`"x" +a`:                            `"\"x\" \+a"`,
	} {
		if _, err := Parse(text, Options{Regexp: true}); err == nil {
			t.Errorf("%s is a query", text)
		}
		if got := Meant(text, Options{Regexp: true}); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if got := Meant("lang:foo +a", Options{}); got != `"lang:foo +a"` {
		t.Errorf("without expressions: %s", got)
	}
}
