package git

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
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

// written writes down what Patches passes on.
type written struct{ strings.Builder }

func (w *written) Commit(c *PatchCommit) error { _, err := fmt.Fprintf(w, "%+v\n", *c); return err }
func (w *written) File(f *PatchFile) error     { _, err := fmt.Fprintf(w, "  %+v\n", *f); return err }
func (w *written) Moved(from, to string) error {
	_, err := fmt.Fprintf(w, "  %s -> %s\n", from, to)
	return err
}

// Many commits together are read by two processes, and one of them does not search for renames. One
// commit alone is read with the search. Both must say the same.
func TestPatches_ofManyCommitsAreThoseOfEach(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		r := newRepo(t)
		r.load(randomMerges(rand.New(rand.NewPCG(seed, 1)), 2*manyCommits))
		m := fetched(t, r.url())
		ids, err := m.Ancestry(within(t), []string{r.git("rev-parse", "main")}, nil, 0, time.Time{})
		if err != nil || len(ids) < manyCommits {
			t.Fatalf("%d commits, %v", len(ids), err)
		}
		direct, err := m.mergesWithoutRenames(within(t), ids)
		merges := len(strings.Fields(r.git("rev-list", "--merges", "main")))
		if err != nil || len(direct) < 5 || len(direct) > merges-5 {
			t.Errorf("seed %d: %d of %d merges need no search, %v: this proves too little", seed, len(direct), merges, err)
		}

		var together, alone written
		if err := m.Patches(within(t), ids, false, &together); err != nil {
			t.Fatal(err)
		}
		if err := m.Patches(within(t), ids, true, &alone); err != nil {
			t.Fatal(err)
		}
		if got, want := together.String(), alone.String(); got != want {
			t.Errorf("seed %d:\ntogether\n%s\nalone\n%s", seed, got, want)
		}
	}
}

// randomMerges returns a history with many merges of two to four parents. Most commits change, move,
// copy or delete files, and so do the merges.
func randomMerges(r *rand.Rand, commits int) *stream {
	type tree map[string]string
	paths := []string{"a.go", "b.go", "dir/c.go", "dir/d e.go", "dir/tab\tand\nline.go", "ü.go"}
	text := func() string {
		var b strings.Builder
		for range 8 + r.IntN(8) {
			fmt.Fprintf(&b, "line %d\n", r.IntN(1000))
		}
		return b.String()
	}
	change := func(t tree) {
		switch path := paths[r.IntN(len(paths))]; r.IntN(6) {
		case 0: // move, and perhaps change
			from := paths[r.IntN(len(paths))]
			if content, ok := t[from]; ok {
				delete(t, from)
				t[path] = content + strings.Repeat("moved\n", r.IntN(2))
			}
		case 1:
			delete(t, path)
		case 2: // copy
			if content, ok := t[paths[r.IntN(len(paths))]]; ok {
				t[path] = content
			}
		default:
			if lines := strings.SplitAfter(t[path], "\n"); len(lines) > 3 {
				lines[r.IntN(len(lines)-1)] = fmt.Sprintf("changed %d\n", r.IntN(1000))
				t[path] = strings.Join(lines, "")
			} else {
				t[path] = text()
			}
		}
	}

	h := &stream{}
	var trees []tree
	for i := range commits {
		parents := []int{}
		for range min(i, 1+r.IntN(4)) {
			if p := max(0, i-1-r.IntN(4)); !slices.Contains(parents, p) {
				parents = append(parents, p)
			}
		}
		now := tree{"a.go": text()}
		if len(parents) > 0 {
			now = maps.Clone(trees[parents[0]])
			// As a merge does: some files are those of another parent.
			for path, content := range trees[parents[len(parents)-1]] {
				if r.IntN(2) == 0 {
					now[path] = content
				}
			}
		}
		for range r.IntN(3) {
			change(now)
		}
		trees = append(trees, now)

		fmt.Fprintf(h, "commit refs/heads/main\nmark :%d\ncommitter Ann <ann@example.org> %d +0000\ndata 5\nnews\n\n", i+1, at(i))
		for j, p := range parents {
			fmt.Fprintf(h, "%s :%d\n", []string{"from", "merge"}[min(j, 1)], p+1)
		}
		h.WriteString("deleteall\n")
		for _, path := range slices.Sorted(maps.Keys(now)) {
			h.file(path, now[path])
		}
		h.WriteByte('\n')
	}
	return h
}
