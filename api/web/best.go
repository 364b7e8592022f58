package web

import (
	"cmp"
	"slices"

	"github.com/shoalsearch/shoal/shard"
)

// bestChunks parts the chunks of a file in those that are shown, at most n, the
// heaviest first, and the rest in the order of the file. Of equal ones the first in the
// file comes first.
func bestChunks(chunks []shard.Chunk, n int) (best, rest []shard.Chunk) {
	if len(chunks) <= n {
		return chunks, nil
	}

	// Indices are sorted, not the chunks, which stay in the order of the file.
	order := make([]int, len(chunks))
	for i := range order {
		order[i] = i
	}

	// Stable, so that among equal ones those that come first in the file are shown.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(chunks[b].Weight, chunks[a].Weight) })

	// There are only a few, so that a look through them is cheaper than a set.
	shown := order[:n]
	for _, i := range shown {
		best = append(best, chunks[i])
	}
	for i := range chunks {
		if !slices.Contains(shown, i) {
			rest = append(rest, chunks[i])
		}
	}
	return best, rest
}
