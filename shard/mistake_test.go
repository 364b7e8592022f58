package shard

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard/query"
)

// mistakes opens a set that fails the test if a file is put aside, and counts the files that could not be
// used.
func mistakes(t *testing.T, dir string) (set *Set, names func() []string) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	set, err := OpenSet(dir, SetOptions{
		Damaged:    func(name string, err error) { t.Errorf("%s was put aside: %v", name, err) },
		Unreadable: func(name string, err error) { mu.Lock(); seen = append(seen, name+": "+err.Error()); mu.Unlock() },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return set, func() []string { mu.Lock(); defer mu.Unlock(); return seen }
}

// repeatedLines is a world with files of many matches.
func repeatedLines() *world {
	files := map[string][]string{}
	for i := range 60 {
		name := string(rune('a'+i%26)) + string(rune('a'+i/26)) + ".c"
		files[name] = []string{strings.Repeat("int lock(void);\nreturn key + "+name+";\n", 40+i)}
	}
	w := &world{repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}}}
	w.trees = append(w.trees, files)
	return w
}

// If the program panics while it reads an intact file, the file is not searched, and stays where it is.
func TestSearch_keepsAFileIfTheProgramHasAMistake(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	built, parts := repeatedLines().built(t, dir, false, BuildOptions{})
	built.Close()
	set, unusable := mistakes(t, dir)
	v, _ := set.Acquire(parts)
	defer v.Release()

	res, err := v.Search(t.Context(), Request{Q: &query.Text{Pattern: "lock"}, Rank: func(uint32) (string, float64) { panic("a mistake") }})
	if err != nil || len(res.Failed) != 1 || len(res.Files) != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	name := parts[0].Shard.Name(KindShard)
	if got := unusable(); len(got) == 0 || !strings.HasPrefix(got[0], name) || !strings.Contains(got[0], "mistake_test.go") {
		t.Errorf("told of %v", got)
	}
	if !set.Has(name) || set.Quarantined() != 0 {
		t.Error("the file is gone")
	}
	if res, err := v.Search(t.Context(), Request{Q: &query.Text{Pattern: "lock"}}); err != nil || len(res.Files) == 0 || len(res.Failed) > 0 {
		t.Errorf("then %+v, %v", res, err)
	}
}

// A search that ends between its rounds shows no file that it could not render.
func TestSearch_stoppedBeforeItsFilesAreRenderedShowsNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	built, parts := repeatedLines().built(t, dir, false, BuildOptions{})
	built.Close()
	set, unusable := mistakes(t, dir)
	v, _ := set.Acquire(parts)
	defer v.Release()

	for _, r := range stoppedRequests() {
		p, err := newPlan(r.Q, r.Words, &v.set.known)
		if err != nil {
			t.Fatal(err)
		}
		s := &search{v: v, r: r, p: p, gate: v.set.gate, runs: []*run{{m: v.members[0]}}}
		if err := s.firstRound(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		s.stop()
		res, err := s.render(t.Context())
		if err != nil || len(res.Files) > 0 || !res.Cut || len(res.Failed) > 0 {
			t.Errorf("%v: %d files, %v", r.Q, len(res.Files), err)
		}
	}
	if got := unusable(); len(got) > 0 {
		t.Error(got)
	}
}

// stoppedRequests are requests of all kinds of rendering.
func stoppedRequests() []Request {
	lock := &query.Text{Pattern: "lock"}
	all := []Request{
		{Q: lock, CountAll: true},
		{Q: lock, MaxPerFile: 3, ContextLines: 2},
		{Q: &query.Or{Subs: []query.Q{lock, &query.Text{Pattern: "r.turn", Regexp: true}}}, Around: true},
		{Q: &query.And{Subs: []query.Q{lock, &query.Text{Pattern: "a", Field: query.Name}}}, Whole: true},
		{Q: lock, Lexed: true},
		{Q: query.Const(true), Words: []Word{{Expr: "lock", Weight: 2}, {Expr: "key", Weight: 1}}, MaxFiles: 50, Shown: 11},
	}
	for i := range all {
		all[i].MaxMatches, all[i].MemoryLimit, all[i].CountAll = 500, defaultMemoryLimit, true
	}
	return all
}

// Whenever its time is over, a search finds no fault with intact files.
func TestSearch_endedAtAnyMomentKeepsItsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	built, parts := repeatedLines().built(t, dir, false, BuildOptions{})
	built.Close()
	set, unusable := mistakes(t, dir)

	// A search of this world takes about 2 ms. Two at once leave the cores to each other in the middle of it.
	const rounds = 150
	var wg sync.WaitGroup
	for worker := range 2 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(worker), 3))
			for range rounds {
				v, _ := set.Acquire(parts)
				r := stoppedRequests()[rnd.IntN(6)]
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rnd.IntN(3_000_000)))
				res, err := v.Search(ctx, r)
				if err == nil && len(res.Failed) > 0 {
					t.Errorf("%v: %v failed", r.Q, res.Failed)
				}
				cancel()
				v.Release()
			}
		})
	}
	wg.Wait()
	if got := unusable(); len(got) > 0 {
		t.Error(got)
	}
}
