package tool

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/browse"
)

func TestGrepPattern_classesDoNotMatchNewlines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, want string
		over          bool
	}{
		{`^\s*(rpc|service) \w+`, `(?m:^[\t\f\r ]*(rpc|service) [0-9A-Z_a-z]+)`, false},
		{`a[^x]b`, `a[^\nx]b`, false},
		{`\W\D`, `[^\n0-9A-Z_a-z][^\n0-9]`, false},
		{`[^\n]*\s`, `[^\n]*[\t\f\r ]`, false},
		{`[^]\n]\s`, `[^\n\]][\t\f\r ]`, false},
		{`[[:space:]]`, `[\t\v-\r ]`, false},
		{`\Qa\n\E\s`, `a\\n[\t\f\r ]`, false},
		{`\\n\s`, `\\n[\t\f\r ]`, false},
		{`plain.*\w$`, `plain.*\w$`, false}, // nothing to lose
		{`(?-s)plain\s`, `plain[\t\f\r ]`, false},
		{`(?i-s:plain)[^x]`, `(?i:PLAIN)[^\nx]`, false},
		{`[(?s)]\s`, `[\(\)\?s][\t\f\r ]`, false},
		{`\(?s\)\s`, `\(?s\)[\t\f\r ]`, false},

		{`{\n\s*}`, ``, true},
		{"a\n\\s", ``, true},
		{`a\x0a\s`, ``, true},
		{`a\x{a}\s`, ``, true},
		{`a\012\s`, ``, true},
		{`a\r?\s`, ``, true},
		{`[\s\n]`, ``, true},
		{`[]\n]\s`, ``, true},
		{`(?s)a.b\s`, ``, true},
		{`(?s)plain\s`, ``, true},
		{`a(?is-m:b)[^x]`, ``, true},
		{`a[^x](?s)`, ``, true},
		{`[\s\S]\s`, ``, true},
		{`(.|\s)x`, ``, true},
		{`a(`, ``, true},
		{strings.Repeat(`[^\pL]`, 3), ``, true}, // too long when written out
	} {
		want := tt.want
		if tt.over {
			want = tt.pattern
		}
		if got, over := withinLine(tt.pattern); got != want || over != tt.over {
			t.Errorf("%s: %s, over lines %v, want %s, %v", tt.pattern, got, over, want, tt.over)
		}
	}
}

// matchedByText is the numbers of the lines of a text that a pattern matches in,
// searched as a whole.
func matchedByText(re *regexp.Regexp, text string) (lines []int) {
	for _, m := range re.FindAllStringIndex(text, -1) {
		for n := strings.Count(text[:m[0]], "\n"); n <= strings.Count(text[:m[1]], "\n"); n++ {
			if !slices.Contains(lines, n) {
				lines = append(lines, n)
			}
		}
	}
	return lines
}

// FuzzGrepPattern_matchesWithinOneLineOnly holds the pattern that is searched to what the caller's finds in
// each line alone.
func FuzzGrepPattern_matchesWithinOneLineOnly(f *testing.F) {
	text := "service A {\n\n  rpc B\n\t\n x\r\n\r\n}\nab\n"
	for _, pattern := range []string{`^\s*(rpc|service) \w+`, `\s+`, `[^x]+`, `\W`, `(?i)X\D*`, `[[:^alpha:]]\s`, `^\s*$`, `[^\n]\s`, `\PL`, `(a|\s)*b`, `\bx\B`, `[^a-]`, `(?i)[\Wk]`, `(?U)\s+x`, `(?-s)a.\s`} {
		f.Add(pattern, text)
	}

	f.Fuzz(func(t *testing.T, pattern, text string) {
		// The start and the end of a text are no place of a line.
		if len(pattern) > 100 || len(text) > 1000 || strings.Contains(pattern, `\A`) || strings.Contains(pattern, `\z`) || strings.Contains(pattern, `(?`) && strings.Contains(pattern, "m") {
			return
		}
		naive, err := regexp.Compile("(?m)" + pattern)
		expr, over := withinLine(pattern)
		if err != nil || over {
			return
		}
		re, err := regexp.Compile("(?m)" + expr)
		if err != nil {
			t.Fatalf("%s is searched as %s: %v", pattern, expr, err)
		}

		var want []int
		for n, line := range strings.Split(text, "\n") {
			if naive.MatchString(line) {
				want = append(want, n)
			}
		}
		if got := matchedByText(re, text); !slices.Equal(got, want) {
			t.Errorf("%q, searched as %q, in %q: lines %v, want %v", pattern, expr, text, got, want)
		}
	})
}

// TestGrepPattern_countsMatchesOverSeveralLines counts what RE2 finds and the rule of lines does not,
// and holds the advised pattern to what RE2 finds.
func TestGrepPattern_countsMatchesOverSeveralLines(t *testing.T) {
	t.Parallel()
	text := "class A\n  : B {\nclass C : B {\n\n  def x\n\"k\": {\n a,\n b }\nfoo =\n  1\nend"
	for _, tt := range []struct {
		pattern string
		hidden  int
	}{
		{`class \w+[^{]*: B`, 1},
		{`class \w+\s+: B`, 1},
		{`class \w+\W+B \{`, 1},
		{`"k": \{[^}]*b`, 1},
		{`foo\s*=\s*\d`, 1},
		{`foo =[^x]`, 1},
		{`class[^{]*`, 1}, // the second line of the first is not shown
		{`^\s*def`, 0},
		{`\{\s+def`, 1},
		{`foo =\s*$`, 0},
		{`def x\s*`, 0},
		{`[^z]+`, 0},
		{`class .[^{]*: B`, 1},
		{`end[^x]*`, 0},
		{`zzz[^x]`, 0},
	} {
		expr, over := withinLine(tt.pattern)
		if over {
			t.Fatalf("%s is searched over lines", tt.pattern)
		}
		written, within := regexp.MustCompile("(?m)"+tt.pattern), regexp.MustCompile("(?m)"+expr)
		var lines []browse.Line
		for _, n := range matchedByText(written, text) {
			lines = append(lines, browse.Line{Number: n + 1, Text: []byte(strings.Split(text, "\n")[n])})
		}
		got := hiddenIn(lines, written, within)
		if got != tt.hidden || got > 0 && !hidesMatches(tt.pattern) {
			t.Errorf("%s: %d hidden, want %d; hides %v", tt.pattern, got, tt.hidden, hidesMatches(tt.pattern))
		}
		advised := regexp.MustCompile("(?m)" + overPattern(tt.pattern))
		if a, b := advised.FindAllString(text, -1), written.FindAllString(text, -1); !slices.Equal(a, b) {
			t.Errorf("%s: the advised pattern finds %q, want %q", tt.pattern, a, b)
		}
		if _, over := withinLine(overPattern(tt.pattern)); !over {
			t.Errorf("%s: the advised pattern stays within lines", tt.pattern)
		}
	}
}
