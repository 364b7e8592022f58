package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/shard/query"
)

// A tally counts all matches of a file, also those that MaxPerFile leaves out. A listing tells in how many
// units a match may be: in at least those that have one.
func TestTally_countsTheMatchesOfEachPattern(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		tree := map[string][]string{}
		for f := range 1 + r.IntN(6) {
			var text strings.Builder
			for range r.IntN(3000) {
				text.WriteString([]string{"needle ", "thread ", "cloth\n", "\n", "a long line of other words\n"}[r.IntN(5)])
			}
			tree[fmt.Sprintf("f%d.go", f)] = []string{text.String()}
		}
		w := &world{repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}}, trees: []map[string][]string{tree}}
		set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
		v, _ := set.Acquire(parts)
		t.Cleanup(v.Release)

		either := &query.Or{Subs: []query.Q{&query.Text{Pattern: "needle", Field: query.Content}, &query.Text{Pattern: "thread", Field: query.Content}}}
		res, err := v.Search(context.Background(), Request{Q: either, MaxPerFile: 3, Tally: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range res.Files {
			for _, word := range []string{"needle", "thread"} {
				if want := strings.Count(tree[f.Path][0], word); f.Tally == nil || f.Tally.Matches[word] != want {
					t.Errorf("seed %d, %s: %+v, want %d of %s", seed, f.Path, f.Tally, want, word)
				}
			}
		}

		res, err = v.Search(context.Background(), Request{Q: either.Subs[0], NoChunks: true, FilesOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range res.Files {
			if units := 1 + len(tree[f.Path][0])/4096; f.Units < 1 || f.Units > units {
				t.Errorf("seed %d, %s: matches in %d of %d units", seed, f.Path, f.Units, units)
			}
		}
	}
}
