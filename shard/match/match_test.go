package match

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestCount_includesMatchesAcrossLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expr, text string
		want       int
	}{
		{`^$`, "a\n\nb\n\n", 2},
		{`^$`, "", 0},
		{`^`, "a\n\nb", 3},
		{`$`, "a\n\nb\n", 3},
		{`a*`, "baac", 1},
		{`^a`, "a\nba\na", 2},
		{`a.b`, "a\nb", 0},
		{`a\nb`, "a\nb", 1},
	} {
		m, err := Compile(c.expr, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Count([]byte(c.text)); got != c.want {
			t.Errorf("Count(%q, %q) = %d, want %d", c.expr, c.text, got, c.want)
		}
	}
}

func TestStopMatcher_makesItsSearchReturnEarly(t *testing.T) {
	t.Parallel()
	m, err := Compile(`(a|b)+c(d|e)?.f`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("abcdxf aacxf")
	if n := m.Count(text); n != 2 {
		t.Fatalf("Count = %d, want 2", n)
	}
	fresh, err := Compile(`(a|b)+c(d|e)?.f`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	fresh.Stop()
	if fresh.Matches(text) || fresh.Count(text) != 0 || fresh.Append(nil, text, -1) != nil {
		t.Error("a stopped matcher went on to work out new states")
	}
}

func TestMatcher_limitsItsStates(t *testing.T) {
	t.Parallel()
	// Each byte leads to a new state: a state says which of the last 14 letters were an a.
	m, err := Compile(`a[ab]{14}c`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 200_000)
	x := uint32(1)
	for i := range text {
		x = x*1664525 + 1013904223
		text[i] = 'a' + byte(x>>31)
	}
	copy(text[150_000:], "abbbbbbbbbbbbbbc")
	want := twin(t, `a[ab]{14}c`, Options{}, text)
	got := m.Append(nil, text, -1)
	if len(got) != len(want) || len(got) != 1 || got[0] != want[0] {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestStopMatcher_doesNotStopOtherMatchers(t *testing.T) {
	t.Parallel()
	m, err := Compile(`[a-z]+x[0-9]`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("one line\nand abcx1 in another\n")
	twin := m.Again()
	twin.Append(nil, text, -1)
	twin.Stop()
	if got := m.Append(nil, text, -1); len(got) != 1 || got[0] != (Span{13, 18}) {
		t.Errorf("after its twin was stopped: %v", got)
	}
}

// Matches are rare, cross the border of two windows, or lie at it: a program skips windows that
// cannot match.
func TestMatch_isFoundAcrossWindowBorders(t *testing.T) {
	t.Parallel()
	exprs := []string{
		`^[A-Z][a-z]+ [a-z]+ [a-z]+`, `[A-Z][a-z]{3}[0-9]+`, `\b[A-Z]+[0-9]{8}\b`, `([A-Z][a-z]+)(=|:)[^ \n]+`, `[A-Z]+(\n[a-z]+)+[0-9]`,
		`[A-Z]\b`, `[0-9][A-Z][a-z]*$`, `^[A-Z]*[0-9]$`, `(?s)[A-Z].[0-9].[A-Z]`, `[A-Z][^;]+;`, `[A-Zé][a-zü]+ß?[0-9]`, `([A-Z]|[0-9][a-z])[a-z]+[0-9]`,
	}
	parts := []string{"\n", " ", "Abc de fgh", "Word123", "A12345678", "Key=value", "Key:", "UP\nlow\nlow7", "\nX9", "7Zed\n", "A-1-B", "Start of it ;", "Éü9", "9abc7", "Zzzz", "q"}
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 300 {
		filler := []byte{'a', '-', '\n', ' '}[round%4]
		text := bytes.Repeat([]byte{filler}, 64*(1+rng.IntN(250))+rng.IntN(64))
		for range rng.IntN(5) {
			at := rng.IntN(len(text))
			if rng.IntN(3) > 0 {
				at = max(0, at&^63-rng.IntN(12)) // near a border
			}
			copy(text[at:], parts[rng.IntN(len(parts))])
		}
		for _, expr := range exprs {
			m, err := Compile(expr, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := m.Append(nil, text, -1), twin(t, expr, Options{}, text); !slices.Equal(got, want) {
				t.Fatalf("round %d, %s: %v, want %v", round, expr, got, want)
			}
		}
	}
}

func TestSpansLines_recognizesExpressionsThatMatchANewline(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]bool{`a.b`: false, `(?s:a.b)`: true, `"[^"]{60,}"`: true, `[^ \n]+`: false, `\s+$`: true, `^$`: false, `a\nb`: true, `\w+`: false} {
		if got, err := SpansLines(expr); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", expr, got, err, want)
		}
	}
}

func TestMatchNames_treatsANameAsOneLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expr, name string
		want       bool
	}{
		{`^line`, "new\nline.txt", false}, {`new$`, "new\nline.txt", false}, {`^[^/]*$`, "d/new\nline.txt", false}, {`^new.line\.txt$`, "new\nline.txt", true},
		{`\.txt$`, "a.txt\r", false}, {`^a$`, "a", true}, {`^`, "a\nb", true}, {`$`, "a\nb", true}, {`$`, "a\n", true}, {`^`, "\na", true}, {`\b`, "\n\na", true}, {`\b`, "\n", false}, {`(?m)^b`, "a\nb", true},
	} {
		m, err := Compile(c.expr, Options{Names: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, ok := m.Next([]byte(c.name), 0); ok != c.want {
			t.Errorf("%q matches %q: %v", c.expr, c.name, ok)
		}
	}
}
