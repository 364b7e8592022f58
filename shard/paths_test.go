package shard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/shard/query"
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

// Whatever the pattern is, every path that it matches is among the candidates.
func TestPathIndex_findsEveryMatchingPath(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	paths := pathsFor(r, 5000)
	post, starts := blocksOf(len(paths), func(p int) []byte { return []byte(paths[p]) })
	if post == nil {
		t.Fatal("there are no postings")
	}
	x := &pathIndex{post: post, starts: starts}

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
		if !x.candidates(p.formula, func(at int) { looked[at] = true }) {
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
func TestPathIndex_readsFewPaths(t *testing.T) {
	t.Parallel()
	var paths []string
	for i := range 50_000 {
		paths = append(paths, fmt.Sprintf("dir%03d/sub%03d/file%05d.c", i/1000, i/50, i))
	}
	post, starts := blocksOf(len(paths), func(p int) []byte { return []byte(paths[p]) })
	x := &pathIndex{post: post, starts: starts}
	for expr, most := range map[string]int{`zqxzq`: 0, `^dir007/sub143/`: 300, `file07193`: 300} {
		p, err := compile(query.Text{Pattern: expr, Regexp: true, Field: query.Name})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		if !x.candidates(p.formula, func(int) { n++ }) || n > most {
			t.Errorf("%s: %d of %d paths are looked at, want at most %d", expr, n, len(paths), most)
		}
	}
}
