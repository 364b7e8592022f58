package search

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// No text that an expression matches is taken for one that it cannot match.
func TestLiteralsOf_areContainedInEveryMatch(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "B", "aB", "/", "s1", "k", "^", "$", ".", ".*", "(a|b)", "[ab]", "b?", "a+", "(?i)", "(?-i)", "(?:ab)", "a{2}", "\\x{FFFD}", "é", "(^)", "|"}
	letters := []string{"a", "A", "b", "B", "s1", "ſ1", "k", "\u212a", "É", "/", "\xff", "\n"}
	choose := func(from []string, most int) string {
		var b strings.Builder
		for range rng.IntN(most) {
			b.WriteString(from[rng.IntN(len(from))])
		}
		return b.String()
	}

	matches, spared := 0, 0
	for range 20_000 {
		pattern, text := choose(parts, 6), choose(letters, 9)
		re, err := regexp.Compile(pattern)
		if err != nil {
			continue
		}
		may := mayMatch(text, literalsOf(pattern))
		if re.MatchString(text) {
			matches++
			if !may {
				t.Fatalf("%q matches %q, of which its literals %q say that it cannot", pattern, text, literalsOf(pattern))
			}
		} else if !may {
			spared++
		}
	}
	if matches < 2000 || spared < 2000 {
		t.Fatalf("%d expressions match, %d need not be tried: want 2000 of each", matches, spared)
	}

	if got := literalsOf(`^gitea/R1.*-api$`); strings.Join(got, " ") != "gitea/r1 -api" {
		t.Errorf("the literals are %q", got)
	}
}
