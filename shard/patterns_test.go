package shard

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
)

// TestCompiledPatterns_areCached compiles the same pattern twice: compiled data is shared, the stop
// is not, and other options make another pattern.
func TestCompiledPatterns_areCached(t *testing.T) {
	t.Parallel()
	var k patterns
	get := func(q query.Text) *pattern {
		t.Helper()
		p, err := k.compile(q)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	q := query.Text{Pattern: `f[o0]+.*\d{30}`, Regexp: true}
	first, second := get(q), get(q)
	if first == second || first.formula != second.formula {
		t.Fatal("the pattern was compiled twice, or one is used by two searches")
	}
	first.positive = true
	first.m.Stop()
	text := []byte(strings.Repeat("foo ", 10_000) + strings.Repeat("7", 30))
	if spans := second.m.Append(nil, text, -1); len(spans) != 1 || second.positive {
		t.Fatalf("%d spans after another search was stopped", len(spans))
	}
	fold := q
	fold.Fold = true
	if third := get(fold); third.formula == first.formula || !third.m.Matches([]byte("F0 "+strings.Repeat("7", 30))) {
		t.Fatal("with other options it is another pattern")
	}
	if _, err := k.compile(query.Text{Pattern: "(", Regexp: true}); err == nil {
		t.Fatal("a bad expression compiles")
	}
	long := query.Text{Pattern: strings.Repeat("x", maxCachedPatternBytes+1)}
	if once, again := get(long), get(long); once.formula == again.formula {
		t.Fatal("a long pattern is kept")
	}
}

// TestCompiledPatterns_cacheStaysWithinItsLimit compiles more patterns than are cached, from
// several goroutines. The oldest are dropped, and every result is right.
func TestCompiledPatterns_cacheStaysWithinItsLimit(t *testing.T) {
	t.Parallel()
	var k patterns
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 3 * maxCachedPatterns {
				word := fmt.Sprintf("word%d", (i*7+g)%(2*maxCachedPatterns))
				p, err := k.compile(query.Text{Pattern: word})
				if err != nil {
					t.Error(err)
					return
				}
				if got := p.m.Append(nil, []byte("a "+word), -1); len(got) != 1 || got[0] != (match.Span{Start: 2, End: 2 + len(word)}) {
					t.Errorf("%s: %v", word, got)
					return
				}
			}
		})
	}
	wg.Wait()
	if len(k.byText) != maxCachedPatterns || len(k.ring) != maxCachedPatterns {
		t.Fatalf("%d patterns are kept", len(k.byText))
	}
	for _, q := range k.ring {
		if k.byText[q] == nil {
			t.Fatalf("%v is in the list only", q)
		}
	}
}
