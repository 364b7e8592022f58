package web

import (
	"cmp"
	"slices"

	"github.com/shoalsearch/shoal/shard"
)

// bestChunks splits the chunks of a file: the n heaviest to show, and the rest, both in the order
// of the file. If weights are equal, the first chunk wins.
func bestChunks(chunks []shard.Chunk, n int) (best, rest []shard.Chunk) {
	if len(chunks) <= n {
		return chunks, nil
	}

	// Sort indices, because the chunks stay in the order of the file.
	order := make([]int, len(chunks))
	for i := range order {
		order[i] = i
	}

	// Stable, so that the first of equal chunks is shown.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(chunks[b].Weight, chunks[a].Weight) })

	// A linear search, because n is small.
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
