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

// A node keeps what may be among the first of all repositories, and no more than twice the limit on
// the way, also where all commits have one time.
func TestToldCommits_areTheFirstOfAllRepositories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		limit, times, n := 1+r.IntN(5), 1+r.IntN(20), 1+r.IntN(30)
		told := &toldCommits{names: make([]string, n), parts: make([]commitsPart, n), limit: limit}
		var all []string
		for i := range n {
			told.names[i] = fmt.Sprintf("repo%02d", r.IntN(100)*100+i)
			var part commitsPart
			for range r.IntN(2 * limit) {
				c := change.CommitMatch{ID: fmt.Sprintf("%03d", r.IntN(1000)), Score: r.IntN(2), CommitTime: time.Unix(int64(r.IntN(times)), 0)}
				part.Commits = append(part.Commits, c)
				all = append(all, keyOf(told.names[i], &c))
			}
			slices.SortFunc(part.Commits, func(a, b change.CommitMatch) int { return inOrder(&a, &b, "", "") })
			part.Commits = part.Commits[:min(len(part.Commits), limit)] // as a log does

			// What a log would not tell is behind the worst.
			worst := told.worst()
			part.Commits = slices.DeleteFunc(part.Commits, func(c change.CommitMatch) bool {
				return worst != change.Place{} && (c.Score < worst.Score || c.Score == worst.Score && c.CommitTime.Unix() < worst.Time)
			})
			told.add(i, part)
			if told.kept > 2*limit {
				t.Fatalf("seed %d: %d commits are kept, the limit is %d", seed, told.kept, limit)
			}
		}
		told.trim()

		var got []string
		for i, p := range told.parts {
			for _, c := range p.Commits {
				got = append(got, keyOf(told.names[i], &c))
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
