package shard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/trigram"
)

// pathsFor returns n distinct paths in order, some with bytes that are not UTF-8.
func pathsFor(r *rand.Rand, n int) []string {
	parts := []string{"arch", "x86", "kernel", "traps", "Makefile", "a", "ab", "é", "K", "x\ny", "\xff", "tests", "mutex_lock", "v1.2"}
	var all []string
	for len(all) < n {
		p := ""
		for range 1 + r.IntN(5) {
			p += parts[r.IntN(len(parts))] + []string{"/", "_", "", "-"}[r.IntN(4)]
		}
		all = append(all, fmt.Sprintf("%s%d%s", p, r.IntN(n), []string{".c", ".go", "", ".", "\n"}[r.IntN(5)]))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func indexOf(t *testing.T, paths []string) *pathIndex {
	t.Helper()
	segments, starts := indexPaths(len(paths), func(p int) []byte { return []byte(paths[p]) })
	post, err := trigram.Open(segments, nil)
	if err != nil || segments == nil {
		t.Fatalf("there are no postings: %v", err)
	}
	return &pathIndex{post: post, starts: starts}
}

// Whatever the pattern is, every path that it matches is among the candidates.
func TestPathIndex_findsEveryMatchingPath(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	paths := pathsFor(r, 5000)
	x := indexOf(t, paths)

	texts := []query.Text{
		{Pattern: "traps"}, {Pattern: "TRAPS", Fold: true}, {Pattern: "zqxzq"}, {Pattern: "k", Fold: true}, {Pattern: "x\ny"}, {Pattern: "\n"},
		{Pattern: "mutex", WordBegins: true, WordEnds: true}, {Pattern: "lock", WordEnds: true},
	}
	for _, expr := range []string{`^arch/x86`, `^arch/`, `\.c$`, `traps\.c$`, `^Makefile$`, `^Makefile\d+$`, `a.*traps.*\.go$`, `^ab`, `b\z`, `x.y`, `(?s)x.y`, `(?m)^y`, `(?m)x$`,
		`é`, `(?i)É`, `\bab\b`, `traps|mutex`, `(tests/)+`, `[0-9]{4}`, `^.{3,9}$`, `$`, `^`, `\n$`, `\.$`, `[^/]+/kernel/[^/]+$`, `^[^/]+$`, `\xff`, `K`} {
		texts = append(texts, query.Text{Pattern: expr, Regexp: true}, query.Text{Pattern: expr, Regexp: true, Fold: true})
	}
	narrow := 0
	for i := range texts {
		texts[i].Field = query.Name
		p, err := compile(texts[i])
		if err != nil {
			t.Fatalf("%+v: %v", texts[i], err)
		}
		looked := make([]bool, len(paths))
		if !x.eachCandidate(p.formula, func(at int) { looked[at] = true }) {
			continue
		}
		narrow++
		for at, path := range paths {
			if !looked[at] && p.m.Matches([]byte(path)) {
				t.Errorf("%+v matches %q, which is no candidate", texts[i], path)
			}
		}
	}
	if narrow < 15 {
		t.Errorf("of %d patterns %d are narrowed", len(texts), narrow)
	}
}

// If few paths match a pattern, only similar paths are read.
func TestPathIndex_readsFewPathsWithoutAMatch(t *testing.T) {
	t.Parallel()
	var paths []string
	for i := range 50_000 {
		paths = append(paths, fmt.Sprintf("dir%03d/sub%03d/file%05d.c", i/1000, i/50, i))
	}
	x := indexOf(t, paths)
	for expr, most := range map[string]int{`zqxzq`: 0, `^dir007/sub143/`: 300, `file07193`: 300} {
		p, err := compile(query.Text{Pattern: expr, Regexp: true, Field: query.Name})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		if !x.eachCandidate(p.formula, func(int) { n++ }) || n > most {
			t.Errorf("%s: %d of %d paths are looked at, want at most %d", expr, n, len(paths), most)
		}
	}
}

// The memory of all indexes is bounded. Without room for an index, the answer is the same.
func TestPathIndex_staysWithinItsBytes(t *testing.T) {
	t.Parallel()
	const paths = minIndexedPaths + 500
	w := oneFile("lock")
	for i := range paths {
		w.trees[0][fmt.Sprintf("dir%d/file%04d.c", i/100, i)] = []string{fmt.Sprint("lock", i)}
	}
	q := &query.And{Subs: []query.Q{&query.Text{Pattern: "lock"}, &query.Text{Pattern: "dir7/file07", Field: query.Name}}}
	dir := t.TempDir()

	for _, c := range []struct {
		taken       int64 // by other files of the set
		least, most int64 // bytes of each path
	}{
		{0, 8, 40}, // the 8 of its lists and a third of the path
		{pathIndexBytes, 0, 0},
		{pathIndexBytes - 1, 0, 0},
	} {
		set, parts := w.built(t, dir, false, BuildOptions{})
		set.pathBytes.Add(c.taken)
		v, _ := set.Acquire(parts)
		w.check(t, v, q, 0)
		if per := (set.pathBytes.Load() - c.taken) / paths; per < c.least || per > c.most {
			t.Errorf("beside %d bytes the index takes %d bytes for each path, want %d to %d", c.taken, per, c.least, c.most)
		}
		v.Release()
		set.Close()
		if left := set.pathBytes.Load(); left != c.taken {
			t.Errorf("beside %d bytes, %d are taken after the files were closed", c.taken, left-c.taken)
		}
	}
}
