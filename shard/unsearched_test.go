package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/shard/query"
)

// hide makes some files of a world binary, so that they are kept by name only.
func (w *world) hide(r *rand.Rand) {
	for _, tree := range w.trees {
		for path, versions := range tree {
			if r.IntN(3) > 0 {
				continue
			}
			tree[path] = slices.Clone(versions)
			for v, text := range versions {
				if text != absent && r.IntN(3) > 0 {
					tree[path][v] = "\x00" + text
				}
			}
		}
	}
}

// unsearched is the naive twin of CountUnsearched.
func (w *world) unsearched(q query.Q) int {
	reached, unknown := Reach(q)
	if !unknown {
		return 0
	}
	return len(w.scan(&query.And{Subs: []query.Q{&query.Lang{Name: SkippedLanguage}, reached}}))
}

// Random repositories, alone and in packs, get many pushes. After each push random queries count
// the same files by name only as a scan.
func TestCountUnsearched_agreesWithAScan(t *testing.T) {
	t.Parallel()
	counted := 0
	for seed := range 8 {
		r := rand.New(rand.NewPCG(uint64(seed), 4))
		w := randomWorld(r)
		w.hide(r)
		set, parts := w.built(t, t.TempDir(), seed%2 == 0, BuildOptions{})
		for round := range 4 {
			for range 30 {
				counted += w.checkUnsearched(t, set, parts, w.randomQuery(r, 3))
			}

			i := r.IntN(len(w.repos))
			w.evolve(r, i, round)
			if r.IntN(2) == 0 {
				w.hide(r)
			}
			parts = w.pushed(t, set, parts)
		}
	}
	if counted == 0 {
		t.Error("no file is kept by name only")
	}
}

// checkUnsearched compares the count for some parts with that of the naive twin.
func (w *world) checkUnsearched(t *testing.T, set *Set, parts []Part, q query.Q) int {
	t.Helper()
	v, missing := set.Acquire(parts)
	defer v.Release()
	n, err := v.CountUnsearched(context.Background(), q)
	if want := w.unsearched(q); err != nil || len(missing) > 0 || n != want {
		t.Fatalf("%s: %d files, want %d (%v, missing %v)", q, n, want, err, missing)
	}
	return n
}

// pushed updates all repositories of a set to the present state of the world.
func (w *world) pushed(t *testing.T, set *Set, parts []Part) (next []Part) {
	t.Helper()
	for i := range w.repos {
		mine := slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return p.Repo != w.repos[i].ID })
		built, err := set.Update(context.Background(), mine, w.source(i), BuildOptions{DeltaLimit: 3})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range built {
			next = append(next, b.Part)
		}
	}
	return next
}

// Counting matches the path of each file by name only at most once for each pattern, whatever the
// filters and however many files there are.
func TestCountUnsearched_matchesEachPathOnce(t *testing.T) {
	t.Parallel()
	const hidden, others = 3000, 200
	tree := map[string][]string{}
	for i := range hidden {
		tree[fmt.Sprintf("img/%d/icon_test%d.png", i%7, i)] = []string{fmt.Sprint("\x00", i)}
	}
	for i := range others {
		tree[fmt.Sprintf("src/f%d_test.c", i)] = []string{fmt.Sprintf("int word_%d;\n", i)}
	}
	w := &world{
		repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}},
		trees: []map[string][]string{tree},
	}
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})

	filters := map[string]query.Q{
		"file:test":   &query.Text{Pattern: "test", Field: query.Name},
		"file:\\.c$":  &query.Text{Pattern: `\.c$`, Regexp: true, Field: query.Name},
		"file:^img/3": &query.Text{Pattern: "^img/3", Regexp: true, Field: query.Name},
		"repo":        &query.Repos{Set: roaring.BitmapOf(1)},
		"other repo":  &query.Repos{Set: roaring.BitmapOf(2)},
		"lang:c":      &query.Lang{Name: "C"},
		"rev":         &query.Rev{Pattern: "HEAD"},
	}
	for name, f := range filters {
		filters["-"+name] = &query.Not{Sub: f}
	}

	word := &query.Text{Pattern: "word_7"}
	for _, f := range filters {
		for _, g := range filters {
			q := &query.And{Subs: []query.Q{word, f, g}}
			w.checkUnsearched(t, set, parts, q)
		}
	}

	// Each of the three patterns matches each path once, or none if the index of paths rules them
	// out.
	if n := set.names.matched.Load(); n > 3*hidden {
		t.Errorf("%d paths were matched for %d files and 3 patterns", n, hidden)
	}
}
