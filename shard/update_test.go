package shard

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// evolve changes a repository of a world as a push does: it adds, removes and changes files in some
// revisions, and adds, removes and moves revisions.
func (w *world) evolve(r *rand.Rand, i, round int) {
	repo, tree := &w.repos[i], w.trees[i]
	bits := 0
	for _, v := range repo.Revisions {
		bits = max(bits, int(v.Bit)+1)
	}
	repo.Revisions = slices.Clone(repo.Revisions)
	switch n := r.IntN(4); {
	case n == 0 && bits < 8: // add a tag on an indexed commit with few changes
		from := r.IntN(bits)
		for _, versions := range tree {
			_ = versions
		}
		for _, p := range slices.Sorted(maps.Keys(tree)) {
			tree[p] = append(slices.Clone(tree[p]), tree[p][from])
		}
		repo.Revisions = append(repo.Revisions, Revision{Name: fmt.Sprintf("refs/tags/t%d", round), Commit: blobID(fmt.Sprint(i, round)), Bit: uint8(bits)})
	case n == 1 && bits > 1: // remove the last revision
		for _, p := range slices.Sorted(maps.Keys(tree)) {
			tree[p] = slices.Clone(tree[p][:bits-1])
			if !slices.ContainsFunc(tree[p], func(c string) bool { return c != absent }) {
				delete(tree, p)
			}
		}
		repo.Revisions = slices.DeleteFunc(repo.Revisions, func(v Revision) bool { return int(v.Bit) == bits-1 })
	}
	for _, p := range slices.Sorted(maps.Keys(tree)) {
		if r.IntN(4) == 0 {
			versions := slices.Clone(tree[p])
			versions[r.IntN(len(versions))] = randomText(r)
			tree[p] = versions
		}
	}
	n := len(repo.Revisions)
	bits = 0
	for _, v := range repo.Revisions[:n] {
		bits = max(bits, int(v.Bit)+1)
	}
	versions := make([]string, bits)
	for v := range versions {
		versions[v] = absent
	}
	versions[r.IntN(bits)] = randomText(r)
	tree[fmt.Sprintf("src/new%d.go", round)] = versions
	repo.Revisions[0].Commit = blobID(fmt.Sprint("moved", i, round))
}

// TestUpdateIndex_agreesWithAScan pushes to random repositories many times, and compares the parts with
// a scan after each push.
func TestUpdateIndex_agreesWithAScan(t *testing.T) {
	t.Parallel()
	for seed := range 6 {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		w := randomWorld(r)
		w.encode(r)
		set, parts := w.built(t, t.TempDir(), seed%2 == 0, BuildOptions{})
		deltas := 0
		for round := range 12 {
			if seed%3 == 0 && r.IntN(4) == 0 && len(w.repos) < 4 {
				parts = w.addCopy(t, r, set, parts, r.IntN(len(w.repos)), round)
			}
			i := r.IntN(len(w.repos))
			w.evolve(r, i, round)
			var mine, others []Part
			for _, p := range parts {
				if p.Repo == w.repos[i].ID {
					mine = append(mine, p)
				} else {
					others = append(others, p)
				}
			}
			built, err := set.Update(context.Background(), mine, w.source(i), BuildOptions{DeltaLimit: 3})
			if err != nil {
				t.Fatal(err)
			}
			parts = others
			for _, b := range built {
				parts = append(parts, b.Part)
			}
			deltas = max(deltas, len(built))
			if len(built) > 5 {
				t.Fatalf("%d parts, never folded", len(built))
			}
			func() {
				v, missing := set.Acquire(parts)
				defer v.Release()
				if len(missing) > 0 {
					t.Fatalf("missing %v", missing)
				}
				for range 4 {
					w.check(t, v, w.randomQuery(r, 2), r.IntN(3))
				}
			}()
			live := map[string]bool{}
			for _, p := range parts {
				for _, f := range p.Files() {
					live[f] = true
				}
			}
			if _, err := set.Retain(func(name string) bool { return live[name] }, 0); err != nil {
				t.Fatal(err)
			}
			if got := len(set.Names()); got != len(live) {
				t.Fatalf("%d files, %d of them live", got, len(live))
			}
		}
		if deltas < 2 {
			t.Fatalf("seed %d never had a delta", seed)
		}
	}
}

// TestUpdateIndex_readsOnlyNewBlobs changes one of many files.
func TestUpdateIndex_readsOnlyNewBlobs(t *testing.T) {
	t.Parallel()
	w := &world{repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}}}
	tree := map[string][]string{}
	for i := range 200 {
		tree[fmt.Sprintf("f%03d.go", i)] = []string{fmt.Sprintf("package f%d\n", i)}
	}
	w.trees = append(w.trees, tree)
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	tree["f007.go"] = []string{"package other\n"}
	src := w.source(0)
	built, err := set.Update(context.Background(), parts, src, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if src.read != 1 || len(built) != 2 || built[0].Dead.IsZero() || built[1].Documents != 1 {
		t.Fatalf("read %d blobs, built %+v", src.read, built)
	}
	again, err := set.Update(context.Background(), []Part{built[0].Part, built[1].Part}, src, BuildOptions{})
	if err != nil || src.read != 1 || len(again) != 2 || again[0].Part != built[0].Part || again[1].Part != built[1].Part {
		t.Fatalf("nothing new: read %d blobs, built %+v, %v", src.read, again, err)
	}
}
