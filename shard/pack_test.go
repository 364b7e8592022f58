package shard

import (
	"context"
	"math/rand/v2"
	"testing"
)

// TestPackedIndex_answersLikeItsParts packs the parts of random repositories after some pushes, and
// compares the answers of the pack with a scan.
func TestPackedIndex_answersLikeItsParts(t *testing.T) {
	t.Parallel()
	for seed := range 4 {
		r := rand.New(rand.NewPCG(uint64(seed), 4))
		w := randomWorld(r)
		w.encode(r)
		if seed%2 == 1 {
			versions := make([]string, lastBit(w.repos[0])+1)
			versions[0] = "a\x00lock"
			w.trees[0]["bin.dat"] = versions
		}
		set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
		for i := range w.repos {
			w.evolve(r, i, 1)
			var mine, others []Part
			for _, p := range parts {
				if p.Repo == w.repos[i].ID {
					mine = append(mine, p)
				} else {
					others = append(others, p)
				}
			}
			built, err := set.Update(context.Background(), mine, w.source(i), BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			parts = others
			for _, b := range built {
				parts = append(parts, b.Part)
			}
		}
		parts = w.addCopy(t, r, set, parts, 0, 2)
		built, err := set.Pack(context.Background(), parts, BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var packed []Part
		for _, b := range built {
			if err := set.Add(b.Shard.Name(KindShard)); err != nil {
				t.Fatal(err)
			}
			packed = append(packed, b.Part)
			if b.Shard != built[0].Shard {
				t.Fatalf("more than one file: %+v", built)
			}
		}
		fresh, err := Build(context.Background(), t.TempDir(), w.source(-1), BuildOptions{})
		if err != nil || seed%2 == 0 && fresh[0].Shard != built[0].Shard {
			t.Fatalf("packed into %s, built as %s, %v", built[0].Shard, fresh[0].Shard, err)
		}
		func() {
			v, missing := set.Acquire(packed)
			defer v.Release()
			if len(missing) > 0 {
				t.Fatalf("missing %v", missing)
			}
			for range 12 {
				w.check(t, v, w.randomQuery(r, 2), r.IntN(3))
			}
		}()
	}
}

func lastBit(r Repository) int {
	last := 0
	for _, v := range r.Revisions {
		last = max(last, int(v.Bit))
	}
	return last
}
