package shard

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shoalsearch/shoal/shard/query"
)

// More viewers than a shard caches joins for, who may see different repositories of a pack, search
// in turn. Each gets the answer of a fresh set.
func TestGroupViews_areCachedForSeveralViewers(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(57, 1))
	w := randomWorld(r)
	for len(w.repos) < 3 {
		w = randomWorld(r)
	}
	for i := range w.repos {
		versions := make([]string, lastBit(w.repos[i])+1)
		versions[0] = "no text\x00"
		w.trees[i]["skipped.bin"] = versions
	}
	dir := t.TempDir()
	set, parts := w.built(t, dir, true, BuildOptions{})
	whole := Groups(parts)[0]

	// Make more groups than a shard caches, and query each for some revisions.
	type asked struct {
		group *Group
		q     query.Q
	}
	type answer struct {
		files      []File
		unsearched int
	}
	var all []asked
	for len(all) < 2*maxGroupViews*3 {
		mask := r.Uint32()
		g := whole.Within(func(repo uint32) bool { return mask>>(repo%32)&1 == 1 })
		for _, rev := range []string{"HEAD", "refs/tags/v1.0", "refs/heads/old"} {
			if g != nil {
				all = append(all, asked{g, &query.And{Subs: []query.Q{&query.Text{Pattern: words[r.IntN(len(words))]}, &query.Rev{Pattern: rev}}}})
			}
		}
	}

	ask := func(set *Set, a asked) answer {
		v, missing := set.AcquireGroups([]*Group{a.group})
		defer v.Release()
		res, err := v.Search(context.Background(), Request{Q: a.q, CountAll: true, MaxMatches: 20})
		if err != nil || len(missing) > 0 {
			t.Errorf("%v, missing %v", err, missing)
			return answer{}
		}
		n, err := v.CountUnsearched(context.Background(), a.q)
		if err != nil {
			t.Error(err)
		}
		return answer{res.Files, n}
	}

	want, unsearched := map[int]answer{}, 0
	for i, a := range all {
		fresh, err := OpenSet(dir, SetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want[i] = ask(fresh, a)
		unsearched += want[i].unsearched
		_ = fresh.Close()
	}
	if unsearched == 0 {
		t.Error("nothing is kept by name only")
	}

	var wg sync.WaitGroup
	for k := range 4 {
		order := rand.New(rand.NewPCG(57, uint64(k))).Perm(len(all))
		wg.Go(func() {
			for _, i := range slices.Concat(order, order) {
				if got := ask(set, all[i]); !reflect.DeepEqual(got, want[i]) {
					t.Errorf("%d repositories, %s: %d files, %d not searched; alone %d, %d", len(all[i].group.Parts), all[i].q, len(got.files), got.unsearched, len(want[i].files), want[i].unsearched)
				}
			}
		})
	}
	wg.Wait()

	if n := len(set.files[fileKey{whole.Parts[0].Shard, KindShard}].sh.groupViews.last); n < 2 || n > maxGroupViews {
		t.Errorf("%d groups are kept, want 2 to %d", n, maxGroupViews)
	}
}

// The cached joins stay below their limit in bytes, except for the last join of each file. A group
// with the same parts but another pointer is found. Closing a file subtracts its joins.
func TestGroupViews_stayWithinTheirByteLimit(t *testing.T) {
	t.Parallel()
	groupOf := func(n int) *Group {
		parts := make([]Part, n)
		for i := range parts {
			parts[i].Repo = uint32(i)
		}
		return Groups(parts)[0]
	}

	var total atomic.Int64
	files := make([]groupViewCache, 10)
	for round := range 5 {
		for i := range files {
			n := 20_000 + 10*round + i
			files[i].put(&groupView{group: groupOf(n), repos: make([]*repoView, n)}, &total)
			if files[i].get(groupOf(n)) == nil {
				t.Fatalf("file %d forgets its last group", i)
			}
		}
	}

	one := (&groupView{group: groupOf(20_300), repos: make([]*repoView, 20_300)}).bytes()
	if most := maxGroupViewBytes + int64(len(files))*one; total.Load() > most || total.Load() == 0 {
		t.Errorf("%d bytes, at most %d", total.Load(), most)
	}
	for i := range files {
		files[i].drop(&total)
	}
	if n := total.Load(); n != 0 {
		t.Errorf("%d bytes of closed files", n)
	}
}
