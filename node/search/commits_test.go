package search

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node/history"
	"github.com/shoalsearch/shoal/shard/change"
)

// A node tells the first commits of all repositories, also where all commits have one time.
func TestTrimCommits_keepsTheFirstOfAllRepositories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		limit, times, n := 1+r.IntN(5), 1+r.IntN(20), 1+r.IntN(30)
		names, parts := make([]string, n), make([]commitsPart, n)
		var all []string
		for i := range n {
			names[i] = fmt.Sprintf("repo%02d", r.IntN(100)*100+i)
			for range r.IntN(2 * limit) {
				c := change.CommitMatch{ID: fmt.Sprintf("%03d", r.IntN(1000)), Score: r.IntN(2), CommitTime: time.Unix(int64(r.IntN(times)), 0)}
				parts[i].Commits = append(parts[i].Commits, c)
				all = append(all, keyOf(names[i], &c))
			}
			slices.SortFunc(parts[i].Commits, func(a, b change.CommitMatch) int { return inOrder(&a, &b, "", "") })
		}
		trimCommits(parts, names, limit)

		var got []string
		for i, p := range parts {
			for _, c := range p.Commits {
				got = append(got, keyOf(names[i], &c))
			}
		}
		slices.Sort(got)
		slices.Sort(all)
		if want := all[:min(len(all), limit)]; !slices.Equal(got, want) {
			t.Fatalf("seed %d: %q, want %q", seed, got, want)
		}
	}
}

// keyOf sorts as an answer does.
func keyOf(repo string, c *change.CommitMatch) string {
	return fmt.Sprintf("%02d %03d %s %s", 9-c.Score, 999-c.CommitTime.Unix(), repo, c.ID)
}

// A node that ran out of time is named as the reason, unless another one has more.
func TestCommitsPart_theBetterOneIsKept(t *testing.T) {
	t.Parallel()
	late, partial, whole := commitsPart{Late: true}, commitsPart{State: history.Partial}, commitsPart{State: history.Whole}
	for _, c := range []struct {
		known, other commitsPart
		why          string
	}{
		{commitsPart{}, late, "the time was over"},
		{late, partial, "older commits are not indexed"},
		{partial, late, "older commits are not indexed"},
		{late, commitsPart{}, "the time was over"},
	} {
		part := better(c.known, c.other)
		if _, lack := part.lack(); lack.Why != c.why {
			t.Errorf("%+v and %+v: %s, want %s", c.known, c.other, lack.Why, c.why)
		}
	}
	if better(late, whole).State != history.Whole {
		t.Error("a whole part does not replace a late one")
	}
}
