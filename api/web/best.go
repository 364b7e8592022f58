package web

import (
	"cmp"
	"slices"

	"github.com/shoalsearch/shoal/shard"
)

// bestChunks splits the chunks of a file into the n with the largest weights, and the others, both in
// the order of the file. Of chunks with the same weight, earlier ones come first.
func bestChunks(chunks []shard.Chunk, n int) (best, rest []shard.Chunk) {
	if len(chunks) <= n {
		return chunks, nil
	}

	// Sort indices, because the chunks must stay in the order of the file.
	order := make([]int, len(chunks))
	for i := range order {
		order[i] = i
	}

	// Sort stably, so that earlier chunks win.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(chunks[b].Weight, chunks[a].Weight) })

	bestIndices := order[:n]
	for _, i := range bestIndices {
		best = append(best, chunks[i])
	}
	for i := range chunks {
		if !slices.Contains(bestIndices, i) { // n is small
			rest = append(rest, chunks[i])
		}
	}
	return best, rest
}
