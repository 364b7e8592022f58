package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/shard"
)

func TestBestChunks_areShownFirst(t *testing.T) {
	t.Parallel()
	for weights, want := range map[string]string{
		"":        " | ",
		"3 1":     "0 1 | ",
		"1 1 1 1": "0 1 | 2 3",
		"1 3 2 3": "1 3 | 0 2",
		"0 0 5":   "2 0 | 1",
	} {
		var chunks []shard.Chunk
		for i, w := range strings.Fields(weights) {
			var weight float32
			if _, err := fmt.Sscan(w, &weight); err != nil {
				t.Fatal(err)
			}
			chunks = append(chunks, shard.Chunk{Content: []byte(fmt.Sprint(i)), Weight: weight})
		}

		best, rest := bestChunks(chunks, 2)
		if got := together(best) + " | " + together(rest); got != want {
			t.Errorf("of %q are shown %q, want %q", weights, got, want)
		}
	}
}

func together(chunks []shard.Chunk) string {
	var texts []string
	for i := range chunks {
		texts = append(texts, string(chunks[i].Content))
	}
	return strings.Join(texts, " ")
}
