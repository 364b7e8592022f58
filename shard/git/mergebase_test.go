package git

import (
	"errors"
	"strings"
	"testing"
)

// The merge base of two commits is the last one in both histories. A merge moves it forward, and
// unrelated histories have none.
func TestMergeBase_isTheLastCommonCommit(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "one", "a", "1\n")
	h.commit("refs/heads/main", 2, "Ann", "two", "a", "2\n")
	h.commit("refs/heads/main", 3, "Ann", "three", "a", "3\n")
	h.commit("refs/heads/alone", 4, "Bob", "alone", "b", "1\n")
	r.load(h)
	grow := func(branch string, parents ...string) {
		args := []string{"commit-tree", "-m", branch, "main^{tree}"}
		for _, p := range parents {
			args = append(args, "-p", p)
		}
		r.git("branch", branch, r.git(args...))
	}
	grow("side", "main~2")
	grow("merged", "main", "side")
	grow("later", "side")
	m := fetched(t, r.url())

	id := func(ref string) string { return r.git("rev-parse", ref+"^{commit}") }
	for _, tt := range []struct{ a, b, want string }{
		{"main", "main~2", "main~2"}, {"main~2", "main", "main~2"}, {"main", "main", "main"},
		{"side", "main", "main~2"}, {"later", "main", "main~2"}, {"later", "merged", "side"},
	} {
		if got, err := m.MergeBase(within(t), id(tt.a), id(tt.b)); err != nil || got != id(tt.want) {
			t.Errorf("%s and %s: %s, %v, want %s", tt.a, tt.b, got, err, id(tt.want))
		}
	}

	if got, err := m.MergeBase(within(t), id("main"), id("alone")); !errors.Is(err, ErrNoBase) {
		t.Errorf("nothing in common: %q, %v", got, err)
	}
	if _, err := m.MergeBase(within(t), "HEAD", id("main")); !errors.Is(err, ErrBadRef) {
		t.Errorf("no id of a commit: %v", err)
	}
	if _, err := m.MergeBase(within(t), strings.Repeat("0", 39)+"1", id("main")); err == nil || errors.Is(err, ErrNoBase) {
		t.Errorf("a commit that is not there: %v", err)
	}
}
