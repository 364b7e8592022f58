package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/trigram"
)

// TestCandidates_repeatedSearchGivesTheSameAnswer runs random queries on a fresh set and, from
// several goroutines, on a set that has answered all of them before.
func TestCandidates_repeatedSearchGivesTheSameAnswer(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(31, 4))
	w := randomWorld(r)
	dir := t.TempDir()
	known, parts := w.built(t, dir, false, BuildOptions{})
	type asked struct {
		r    Request
		want []File
	}
	var all []asked
	for range 2 * maxCachedFormulas {
		q := query.Q(&query.Text{Pattern: words[r.IntN(len(words))], Fold: r.IntN(2) == 0})
		if r.IntN(3) == 0 {
			q = &query.And{Subs: []query.Q{q, &query.Text{Pattern: `[a-z]+_?` + words[r.IntN(5)], Regexp: true}}}
		}
		fresh, err := OpenSet(dir, SetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		v, _ := fresh.Acquire(parts)
		a := asked{r: Request{Q: q, CountAll: r.IntN(2) == 0, MaxMatches: 1 + r.IntN(20)}}
		res, err := v.Search(context.Background(), a.r)
		if err != nil {
			t.Fatal(err)
		}
		a.want = res.Files
		all = append(all, a)
		v.Release()
		_ = fresh.Close()
	}
	v, _ := known.Acquire(parts)
	defer v.Release()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for _, a := range slices.Concat(all, all) {
				res, err := v.Search(context.Background(), a.r)
				if err != nil || !reflect.DeepEqual(res.Files, a.want) {
					t.Errorf("%s: %d files, not %d; %v", a.r.Q, len(res.Files), len(a.want), err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestCandidates_cacheStaysWithinItsLimits(t *testing.T) {
	t.Parallel()
	var c candidates
	var formulas []*trigram.Formula
	for i := range 3 * maxCachedFormulas {
		f := trigram.FromLiteral(fmt.Sprintf("word%d", i), false)
		formulas = append(formulas, f)
		n := namedUnits{formula: f, rows: make([]uint32, i%200)}
		c.put(n, 1000)
		c.put(n, 1000)
		sum := 0
		for _, k := range c.entries {
			sum += len(k.rows)
		}
		if sum != c.rows || sum > 1000 || len(c.entries) > maxCachedFormulas {
			t.Fatalf("%d formulas with %d rows, counted %d", len(c.entries), sum, c.rows)
		}
		if rows, ok := c.get(f); !ok || len(rows) != i%200 {
			t.Fatalf("the last one has %d rows, %v", len(rows), ok)
		}
	}
	if _, ok := c.get(formulas[0]); ok {
		t.Fatal("the first is kept forever")
	}
}
