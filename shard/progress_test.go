package shard

import (
	"context"
	"testing"

	"github.com/shoalsearch/shoal/shard/query"
)

// At the end, Progress has counted all the work that the answer reports.
func TestSearchProgress_endsWithTheNumbersOfTheAnswer(t *testing.T) {
	t.Parallel()
	set, parts := manyFiles(3000).built(t, t.TempDir(), false, BuildOptions{})
	v, _ := set.Acquire(parts)
	defer v.Release()
	for _, all := range []bool{true, false} {
		p := &Progress{}
		res, err := v.Search(context.Background(), Request{Q: &query.Text{Pattern: "common word"}, CountAll: all, Progress: p})
		if err != nil {
			t.Fatal(err)
		}

		files, decided, found, bytes := p.Now()
		if files != int64(res.Stats.FilesConsidered) || bytes > int64(res.Stats.ContentBytes) || bytes == 0 {
			t.Errorf("all %v: told of %d files and %d bytes, the answer of %d and %d", all, files, bytes, res.Stats.FilesConsidered, res.Stats.ContentBytes)
		}
		if all && (decided != files || found != int64(res.Stats.TotalMatches)) || decided > files || decided == 0 {
			t.Errorf("all %v: told of %d of %d files and %d matches, the answer of %d", all, decided, files, found, res.Stats.TotalMatches)
		}
	}
}
