package tool

import (
	"fmt"
	"sort"
	"strings"
)

// block is a part of a result that is shown whole, in part or not at all: a
// file with its lines.
type block struct {
	head  string   // a line above the others, with its line end
	lines []string // each with its line end
	left  int      // of the lines, those that fit left out
}

func (b *block) size() int {
	n := len(b.head)
	for _, l := range b.lines {
		n += len(l)
	}
	return n
}

// share divides room fairly among blocks: every block gets what it needs up to
// one level, which is as high as the room allows. When the level would be too
// low to show anything, the last blocks, the least relevant ones, get nothing.
func share(blocks []block, room int) (level, shown int) {
	shown = len(blocks)
	for ; shown > 0; shown-- {
		sizes := make([]int, shown)
		for i := range sizes {
			sizes[i] = blocks[i].size()
		}
		sort.Ints(sizes)

		// The level rises to the size of the next larger block as long as all those
		// above it can have as much.
		left := room
		for i, s := range sizes {
			// What the smaller blocks leave of their parts is divided among the rest.
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
		// Skip ahead: so many cannot fit.
		shown = max(1, min(shown, room/leastShare+1))
	}
	return level, shown
}

// fit writes a block within a level and returns how many lines it left out.
// At least one line is written.
func (b *block) fit(out *strings.Builder, level int, rest func(left int) string) (left int) {
	out.WriteString(b.head)
	// The head counts too: with many files the paths are most of the text.
	used := len(b.head)
	whole := b.size() <= level
	for i, l := range b.lines {
		// A cut is worth its line only where more than half a share is left out.
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

// writeBlocks ends the first line and writes files within the budget. It
// returns how many are shown, and adds to the end that lines of some are not.
// one is the call for the file with a number.
func writeBlocks(a *Args, out *strings.Builder, blocks []block, e *end, one func(i int) string) (shown int) {
	// Only now is it known how many have room: the first line tells it before the files come.
	level, shown := share(blocks, a.room()-out.Len())
	if shown < len(blocks) {
		fmt.Fprintf(out, "; %s shown", files(shown))
	}
	out.WriteByte('\n')

	// A file that was cut has its own mark; the call that goes on is told once, at the end.
	shortened, first := 0, -1
	for i := range blocks[:shown] {
		left := blocks[i].fit(out, level, func(left int) string { return fmt.Sprintf("… %d more\n", left) })
		if left > 0 {
			// One call can show one file: the first is the most relevant one.
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
