package match

import (
	"slices"
	"strings"
	"testing"
)

// An expression with $ finds the same in lines that end in "\n" and in "\r\n", and its matches
// never contain the "\r".
func TestMatch_findsTheSameWithCRLFLineEnds(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		`needle$`:         "needle,needle",
		`^needle$`:        "needle",
		`^$`:              ",",
		`[a-z]+$`:         "needle,needle,b,c,d",
		`e.*$`:            "eedle,eedle b needle",
		`b$\nc`:           "b\nc",
		`(b|c)$`:          "b,c",
		`^[a-d]$\n^[a-d]`: "b\nc",
		`[a-z]{3,}$`:      "needle,needle",
		`(needle|d)$`:     "needle,needle,d",
		`\bneedle\b$`:     "needle,needle",
		`d(;|$)`:          "d",
		`x*$`:             "",
		`x|$`:             "",
	} {
		m, err := Compile(expr, Options{})
		if err != nil {
			t.Fatal(err)
		}

		// The last line has no line end. Two lines in between are empty.
		lines := []string{"needle", "", "needle b needle", "b", "c", "", "d"}
		for _, end := range []string{"\n", "\r\n"} {
			text := strings.Join(lines, end)
			var got []string
			for _, sp := range m.Append(nil, []byte(text), -1) {
				got = append(got, strings.ReplaceAll(text[sp.Start:sp.End], "\r", ""))
			}
			if s := strings.Join(got, ","); s != want {
				t.Errorf("%q with line ends %q: %q, want %q", expr, end, s, want)
			}
			if n := m.Count([]byte(text)); n != len(got) {
				t.Errorf("%q with line ends %q: counted %d, found %d", expr, end, n, len(got))
			}
			if m.Matches([]byte(text)) != (len(got) > 0) {
				t.Errorf("%q with line ends %q: Matches differs from Append", expr, end)
			}
		}
	}
}

// A "\r" in the expression, or one that does not end a line, is an ordinary byte.
func TestMatch_carriageReturnInAPatternIsAnOrdinaryByte(t *testing.T) {
	t.Parallel()
	text := []byte("a\rb\r\nc\r")
	for expr, want := range map[string][]Span{
		`a\r`: {{0, 2}},
		`\r$`: {{3, 4}, {6, 7}},
		`b\r`: {{2, 4}},
		`a$`:  nil,
		`c$`:  nil,
		`a.`:  {{0, 2}},
	} {
		m, err := Compile(expr, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Append(nil, text, -1); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", expr, got, want)
		}
	}
}

// A newline in a pattern matches both line ends, and nothing else reads the "\r" of a line end.
func TestMatch_newlineInAPatternMatchesCRLF(t *testing.T) {
	t.Parallel()
	text := []byte("a\r\n\r\nb\nc\rd\r\n")
	for _, c := range []struct {
		expr string
		o    Options
		want []Span
	}{
		{"a\n\nb", Options{Literal: true}, []Span{{0, 6}}},
		{"A\n\nB\nC", Options{Literal: true, Fold: true}, []Span{{0, 8}}},
		{"\n\n", Options{Literal: true}, []Span{{1, 5}}},
		{"\nb", Options{Literal: true}, []Span{{3, 6}}},
		{"a\n", Options{Literal: true, WordBegins: true, WordEnds: true}, []Span{{0, 3}}},
		{"a\r\n", Options{Literal: true}, []Span{{0, 3}}},
		{"\r", Options{Literal: true}, []Span{{1, 2}, {3, 4}, {8, 9}, {10, 11}}},
		{`a\n\nb`, Options{}, []Span{{0, 6}}},
		{`a(\r?\n)+b`, Options{}, []Span{{0, 6}}},
		{`a\r\n`, Options{}, []Span{{0, 3}}},
		{`\n.+\n`, Options{}, []Span{{3, 7}}},
		{`^.`, Options{}, []Span{{0, 1}, {5, 6}, {7, 8}}},
		{`^[^\n]+$`, Options{}, []Span{{0, 1}, {5, 6}, {7, 10}}},
		{`[^ab]+`, Options{}, []Span{{1, 5}, {6, 12}}},
		{`.*`, Options{}, []Span{{0, 1}, {5, 6}, {7, 10}}},
		{`d\s`, Options{}, []Span{{9, 12}}},
		{`^$`, Options{}, []Span{{3, 3}}},
	} {
		m, err := Compile(c.expr, c.o)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Append(nil, text, -1); !slices.Equal(got, c.want) {
			t.Errorf("%q %+v: %v, want %v", c.expr, c.o, got, c.want)
		}
	}
}
