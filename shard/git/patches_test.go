package git

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// The catalog may name a commit a moment before the mirror has it. To pass over it would leave its
// history out for good.
func TestAncestry_refusesUnknownCommits(t *testing.T) {
	t.Parallel()
	r, m := story(t)
	head := r.git("rev-parse", "main")
	all, err := m.Ancestry(within(t), []string{head}, nil, 0, time.Time{})
	if err != nil || len(all) == 0 || all[len(all)-1] != head {
		t.Fatalf("%d commits, %v", len(all), err)
	}
	absent := strings.Repeat("1", len(head))
	if got, err := m.Ancestry(within(t), []string{head, absent}, nil, 0, time.Time{}); !errors.Is(err, ErrNoRef) {
		t.Errorf("with a commit that is not there: %d commits, %v", len(got), err)
	}
	if got, err := m.Ancestry(within(t), []string{head}, []string{absent}, 0, time.Time{}); err != nil || len(got) != len(all) {
		t.Errorf("behind a commit that is not there any more: %d commits, %v", len(got), err)
	}
}

// A short history is walked over here, a long one by git: both give the same commits, parents
// first.
func TestAncestry_agreesWithGit(t *testing.T) {
	t.Parallel()
	r, m := story(t)
	tips := strings.Fields(r.git("rev-parse", "--branches"))
	for _, not := range [][]string{nil, {r.git("rev-parse", "main~2")}, tips} {
		want := strings.Fields(r.git(append(append([]string{"rev-list"}, tips...), notThese(not)...)...))
		got, ok := m.traces.ancestryWithoutGit(within(t), tips, not)
		slices.Sort(want)
		if sorted := slices.Sorted(slices.Values(got)); !ok || !slices.Equal(sorted, want) {
			t.Errorf("without %q: %t, %d commits, git has %d", not, ok, len(got), len(want))
		}
		for i, id := range got {
			for _, parent := range strings.Fields(r.git("show", "-s", "--format=%P", id)) {
				if slices.Contains(got[i:], parent) {
					t.Errorf("%s stands before its parent %s", id, parent)
				}
			}
		}
	}
}

func notThese(ids []string) (out []string) {
	for _, id := range ids {
		out = append(out, "^"+id)
	}
	return out
}
