package shard

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/shard/query"
)

// extent is a definition as a test writes it down; lines count from 1.
type extent struct {
	name        string
	first, last int
}

// around returns the definition that encloses a line, by looking at every definition: of those that
// reach the line and are longer than their first line, the one that begins last.
func around(all []extent, line int) string {
	found := ""
	for _, x := range all { // ordered by where they begin
		if x.last > x.first && x.first <= line && line <= x.last {
			found = x.name
		}
	}
	return found
}

// The definitions lie within, beside and across each other, with one or none in a line. Some ends
// are unknown, or lie before the start or after the end of the text.
func TestAround_returnsTheEnclosingDefinition(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		tree, extents := map[string][]string{}, map[string][]extent{}
		for f := range 1 + r.IntN(5) {
			path := fmt.Sprintf("f%d.go", f)
			var text strings.Builder
			lines := r.IntN(120)
			for line := 1; line <= lines; line++ {
				for range r.IntN(3) {
					if r.IntN(4) > 0 {
						continue
					}
					x := extent{fmt.Sprintf("name%d_%d", line, text.Len()), line, line + r.IntN(lines/2+2) - 1}
					if x.last > lines {
						x.last = 0 // after the end nothing is known
					}
					extents[path] = append(extents[path], x)
					fmt.Fprintf(&text, "%s ", x.name)
				}
				text.WriteString([]string{"", "needle", "needle and needle", "\tother needle\r"}[r.IntN(4)])
				if line < lines || r.IntN(2) == 0 {
					text.WriteByte('\n')
				}
			}
			tree[path] = []string{text.String()}
		}
		w := &world{repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}}, trees: []map[string][]string{tree}}
		checkAround(t, w, extents, seed)
	}
}

// checkAround compares the answers for a world with a look at every definition, with symbols that
// were tagged and with symbols that were copied.
func checkAround(t *testing.T, w *world, extents map[string][]extent, seed uint64) {
	t.Helper()
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	tag := eachText(func(path string, content []byte, use func(Definition)) error {
		for _, x := range extents[path] {
			last := x.last
			if last == 0 {
				last = 1 << 20
			}
			use(Definition{Name: []byte(x.name), Kind: "function", Line: uint32(x.first), End: uint32(last)})
		}
		return nil
	})
	part, err := symbolize(set, parts[0], nil, tag)
	if err != nil {
		t.Fatal(err)
	}
	never := eachText(func(path string, _ []byte, _ func(Definition)) error {
		t.Errorf("%s is tagged again", path)
		return nil
	})
	copied, err := symbolize(set, parts[0], []Part{part}, never)
	if err != nil || copied != part {
		t.Fatalf("seed %d: copied %v, tagged %v, %v", seed, copied, part, err)
	}

	v, _ := set.Acquire([]Part{part})
	defer v.Release()
	for lines := range 3 {
		res, err := v.Search(context.Background(), Request{
			Q: &query.Text{Pattern: "needle", Field: query.Content}, MaxMatches: 10000, CountAll: true, ContextLines: lines, Around: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range res.Files {
			for _, c := range f.Chunks {
				for i, at := range c.Ranges {
					got, want := "", around(extents[f.Path], int(at.Start.Line))
					if c.Around != nil {
						got = c.Around[i].Name
					}
					if got != want {
						t.Fatalf("seed %d: %s:%d stands in %q, want %q\n%s", seed, f.Path, at.Start.Line, got, want, c.Content)
					}
				}
			}
		}
	}
}

// Without Around in the request, nothing is computed.
func TestAround_isComputedOnlyOnRequest(t *testing.T) {
	t.Parallel()
	tree := map[string][]string{"a.go": {"func Able() {\n\tneedle\n}\n"}}
	w := &world{repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}}, trees: []map[string][]string{tree}}
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	part, err := symbolize(set, parts[0], nil, eachText(func(_ string, content []byte, use func(Definition)) error {
		use(Definition{Name: content[5:9], Kind: "function", Line: 1, End: uint32(bytes.Count(content, newline))})
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := set.Acquire([]Part{part})
	defer v.Release()
	for _, wanted := range []bool{false, true} {
		res, err := v.Search(context.Background(), Request{Q: &query.Text{Pattern: "needle"}, Around: wanted})
		if err != nil || len(res.Files) != 1 {
			t.Fatal(res, err)
		}
		if got := res.Files[0].Chunks[0].Around; (got != nil) != wanted {
			t.Errorf("wanted %v, got %+v", wanted, got)
		}
	}
}
