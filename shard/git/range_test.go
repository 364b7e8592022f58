package git

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// Every query about commits can exclude the history of another commit.
func TestCommitQueries_omitCommitsOfAnExcludedHistory(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "Begin", "a", "one\n", "b", "one\n")
	h.commit("refs/heads/main", 2, "Bob", "Mend a", "a", "one\ntwo\n")
	h.WriteString("reset refs/heads/old\nfrom refs/heads/main\n\nreset refs/heads/side\nfrom refs/heads/main\n\n")

	// The dates of the branch are older than those on main since then, so time alone does not tell
	// them apart.
	h.commit("refs/heads/side", 3, "Ann", "Mend b aside", "b", "one\nside\n")
	h.commit("refs/heads/main", 4, "Ann", "Mend a again", "a", "one\ntwo\nthree\n")
	h.commit("refs/heads/main", 5, "Cleo", "Mend b", "b", "two\n")
	r.load(h)
	m := fetched(t, r.url())
	id := func(ref string) string { return r.git("rev-parse", ref) }

	since := LogQuery{Commit: id("main"), Not: id("old")}
	for name, tt := range map[string]struct {
		q    LogQuery
		want []string
	}{
		"all":       {since, []string{"Mend b", "Mend a again"}},
		"path":      {LogQuery{Commit: since.Commit, Not: since.Not, Path: "a"}, []string{"Mend a again"}},
		"words":     {LogQuery{Commit: since.Commit, Not: since.Not, Words: []string{"again"}}, []string{"Mend a again"}},
		"author":    {LogQuery{Commit: since.Commit, Not: since.Not, Author: "cleo"}, []string{"Mend b"}},
		"page":      {LogQuery{Commit: since.Commit, Not: since.Not, Skip: 1, Limit: 1}, []string{"Mend a again"}},
		"parted":    {LogQuery{Commit: id("side"), Not: id("main")}, []string{"Mend b aside"}},
		"until":     {LogQuery{Commit: id("main"), Not: id("side"), Until: time.Unix(at(4), 0)}, []string{"Mend a again"}},
		"reversed":  {LogQuery{Commit: id("old"), Not: id("main")}, nil},
		"of itself": {LogQuery{Commit: id("old"), Not: id("old")}, nil},
	} {
		for range 2 { // from git, then from the cache
			page, err := m.Log(within(t), tt.q)
			if got := hashes(page.Commits); err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("%s: %q, %v, want %q", name, got, err, tt.want)
			}
		}
	}

	// A page in the middle counts only these commits.
	page, err := m.Log(within(t), LogQuery{Commit: since.Commit, Not: since.Not, Limit: 1})
	for err == nil && page.AtLeast {
		page, err = m.Log(within(t), LogQuery{Commit: since.Commit, Not: since.Not, Limit: 1})
	}
	if err != nil || page.Total != 2 {
		t.Errorf("%+v, %v", page, err)
	}

	followed, err := m.Follow(within(t), LogQuery{Commit: since.Commit, Not: since.Not, Path: "b", Limit: 50})
	if got := hashes(followed.Commits); err != nil || !slices.Equal(got, []string{"Mend b"}) {
		t.Errorf("followed: %q, %v", got, err)
	}

	for name, q := range map[string]TraceQuery{
		"text":       {Text: "three"},
		"expression": {Expr: "^three$"},
		"lines":      {Lines: [2]int{1, 3}, Path: "a"},
	} {
		q.Commit, q.Not = since.Commit, since.Not
		page, err := m.Trace(within(t), q)
		if got := hashes(page.Commits); err != nil || !slices.Equal(got, []string{"Mend a again"}) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// Queries accept only a commit id for what to exclude, as for where to start.
func TestCommitQueries_excludeOnlyByCommitID(t *testing.T) {
	t.Parallel()
	r, m := story(t)
	head := r.git("rev-parse", "main")
	for _, not := range []string{"main", "--all", head[:10], head + " --all", strings.Repeat("z", 40)} {
		_, err := m.Log(within(t), LogQuery{Commit: head, Not: not})
		_, followed := m.Follow(within(t), LogQuery{Commit: head, Not: not, Path: "src/a.go"})
		_, traced := m.Trace(within(t), TraceQuery{Commit: head, Not: not, Text: "TWO", Time: time.Second})
		if !errors.Is(err, ErrBadRef) || !errors.Is(followed, ErrBadRef) || !errors.Is(traced, ErrBadRef) {
			t.Errorf("%q: %v, %v, %v", not, err, followed, traced)
		}
	}
}
