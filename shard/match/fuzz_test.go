package match

import (
	"bytes"
	"regexp"
	"testing"
)

// twin is what the package promises, by package regexp.
func twin(t *testing.T, expr string, fold bool, text []byte) []Span {
	flags := "(?m)"
	if fold {
		flags = "(?im)"
	}
	tree, err := parse(expr, fold)
	if err != nil {
		t.Fatal(err)
	}
	ends := lineEnds(tree)
	if _, longest := lengths(tree); ends == nil || longest == 0 || bytes.IndexByte(text, '\r') < 0 {
		var out []Span
		for _, loc := range regexp.MustCompile(flags+expr).FindAllIndex(text, -1) {
			if loc[0] < loc[1] {
				out = append(out, Span{loc[0], loc[1]})
			}
		}
		return out
	}

	// With $ in the expression and lines that end in "\r\n": a match ends before them.
	shortest, _ := lengths(tree)
	var out []Span
	for _, loc := range regexp.MustCompile(ends.String()).FindAllIndex(text, -1) {
		lo, hi := loc[0], loc[1]
		switch {
		case lo == hi:
			continue
		case text[hi-1] != '\r' || hi < len(text) && text[hi] != '\n':
		case hi-lo > 1:
			hi--
		case shortest == 0:
			continue
		}
		out = append(out, Span{lo, hi})
	}
	return out
}

// emptyLines is what `^$` finds: the lines without a byte, of which there is
// none behind the last newline.
func emptyLines(text []byte) (out []Span) {
	for _, loc := range regexp.MustCompile(`(?m)^(?:\r\n|$)`).FindAllIndex(text, -1) {
		if loc[0] < len(text) {
			out = append(out, Span{loc[0], loc[0]})
		}
	}
	return out
}

// check compares every way to ask with the twin.
func check(t *testing.T, expr string, fold bool, text []byte) {
	t.Helper()
	m, err := Compile(expr, Options{Fold: fold})
	if err != nil {
		return
	}
	if m.plan != nil && len(m.plan.prog.Inst) > 300 {
		return // takes long, twice
	}
	if m.plan != nil && m.plan.empty {
		m.Count(text) // has a rule of its own; must not hang
		return
	}
	want := twin(t, expr, fold, text)
	if m.literal != nil && len(m.literal.core) == 0 {
		want = emptyLines(text)
	}
	got := m.Append(nil, text, -1)
	same := len(got) == len(want)
	for i := 0; same && i < len(got); i++ {
		same = got[i] == want[i]
	}
	if !same {
		t.Fatalf("matches of %q (fold %v) in %q: %v, want %v", expr, fold, text, got, want)
	}
	if n := m.Count(text); n != len(want) {
		t.Fatalf("Count of %q (fold %v) in %q = %d, want %d", expr, fold, text, n, len(want))
	}
	if ok := m.Matches(text); ok != (len(want) > 0) {
		t.Fatalf("Matches of %q (fold %v) in %q = %v, want %v", expr, fold, text, ok, !ok)
	}
}

func FuzzExpression(f *testing.F) {
	for _, expr := range []string{
		`a`, `abc`, `a*`, `a*?b`, `(a|ab)(c|bcd)`, `(|a)b?`, `(|ab)|b`, `^a`, `a$`, `^$`, `^\s*a$`, `(^|b)a`, `\ba\b`, `\Bk`,
		`[0-9]{3}`, `[A-Z]{2,}`, `[a-z]+_lock\(`, `\bv[0-9]+\.[0-9]+\b`, `.`, `..`, `.*b`, `(?s).a`, `[^a]+`, `\s+`, `a\nb`, `\Aa`, `a\z`, `\A(?:abc|abd|ab|v\dx?)\z`, `\A(a|)\z`, `\Aa[^b]\z`, `\A(a?b?|é)\z`,
		`é`, `[é-ü]+`, `\pL+`, `\x{FFFD}`, `[^\x00-\x7f]`, `k+`, `ſs`, `fixme|xxx|hack`, `a.{2,4}?b`, `(a+)(b+)`, `\s\s`, `x*y*z`, `\w+\s*\(\)`,
	} {
		for _, text := range []string{
			"", "a", "0", "abcd\nabc", "xx abab kKs\u212a\u017f", "a\n\nb a\n", "v1.2 12345 ABC a_lock(", "\xff\xe2\x82a\xe2\x82\xac\x80b", "éÉü\xc3", "fixme XXX\nhack f() ",
		} {
			f.Add(expr, true, []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, expr string, fold bool, text []byte) {
		if len(expr) > 100 || len(text) > 2000 {
			return
		}
		check(t, expr, fold, text)
		check(t, expr, !fold, text)
	})
}
