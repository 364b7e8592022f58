package web

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/shoalsearch/shoal/shard"
)

// mostTexts is how many different texts of a chunk are told apart.
const mostTexts = 12

// bestChunks parts the chunks of a file in those that are shown, at most n, and
// the rest; both stay in the order of the file. Shown are those with a line on
// which the most different matched texts stand:
//
//	func Tree    ->   func Tree(   before   func Walk(   and   // a tree
func bestChunks(chunks []shard.Chunk, n int) (best, rest []shard.Chunk) {
	if len(chunks) <= n {
		return chunks, nil
	}

	weights := make([]int, len(chunks))
	order := make([]int, len(chunks))
	for i := range chunks {
		weights[i], order[i] = weight(&chunks[i]), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })

	shown := order[:n]
	for i := range chunks {
		if slices.Contains(shown, i) {
			best = append(best, chunks[i])
		} else {
			rest = append(rest, chunks[i])
		}
	}
	return best, rest
}

// weight orders chunks: by the different texts on the line that has the most of
// them, then by those in the whole chunk.
func weight(c *shard.Chunk) int {
	var all, line [][]byte
	most, number := 0, uint32(0)
	for _, r := range c.Ranges {
		if r.Start.Line != number {
			line, number = line[:0], r.Start.Line
		}

		text := textOf(c, r)
		all, line = withText(all, text), withText(line, text)
		most = max(most, len(line))
	}
	return most*(mostTexts+1) + len(all)
}

// textOf is the part of a chunk that a range covers.
func textOf(c *shard.Chunk, r shard.Range) []byte {
	from := min(int(r.Start.Offset-c.Start.Offset), len(c.Content))
	to := min(int(r.End.Offset-c.Start.Offset), len(c.Content))
	return c.Content[from:max(from, to)]
}

// withText is a set of texts with another one, in small letters or not.
func withText(set [][]byte, text []byte) [][]byte {
	if len(set) == mostTexts || slices.ContainsFunc(set, func(t []byte) bool { return bytes.EqualFold(t, text) }) {
		return set
	}
	return append(set, text)
}
