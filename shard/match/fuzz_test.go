package match

import (
	"bytes"
	"regexp"
	"slices"
	"testing"
	"unicode/utf8"
)

// twin returns what the package promises, using package regexp. For whole words it keeps the
// matches that are words, trying every place.
func twin(t *testing.T, expr string, o Options, text []byte) []Span {
	flags := "(?m)"
	if o.Fold {
		flags = "(?im)"
	}
	tree, err := parse(expr, o.Fold)
	if err != nil {
		t.Fatal(err)
	}

	// A line break is one character, unless the expression requires a "\r".
	var ends []int
	plain := text
	if !requiresReturn(tree) {
		for i := range text {
			if bytes.HasPrefix(text[i:], crlf) {
				ends = append(ends, i-len(ends))
			}
		}
		plain = bytes.ReplaceAll(text, crlf, []byte("\n"))
	}

	var out []Span
	for _, sp := range found(flags+"(?:"+expr+")", o, plain) {
		lo, _ := slices.BinarySearch(ends, sp.Start)
		hi, _ := slices.BinarySearch(ends, sp.End)
		out = append(out, Span{sp.Start + lo, sp.End + hi})
	}
	return out
}

// found returns the matches of an expression that are not empty.
func found(expr string, o Options, text []byte) (out []Span) {
	if !o.words() {
		for _, loc := range regexp.MustCompile(expr).FindAllIndex(text, -1) {
			if loc[0] < loc[1] {
				out = append(out, Span{loc[0], loc[1]})
			}
		}
		return out
	}

	// Match at each place at which a word may begin, with the rune before it as context.
	whole := "(" + expr + ")"
	if o.WordEnds {
		whole += `(?:[^\pL\pM\pN_]|\z)`
	}
	first, later := regexp.MustCompile(`\A`+whole), regexp.MustCompile(`\A(?s:.)`+whole)
	word := regexp.MustCompile(`\A[\pL\pM\pN_]`)
	before := 0 // start of the rune before at
	for at := 0; at <= len(text); {
		re := later
		if at == 0 {
			re = first
		}
		_, width := utf8.DecodeRune(text[at:])
		next, last := at+max(width, 1), at
		if loc := re.FindSubmatchIndex(text[before:]); loc != nil && before+loc[3] > at && (at == 0 || !o.WordBegins || !word.Match(text[before:])) {
			next = before + loc[3]
			out = append(out, Span{at, next})
			_, width := utf8.DecodeLastRune(text[:next])
			last = next - width
		}
		before, at = last, next
	}
	return out
}

// emptyLines returns the matches of `^$`: the lines without a byte. After the last newline there is
// no line.
func emptyLines(text []byte) (out []Span) {
	for _, loc := range regexp.MustCompile(`(?m)^(?:\r\n|$)`).FindAllIndex(text, -1) {
		if loc[0] < len(text) {
			out = append(out, Span{loc[0], loc[0]})
		}
	}
	return out
}

// check compares every method of a matcher with the twin.
func check(t *testing.T, expr string, fold bool, text []byte) {
	t.Helper()
	checkWith(t, expr, Options{Fold: fold}, text)
}

func checkWith(t *testing.T, expr string, o Options, text []byte) {
	t.Helper()
	m, err := Compile(expr, o)
	if err != nil {
		return
	}
	if m.plan != nil && len(m.plan.prog.Inst) > 300 {
		return // both take long
	}
	if m.plan != nil && m.plan.empty {
		m.Count(text) // it has a rule of its own, but must not hang
		return
	}
	want := twin(t, expr, o, text)
	if m.literal != nil && len(m.literal.core) == 0 {
		want = emptyLines(text)
	}
	got := m.Append(nil, text, -1)
	if !slices.Equal(got, want) {
		t.Fatalf("matches of %q (%+v) in %q: %v, want %v", expr, o, text, got, want)
	}
	if n := m.Count(text); n != len(want) {
		t.Fatalf("Count of %q (%+v) in %q = %d, want %d", expr, o, text, n, len(want))
	}
	if ok := m.Matches(text); ok != (len(want) > 0) {
		t.Fatalf("Matches of %q (%+v) in %q = %v, want %v", expr, o, text, ok, !ok)
	}
	for from, i := 0, 0; i <= len(want); i++ {
		start, end, ok := m.Next(text, from)
		if ok != (i < len(want)) || ok && want[i] != (Span{start, end}) {
			t.Fatalf("Next of %q (%+v) in %q from %d: %d, %d, %v, want match %d of %v", expr, o, text, from, start, end, ok, i, want)
		}
		from = max(end, start+1)
	}
}

func FuzzMatch_agreesWithRegexp(f *testing.F) {
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
