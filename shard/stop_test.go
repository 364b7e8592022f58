package shard

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/shard/query"
)

// stoppedAt is the naive twin of the early stop: it returns how many documents with these matches,
// of one unit each, are decided.
func stoppedAt(matches []int, shown, shards int) int {
	sum, decided, size := 0, 0, 16
	for decided < len(matches) {
		end := min(decided+min(size, 256), len(matches))
		for ; decided < end; decided++ {
			sum += matches[decided]
		}
		choice := max(4*shown, 250) / max(shards, 1)
		choice = max(choice, 2*shown)
		for range decided / (12 * 512) {
			choice /= 2
		}
		if sum >= max(choice, shown) {
			break
		}
		size = min(2*size, 512)
	}
	return decided
}

// TestSearch_earlyStopIsAPrefixOfTheWholeAnswer compares a search that stops early with an
// exhaustive one, reduced to the first documents: those named like the query, then the others in
// the order of the shard.
func TestSearch_earlyStopIsAPrefixOfTheWholeAnswer(t *testing.T) {
	t.Parallel()
	w := manyFiles(9000)
	tree := w.trees[0]
	for i, path := range []string{"z/common_word.c", "y/CommonWord.java", "z/word.h"} {
		tree[path] = []string{fmt.Sprintf("a common word %d\n", i)}
	}
	tree["z/commonplace.c"] = []string{"a common word, but none to be called so\n"}
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	v, _ := set.Acquire(parts)
	defer v.Release()
	const word = "common word"
	ask := func(r Request) *Result {
		r.Q = &query.Text{Pattern: word}
		res, err := v.Search(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	all := ask(Request{MaxMatches: 1 << 20, CountAll: true})
	var order []string
	s := v.members[0].sh
	for d := range s.m.documents {
		path := string(s.path(int(s.occPath.At(int(s.docOccur.At(d))))))
		if strings.Contains(tree[path][0], word) {
			order = append(order, path)
		}
	}
	named := []string{"y/CommonWord.java", "z/common_word.c", "z/word.h"}
	order = append(slices.Clone(named), slices.DeleteFunc(order, func(p string) bool { return slices.Contains(named, p) })...)
	matches := make([]int, len(order))
	for i, p := range order {
		matches[i] = strings.Count(tree[p][0], word)
	}
	for _, shown := range []int{1, 10, 60, 100, 700, 4000} {
		for _, shards := range []int{0, 1, 2, 9} {
			res := ask(Request{MaxMatches: shown, Shards: shards})
			decided := order[:stoppedAt(matches, shown, shards)]
			total := 0
			for i := range decided {
				total += matches[i]
			}
			if res.Stats.Files != len(decided) || res.Stats.TotalMatches != total {
				t.Fatalf("%d shown, %d shards: %d files, %d matches; want %d, %d", shown, shards, res.Stats.Files, res.Stats.TotalMatches, len(decided), total)
			}
			want := slices.DeleteFunc(slices.Clone(all.Files), func(f File) bool { return !slices.Contains(decided, f.Path) })
			for i, f := range res.Files {
				if f.Path != want[i].Path || f.Score != want[i].Score {
					t.Fatalf("%d shown, %d shards: file %d is %s, not %s", shown, shards, i, f.Path, want[i].Path)
				}
			}
		}
	}
}

func TestStemsOf_splitsNamesIntoWords(t *testing.T) {
	t.Parallel()
	for literal, want := range map[string][]string{
		"mutex_lock_slow": {"mutex", "mutexlock", "mutexlockslow", "lock", "lockslow", "slow"},
		"->ReadAllBytes(": {"read", "readall", "readallbytes", "all", "allbytes", "bytes"},
		"HTTPServer":      {"httpserver"},
		"a_b":             nil,
		"x86_64":          {"x86", "x8664"},
		" {":              nil,
		"":                nil,
	} {
		var hashes []uint32
		for _, stem := range want {
			hashes = append(hashes, stemHash([]byte(stem)))
		}
		if got := stemsOf(literal); !reflect.DeepEqual(got, hashes) {
			t.Errorf("%q: %d stems, want %v", literal, len(got), want)
		}
	}
	for path, want := range map[string]string{"a/b/Mutex-Lock.test.go": "mutexlock", ".bashrc": "bashrc", "x/": "", "naïve.c": "naïve"} {
		if got := string(appendStem(nil, []byte(path))); got != want {
			t.Errorf("%s is called %q, want %q", path, got, want)
		}
	}
}
