package tool

import (
	"fmt"
	"sort"
	"strings"
)

// block is one file of an answer, with its lines. It is shown whole, in part, or not at all.
type block struct {
	head  string   // a line above the others, with its line end
	lines []string // each with its line end
	left  int      // of the lines, those that fit left out
}

// size returns the number of bytes of the block when shown whole.
func (b *block) size() int {
	n := len(b.head)
	for _, l := range b.lines {
		n += len(l)
	}
	return n
}

// share divides room (bytes) among blocks. Each block gets the bytes that it needs, but at most
// level. If level would be too low to show anything, the last blocks, which are the least relevant,
// get nothing.
func share(blocks []block, room int) (level, shown int) {
	shown = len(blocks)
	for ; shown > 0; shown-- {
		sizes := make([]int, shown)
		for i := range sizes {
			sizes[i] = blocks[i].size()
		}
		sort.Ints(sizes)

		// Raise the level to the size of the next larger block while all larger blocks can have as
		// much.
		left := room
		for i, s := range sizes {
			// Divide what the smaller blocks do not use among the others.
			level = left / (shown - i)
			if s > level {
				break
			}
			left -= s
			if i == shown-1 {
				return s, shown // everything fits
			}
		}

		if level >= leastShare || shown == 1 {
			return level, shown
		}
		// Skip numbers of blocks that cannot fit.
		shown = max(1, min(shown, room/leastShare+1))
	}
	return level, shown
}

// fit writes a block in at most level bytes, but at least one line. It returns the number of lines
// left out, and writes rest(left) for them.
func (b *block) fit(out *strings.Builder, level int, rest func(left int) string) (left int) {
	out.WriteString(b.head)
	// Count the head: with many files, the paths are most of the text.
	used := len(b.head)
	whole := b.size() <= level
	for i, l := range b.lines {
		// Cut only if that saves more than half of the smallest share.
		if !whole && i > 0 && used+len(l)+leastShare/2 > level {
			b.left = len(b.lines) - i
			out.WriteString(rest(b.left))
			return b.left
		}
		out.WriteString(l)
		used += len(l)
	}
	return 0
}

// writeBlocks completes the first line of an answer, then writes as many files as fit. It returns
// their number. one returns the call that shows file i alone; the end of the answer advises it for
// shortened files.
func writeBlocks(a *Args, out *strings.Builder, blocks []block, e *end, one func(i int) string) (shown int) {
	// The first line says how many files are shown, so compute that before writing them.
	level, shown := share(blocks, a.room()-out.Len())
	if shown < len(blocks) {
		fmt.Fprintf(out, "; %s shown", files(shown))
	}
	out.WriteByte('\n')

	// A shortened file has a mark of its own. The call that continues is advised once, at the end.
	shortened, first := 0, -1
	for i := range blocks[:shown] {
		left := blocks[i].fit(out, level, func(left int) string { return fmt.Sprintf("… %d more\n", left) })
		if left > 0 {
			// One call can show one file; the first is the most relevant.
			if first < 0 {
				first = i
			}
			shortened++
		}
	}

	if shortened > 0 {
		e.left = append(e.left, fmt.Sprintf("lines of %s (marked …); continue with %s", count(shortened, "file"), one(first)))
	}
	return shown
}

func files(n int) string {
	if n == 1 {
		return "the first file is"
	}
	return fmt.Sprintf("the first %d files are", n)
}
