package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/shard/query"
)

// oneFile returns a world with one file.
func oneFile(text string) *world {
	return &world{
		repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}},
		trees: []map[string][]string{{"a.js": {text}}},
	}
}

// longLines returns a text with lines from a few bytes to many times longLine, in which some words
// are rare and some frequent.
func longLines(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(6) {
		size := [...]int{0, 5, 300, longLine - 10, longLine + 10, 5 * longLine}[r.IntN(6)]
		rare := [...]int{3, 40, 4000}[r.IntN(3)]
		for from := b.Len(); b.Len() < from+size; {
			switch n := r.IntN(rare); {
			case n == 0:
				b.WriteString("lock")
			case n%7 == 1:
				b.WriteString("ß")
			case n%11 == 2:
				b.WriteByte(0x80)
			default:
				b.WriteByte("abcd "[n%5])
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Overlong lines are cut around matches. Positions are those of the file, and the answer says how
// much is left out. An answer that a limit cuts shows the same as a search for that many matches.
func TestLongLine_isCutAroundMatches(t *testing.T) {
	t.Parallel()
	cut := 0
	for seed := range 60 {
		r := rand.New(rand.NewPCG(uint64(seed), 6))
		w := oneFile(longLines(r))
		set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
		context := r.IntN(3)
		func() {
			v, _ := set.Acquire(parts)
			defer v.Release()
			w.check(t, v, &query.Text{Pattern: "lock"}, context)

			all := chunksOf(t, v, Request{MaxMatches: 1 << 20, ContextLines: context})
			for _, c := range all {
				if c.Before > 0 || c.After > 0 {
					cut++
				}
			}
			for n := 1; n < 40; n += 1 + r.IntN(8) {
				got, want := firstOf(all, n, context), chunksOf(t, v, Request{MaxMatches: n, ContextLines: context})
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("seed %d, %d matches, %d lines of context: cut %v, want %v", seed, n, context, shapes(got), shapes(want))
				}
			}
		}()
	}
	if cut == 0 {
		t.Error("no line was cut")
	}
}

func chunksOf(t *testing.T, v *View, r Request) []Chunk {
	t.Helper()
	r.Q, r.CountAll = &query.Text{Pattern: "lock"}, true
	res := answerOf(t, v, r)
	if len(res.Files) == 0 {
		return nil
	}
	return res.Files[0].Chunks
}

// firstOf returns the first n ranges of chunks.
func firstOf(chunks []Chunk, n, context int) (out []Chunk) {
	for _, c := range chunks {
		if n == 0 {
			break
		}
		if len(c.Ranges) > n {
			c = c.First(n, context)
		}
		n -= len(c.Ranges)
		out = append(out, c)
	}
	return out
}

func shapes(chunks []Chunk) (out []string) {
	for _, c := range chunks {
		out = append(out, fmt.Sprintf("%d+%d [-%d %+d] %d", c.Start.Offset, len(c.Content), c.Before, c.After, len(c.Ranges)))
	}
	return out
}

// The ends and columns of a line are found once, however many matches it has: a text of one line is
// searched only a few times.
func TestLongLine_isSearchedOnce(t *testing.T) {
	t.Parallel()
	const size = 1 << 17
	w := oneFile(strings.Repeat("a9ß\x80", size/5) + "\n" + strings.Repeat("b9", 2000) + "\n" + strings.Repeat("c9", size/2))
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	v, _ := set.Acquire(parts)
	defer v.Release()

	for _, q := range []query.Text{
		{Pattern: "9"},
		{Pattern: "9", Fold: true},
		{Pattern: "9ß"},
		{Pattern: `\b[a-c]9`, Regexp: true},
		{Pattern: `9.`, Regexp: true},
		{Pattern: `[^a]`, Regexp: true},
	} {
		for _, r := range []Request{{}, {ContextLines: 3}, {MaxPerFile: 500_000}} {
			p, err := newPlan(&q, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.MaxMatches = 1 << 20
			s := &search{v: v, r: r, p: p, gate: v.set.gate}
			e := &evaluator{p: p}
			looks, shown := lookThrough(t, s, e)
			if shown < 20_000 || looks > 20*size {
				t.Errorf("%s, %+v: %d bytes looked through for %d matches in %d bytes", q.Pattern, r, looks, shown, 2*size)
			}
		}
	}
}

// lookThrough finds and renders all matches of the only document in a view.
func lookThrough(t *testing.T, s *search, e *evaluator) (looks int64, shown int) {
	t.Helper()
	m := s.v.members[0]
	if err := m.ready(); err != nil {
		t.Fatal(err)
	}
	b, err := bind(s.p, m, &e.scratch)
	if err != nil {
		t.Fatal(err)
	}
	e.found, e.used = make([]finding, len(s.p.patterns)), make([]bool, len(s.p.patterns))
	e.moveTo(b, 0)
	spans, err := e.spansToShow(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	chunks, err := s.bestChunks(e, "", slices.Clone(spans), len(spans))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chunks {
		shown += len(c.Ranges)
	}
	return e.t.searchedBytes, shown
}

// If its client goes, a search stops in the middle of a file, in either round.
func TestLongLine_stopsWithTheRequest(t *testing.T) {
	t.Parallel()
	w := oneFile(strings.Repeat("a9", 1<<20))
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	v, _ := set.Acquire(parts)
	defer v.Release()

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if res, err := v.Search(ctx, Request{Q: &query.Text{Pattern: "9"}, MaxMatches: 1 << 20, CountAll: true}); err == nil {
		t.Errorf("%d files for nobody", len(res.Files))
	}

	p, err := newPlan(&query.Text{Pattern: "9"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &search{v: v, r: Request{MaxMatches: 1 << 20}, p: p, gate: v.set.gate}
	s.stop()
	if _, shown := lookThrough(t, s, &evaluator{p: p}); shown > 0 {
		t.Errorf("%d matches were rendered after the end", shown)
	}
}
