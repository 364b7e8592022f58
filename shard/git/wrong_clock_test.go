package git

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A commit counts by its own date, whatever the dates of its children are. The expected answer
// comes from a list of all commits with their dates.
func TestHistoryBetweenTwoDates_countsEachCommitByItsOwnDate(t *testing.T) {
	t.Parallel()
	const commits = 120
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 4))
		r := newRepo(t)
		h := &stream{}
		tangle(h, rng, 0, commits)
		r.load(h)
		m := fetched(t, r.url())
		head, side := r.git("rev-parse", "main"), r.git("rev-parse", fmt.Sprintf("b%d", commits/2))

		check := func(state string) {
			t.Helper()
			for range 12 {
				from, to := at(rng.IntN(commits)), at(rng.IntN(commits))
				q := LogQuery{Commit: head, Limit: commits, Since: time.Unix(from, 0), Until: time.Unix(max(from, to), 0)}
				if rng.IntN(2) == 0 {
					q.Until = time.Time{}
				}
				if rng.IntN(3) == 0 {
					q.Path = "d"
				}
				if rng.IntN(3) == 0 {
					q.NoMerges = true
				}
				if rng.IntN(4) == 0 {
					q.Not = side
				}
				want := datedCommits(r, q)

				page, err := m.Log(within(t), q)
				if got := ids(page.Commits); err != nil || !slices.Equal(got, want) || page.AtLeast {
					t.Errorf("seed %d, %s, log %+v: %v, at least: %t\n%q, want\n%q", seed, state, q, err, page.AtLeast, got, want)
				}
				traced, err := m.Trace(within(t), TraceQuery{Commit: q.Commit, Not: q.Not, Path: q.Path, Since: q.Since, Until: q.Until, NoMerges: q.NoMerges, Expr: ".", Limit: commits, Time: time.Minute})
				if want := changing(r, want, q.Path); err != nil || !slices.Equal(ids(traced.Commits), want) || traced.AtLeast {
					t.Errorf("seed %d, %s, trace %+v: %v, at least: %t\n%q, want\n%q", seed, state, q, err, traced.AtLeast, ids(traced.Commits), want)
				}
			}
		}
		check("no graph")
		if err := m.Groom(within(t)); err != nil {
			t.Fatal(err)
		}
		check("a graph")
		boundsTimes(t, m, head)
	}
}

// A commit may have a time close to the first second of 1970. Git cannot parse a number of few
// digits as a time.
func TestHistoryBetweenTwoDates_acceptsTimesNear1970(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", -28_333_333, "Ann", "second 20", "a", "one\n")
	h.commit("refs/heads/main", 1, "Ann", "now", "a", "two\n")
	r.load(h)
	m := fetched(t, r.url())

	second := func(n int64) time.Time { return time.Unix(n, 0) }
	for _, state := range []string{"no graph", "a graph"} {
		for _, c := range []struct {
			since, until time.Time
			want         []string
		}{
			{until: second(20), want: []string{"second 20"}}, {until: second(19)}, {until: second(0)}, {until: second(-5)},
			{since: second(21), want: []string{"now"}}, {since: second(0), want: []string{"now", "second 20"}}, {since: second(-5), want: []string{"now", "second 20"}},
		} {
			q := LogQuery{Commit: r.git("rev-parse", "main"), Since: c.since, Until: c.until}
			page, err := m.Log(within(t), q)
			traced, other := m.Trace(within(t), TraceQuery{Commit: q.Commit, Expr: ".", Since: q.Since, Until: q.Until, Time: time.Minute})
			if got, also := hashes(page.Commits), hashes(traced.Commits); err != nil || other != nil || !slices.Equal(got, c.want) || !slices.Equal(also, c.want) {
				t.Errorf("%s, since %v until %v: %q and %q, %v, %v", state, c.since, c.until, got, also, err, other)
			}
		}
		if err := m.Groom(within(t)); err != nil {
			t.Fatal(err)
		}
	}
}

// boundsTimes compares the upper limit on times in the commit graph with one computed from all
// parents: a second more than the latest of them.
func boundsTimes(t *testing.T, m *Mirror, head string) {
	t.Helper()
	c, err := openChronicle(m.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	want := map[uint32]int64{}
	var bound func(pos uint32) int64
	bound = func(pos uint32) int64 {
		if known, ok := want[pos]; ok {
			return known
		}
		latest := c.date(pos)
		parents, err := c.parents(nil, pos)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parents {
			latest = max(latest, bound(p)+1)
		}
		want[pos] = latest
		return latest
	}

	id, _ := hex.DecodeString(head)
	pos, ok := c.graph.Find(id)
	if !ok {
		t.Fatal("the graph lacks the newest commit")
	}
	bound(pos)
	for pos, latest := range want {
		if got := c.latest(pos); got != latest {
			t.Errorf("the latest time in the history of %x is %d, want %d", c.id(pos), got, latest)
		}
	}
}

// The history of some lines continues behind a commit with an old date.
func TestTraceLines_continuesBehindACommitWithAnOldDate(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", 50, "Ann", "Begin", "a", "one\n")
	h.commit("refs/heads/main", 1, "Ann", "Wrong clock", "a", "two\n")
	h.commit("refs/heads/main", 60, "Ann", "End", "a", "three\n")
	r.load(h)
	m := fetched(t, r.url())
	page, err := m.Trace(within(t), TraceQuery{Commit: r.git("rev-parse", "main"), Path: "a", Lines: [2]int{1, 1}, Since: time.Unix(at(10), 0)})
	if got := hashes(page.Commits); err != nil || !slices.Equal(got, []string{"End", "Begin"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// datedCommits asks git for all commits of a query without its dates, and compares the dates
// itself.
func datedCommits(r *repo, q LogQuery) (want []string) {
	since, until := q.Since, q.Until
	q.Since, q.Until = time.Time{}, time.Time{}
	args, _ := q.arguments()
	for line := range strings.Lines(r.git(append([]string{"log", "--format=%ct %H"}, args...)...)) {
		stamp, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		seconds, _ := strconv.ParseInt(stamp, 10, 64)
		if at := time.Unix(seconds, 0); !at.Before(since) && (until.IsZero() || !at.After(until)) {
			want = append(want, id)
		}
	}
	return want
}

// changing returns the commits that differ from their one parent.
func changing(r *repo, commits []string, path string) (out []string) {
	for _, id := range commits {
		args := []string{"diff-tree", "-r", "-c", "--root", "--no-commit-id", "--name-only", "-G.", id, "--"}
		if path != "" {
			args = append(args, path)
		}
		if r.git(args...) != "" {
			out = append(out, id)
		}
	}
	return out
}

func ids(commits []Commit) (list []string) {
	for _, c := range commits {
		list = append(list, c.Hash)
	}
	return list
}
