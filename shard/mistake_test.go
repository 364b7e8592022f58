package shard

import (
	"strings"
	"sync"
	"testing"

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
