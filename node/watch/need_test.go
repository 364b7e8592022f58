package watch

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/shard/query"
)

// What the literals rule out has no match, and they rule out most of what has none. Texts and patterns
// are random; an expression decides.
func TestNeeds_areMetByEachTextThatMatches(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 5))
	words := []string{"alpha", "Beta", "get", "getName", "kilo", "\u212ailo", "ſet", "Set", "naïve", "NAÏVE", "ab", "x\ny", "delta_4", "k"}
	pick := func() string { return words[rnd.IntN(len(words))] }
	without, ruledOut := 0, 0
	for range 400 {
		table := newNeeds()
		var texts []*query.Text
		var conditions []*need
		for range 20 {
			x := &query.Text{Fold: rnd.IntN(2) == 0, Regexp: rnd.IntN(2) == 0, Pattern: pick() + pick()}
			if x.Regexp {
				x.Pattern = fmt.Sprintf([]string{"%s.*%s", "(%s|%s)", "%s+%s?", "(?:%s){2}|%s", "^%s$|%s", "%s[a-c]*%s", "(?i:%s)%s"}[rnd.IntN(7)], regexp.QuoteMeta(pick()), regexp.QuoteMeta(pick()))
			}
			texts, conditions = append(texts, x), append(conditions, table.add(x))
		}
		var text strings.Builder
		for range 1 + rnd.IntN(12) {
			text.WriteString(pick() + []string{"", " ", "\n", "("}[rnd.IntN(4)])
		}
		found := table.findings()
		found.add([]byte(text.String()))
		for i, x := range texts {
			pattern := x.Pattern
			if !x.Regexp {
				pattern = regexp.QuoteMeta(pattern)
			}
			if x.Fold {
				pattern = "(?i)" + pattern
			}
			matches, met := regexp.MustCompile("(?m)"+pattern).MatchString(text.String()), found.meet(conditions[i])
			if matches && !met {
				t.Errorf("%q matches %q (fold: %t) and is ruled out", text.String(), x.Pattern, x.Fold)
			}
			if !matches {
				without++
				if !met {
					ruledOut++
				}
			}
		}
	}
	if ruledOut < without/3 {
		t.Errorf("%d of %d questions without a match are ruled out, want a third", ruledOut, without)
	}
}

// The parts of an "and" may be met by different texts, and what is no text is always met.
func TestNeeds_ofQueries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		query string
		want  bool
	}{
		{"type:diff added:alpha removed:beta", true},
		{"type:diff added:alpha removed:gamma", false},
		{"type:commit (gamma or alpha)", true},
		{"type:commit (gamma or delta)", false},
		{"type:commit -gamma", true},
		{"type:commit author:ann", true},
		{"gamma or lang:go", true},
		{"al", true},
		{"sym:alpha", true},
		{"sym:gamma", false},
	} {
		parsed, err := query.Parse(c.query, query.Options{})
		if err != nil {
			t.Fatal(err)
		}
		table := newNeeds()
		n := table.add(parsed.Q)
		found := table.findings()
		for _, text := range []string{"one alpha", "two Beta", "Ann <ann@example.com>"} {
			found.add([]byte(text))
		}
		if got := found.meet(n); got != c.want {
			t.Errorf("%s: %t, want %t", c.query, got, c.want)
		}
	}
}
