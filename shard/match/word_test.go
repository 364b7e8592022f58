package match

import (
	"slices"
	"testing"
)

func TestWordOption_matchesOnlyWholeWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expr, text string
		literal    bool
		want       []Span
	}{
		// A letter, a mark or a digit of any script belongs to a word.
		{"caf", "café caf", true, []Span{{6, 9}}},
		{"café", "un café noir", true, []Span{{3, 8}}},
		{"cafe", "cafe\u0301 cafe", true, []Span{{7, 11}}},
		{"Gr", "Größe Gr", true, []Span{{8, 10}}},
		{"λόγος", "λόγος, λόγοςα", true, []Span{{0, 10}}},
		{"мир", "мир мира кумир", true, []Span{{0, 6}}},
		{"検索", "検索 する。検索する", true, []Span{{0, 6}}},
		{"de", "1de de٣ de", true, []Span{{9, 11}}},
		{"x", "x² x_ _x x", true, []Span{{10, 11}}},

		// A word may begin and end with a sign.
		{"$x", "$x $$x a$x $xy", true, []Span{{0, 2}, {4, 6}}},
		{"operator+=", "operator+=(a) myoperator+=", true, []Span{{0, 10}}},
		{"-Wall", "cc -Wall -Wallx x-Wall", true, []Span{{3, 8}}},
		{"@foo", "@foo a@foo @foo.bar", true, []Span{{0, 4}, {11, 15}}},
		{"C++", "C++ C++11 (C++)", true, []Span{{0, 3}, {11, 14}}},
		{"#include", "#include #includes", true, []Span{{0, 8}}},
		{"foo()", "foo() foo()x", true, []Span{{0, 5}}},

		// Bytes that are not UTF-8 belong to no word, and half a letter is no letter.
		{"a", "\xc3a a\xe6\xa4 \xa4a", true, []Span{{1, 2}, {3, 4}, {8, 9}}},

		// An expression takes the first alternative that ends a word.
		{"a|ab", "ab a", false, []Span{{0, 2}, {3, 4}}},
		{"a|aé", "aé a", false, []Span{{0, 3}, {4, 5}}},
		{"[a-z]+?", "abc é de", false, []Span{{0, 3}, {7, 9}}},
		{`\w+`, "größe naïve x", false, []Span{{15, 16}}},
		{`\pL+`, "größe 検索 x1", false, []Span{{0, 7}, {8, 14}}},
		{`[0-9]{2}`, "12 123 é12 12", false, []Span{{0, 2}, {12, 14}}},
		{`a*`, "aa aaé a", false, []Span{{0, 2}, {8, 9}}},
		{`(|a)b?`, "ab b", false, []Span{{0, 2}, {3, 4}}},
		{`^a$`, "a\nab\na", false, []Span{{0, 1}, {5, 6}}},
	} {
		m, err := Compile(c.expr, Options{Literal: c.literal, WordBegins: true, WordEnds: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Append(nil, []byte(c.text), -1); !slices.Equal(got, c.want) {
			t.Errorf("%q in %q: %v, want %v", c.expr, c.text, got, c.want)
		}
	}
}
