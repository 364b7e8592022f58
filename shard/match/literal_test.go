package match

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func spans(text []byte, next func(text []byte) (int, int)) []Span {
	var out []Span
	for at := 0; ; {
		s, e := next(text[at:])
		if s < 0 {
			return out
		}
		out = append(out, Span{at + s, at + e})
		at += e
	}
}

func checkLiteral(t interface {
	Helper()
	Fatalf(string, ...any)
}, pattern string, fold bool, text []byte) {
	t.Helper()
	m, err := Compile(pattern, Options{Literal: true, Fold: fold})
	if err != nil {
		t.Fatalf("Compile(%q): %v", pattern, err)
	}
	next := func(b []byte) (int, int) {
		i := bytes.Index(b, []byte(pattern))
		return i, i + len(pattern)
	}
	if fold {
		re := regexp.MustCompile("(?i)" + regexp.QuoteMeta(pattern))
		next = func(b []byte) (int, int) {
			if loc := re.FindIndex(b); loc != nil {
				return loc[0], loc[1]
			}
			return -1, -1
		}
	}
	want := spans(text, next)
	got := m.Append(nil, text, -1)
	if len(got) != len(want) || m.Count(text) != len(want) || m.Matches(text) != (len(want) > 0) {
		t.Fatalf("literal %q (fold %v) in %q: %v, want %v", pattern, fold, text, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("literal %q (fold %v) in %q: %v, want %v", pattern, fold, text, got, want)
		}
	}
}

func FuzzMatch_literalsAgreeWithASimpleSearch(f *testing.F) {
	f.Add("abc", []byte("xabcABCabKabc"))
	f.Add("risk", []byte("RIſ\u212a risk rISk"))
	f.Add("sk", []byte("\u017f\u212aSKsk"))
	f.Add("\n}\n", []byte("\n}\n}\n"))
	f.Add("é", []byte("Éé\xc3\xa9\xc3"))
	f.Add("\x00", []byte("\x00\x00a"))
	f.Fuzz(func(t *testing.T, pattern string, text []byte) {
		if pattern == "" || len(pattern) > 300 || len(text) > 20000 {
			return
		}
		checkLiteral(t, pattern, false, text)
		if utf8.ValidString(pattern) && !strings.ContainsRune(pattern, utf8.RuneError) {
			checkLiteral(t, pattern, true, text)
		}
	})
}

func TestLiteral_isFoundInLongTexts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		alphabet := rapid.SampledFrom([]string{"ab", "abAB\n", "kKsſ\u212ax", "é\x80a"}).Draw(t, "alphabet")
		letters := []rune(alphabet)
		word := func(name string, least, most int) string {
			return string(rapid.SliceOfN(rapid.SampledFrom(letters), least, most).Draw(t, name))
		}
		pattern := word("pattern", 1, 12)
		unit := word("unit", 1, 40)
		text := []byte(strings.Repeat(unit, rapid.IntRange(1, 200).Draw(t, "times")) + word("end", 0, 70))
		if n := rapid.IntRange(0, len(text)).Draw(t, "cut"); utf8.ValidString(pattern) {
			text = append(text[:n:n], []byte(pattern+string(text[n:]))...)
		}
		checkLiteral(t, pattern, false, text)
		if !strings.ContainsRune(pattern, utf8.RuneError) {
			checkLiteral(t, pattern, true, text)
		}
	})
}

// TestLiteral_withLineAnchorsIsFoundAtLineBorders puts lines at the borders of windows and texts.
func TestLiteral_withLineAnchorsIsFoundAtLineBorders(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{`^}$`, `^}`, `}$`, `(?i)^ab$`, `^a}`, `\b^}$`, `^}$\b`, `^^}$$`, `\A}$`, `^}\z`, `^k$`} {
		m, err := Compile(expr, Options{})
		if err != nil {
			t.Fatal(err)
		}
		re := regexp.MustCompile("(?m:" + expr + ")")
		for _, line := range []string{"}", "ab", "AB", "a}", "}}", "k", ""} {
			for n := range 330 {
				text := []byte(strings.Repeat("x", n) + "\n" + line + "\n" + strings.Repeat("}\nab\n", n%7) + line)
				text = text[n%3*min(1, n):]
				want := re.FindAllIndex(text, -1)
				got := m.Append(nil, text, -1)
				if len(got) != len(want) {
					t.Fatalf("%s in %q: %v, want %v", expr, text, got, want)
				}
				for i := range got {
					if got[i].Start != want[i][0] || got[i].End != want[i][1] {
						t.Fatalf("%s in %q: %v, want %v", expr, text, got, want)
					}
				}
			}
		}
	}
}
