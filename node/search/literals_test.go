package search

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// Every text that an expression matches has the literals of the expression.
func TestLiteralsOf_standInEveryMatch(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "b", "ab", "/", "x1", "^", "$", ".", ".*", "(a|b)", "[ab]", "b?", "a+", "(?i)", "(?:ab)", "a{2}", "\\x{FFFD}", "(^)", "|"}
	letters := []string{"a", "b", "B", "x1", "/", "\xff", "\n"}
	choose := func(from []string, most int) string {
		var b strings.Builder
		for range rng.IntN(most) {
			b.WriteString(from[rng.IntN(len(from))])
		}
		return b.String()
	}

	matches := 0
	for range 20_000 {
		pattern, name := choose(parts, 6), choose(letters, 9)
		re, err := regexp.Compile(pattern)
		if err != nil || !re.MatchString(name) {
			continue
		}
		matches++
		prefix, contained := literalsOf(pattern)
		if !strings.HasPrefix(name, prefix) {
			t.Fatalf("%q matches %q, which does not begin with %q", pattern, name, prefix)
		}
		for _, c := range contained {
			if !strings.Contains(name, c) {
				t.Fatalf("%q matches %q, which does not contain %q", pattern, name, c)
			}
		}
	}
	if matches < 2000 {
		t.Fatalf("only %d expressions match", matches)
	}

	if prefix, contained := literalsOf(`^gitea/r1.*-api$`); prefix != "gitea/r1" || strings.Join(contained, " ") != "gitea/r1 -api" {
		t.Errorf("the literals are %q and %q", prefix, contained)
	}
}
