package shard

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// addCopy adds a copy of repository i with some changes to the world and to the parts.
func (w *world) addCopy(t *testing.T, r *rand.Rand, set *Set, parts []Part, i, round int) []Part {
	t.Helper()
	repo := w.repos[i]
	repo.ID, repo.Name = uint32(100+len(w.repos)), fmt.Sprintf("host/copy%d", len(w.repos))
	w.repos = append(w.repos, repo)
	w.trees = append(w.trees, maps.Clone(w.trees[i]))
	if r.IntN(4) > 0 { // else the copy is equal
		w.evolve(r, len(w.repos)-1, round)
	}

	var asCopy []Part
	for _, p := range parts {
		if p.Repo == w.repos[i].ID {
			asCopy = append(asCopy, p.AsCopy(repo.ID))
		}
	}
	built, err := set.Update(context.Background(), asCopy, w.source(len(w.repos)-1), BuildOptions{DeltaLimit: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range built {
		parts = append(parts, b.Part)
	}
	return parts
}

// only returns the world with one of its repositories.
func (w *world) only(i int) *world {
	return &world{repos: w.repos[i : i+1], trees: w.trees[i : i+1]}
}

// TestCopy_answersAsIfTheOriginalWereNotThere asks for each repository of a world with copies alone. Some
// are copies of copies.
func TestCopy_answersAsIfTheOriginalWereNotThere(t *testing.T) {
	t.Parallel()
	shared := 0
	for seed := range 6 {
		r := rand.New(rand.NewPCG(uint64(seed), 9))
		w := randomWorld(r)
		w.encode(r)
		set, parts := w.built(t, t.TempDir(), seed%2 == 0, BuildOptions{})
		for round := range 4 {
			parts = w.addCopy(t, r, set, parts, r.IntN(len(w.repos)), round)
		}

		for _, p := range parts {
			if p.BuiltFor != 0 {
				shared++
			}
		}
		for i, repo := range w.repos {
			own := slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return p.Repo != repo.ID })
			v, missing := set.Acquire(own)
			if len(missing) > 0 {
				t.Fatalf("missing %v", missing)
			}
			for range 4 {
				one := w.only(i)
				one.check(t, v, one.randomQuery(r, 2), r.IntN(3))
			}
			v.Release()
		}
	}
	if shared < 6 {
		t.Errorf("%d parts of copies are shared, too few for a test", shared)
	}
}

// A copy shares the shard and the symbols of the original. Its sizes count what it has itself.
func TestCopy_ofARepository(t *testing.T) {
	t.Parallel()
	head := []Revision{{Name: "HEAD", Commit: blobID("1")}}
	original := map[string][]string{"secret.go": {"package secret // one more file\n"}}
	copied := map[string][]string{}
	for i := range 9 {
		path, text := fmt.Sprintf("f%d.go", i), fmt.Sprintf("package f%d\n", i)
		original[path], copied[path] = []string{text}, []string{text}
	}
	copied["f0.go"] = []string{"package changed\n"}
	w := &world{
		repos: []Repository{{ID: 1, Name: "original", Revisions: head}, {ID: 2, Name: "copy", Revisions: head}},
		trees: []map[string][]string{original, copied},
	}
	set, parts := w.only(0).built(t, t.TempDir(), false, BuildOptions{})
	tagged, err := symbolize(set, parts[0], nil, func(_ context.Context, texts []Untagged, use func(Definition), done func(int, error)) error {
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	src := w.source(1)
	built, err := set.Update(t.Context(), []Part{tagged.AsCopy(2)}, src, BuildOptions{})
	if err != nil || src.read != 1 || len(built) != 2 {
		t.Fatalf("read %d blobs, built %+v, %v", src.read, built, err)
	}
	shared, own := built[0], built[1]
	if shared.Shard != tagged.Shard || shared.Symbols != tagged.Symbols || shared.BuiltFor != 1 || shared.Dead.IsZero() {
		t.Errorf("the copy has %+v of the original %+v", shared.Part, tagged)
	}
	if shared.Documents != 8 || shared.TextBytes != 8*int64(len("package f1\n")) || own.Documents != 1 || own.BuiltFor != 0 {
		t.Errorf("the copy counts %+v and %+v", shared, own)
	}

	// A copy of the copy reads the same file. What is a copy of its own copy reads its own file.
	for repo, want := range map[uint32]uint32{3: 1, 1: 0} {
		if got := shared.AsCopy(repo); got.BuiltFor != want || got.Shard != tagged.Shard {
			t.Errorf("repository %d as a copy of the copy has %+v", repo, got)
		}
	}
	if common := set.CountCommon([]Part{tagged}, func(oid string) bool { return oid == blobID("package f1\n") }); common != 1 {
		t.Errorf("%d documents in common, want 1", common)
	}
}
