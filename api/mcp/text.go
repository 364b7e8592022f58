package mcp

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

const (
	// budget is how many bytes of text a result may have. Clients drop or
	// hide results that are much larger.
	budget = 32 << 10
	// reserve is kept for the first and the last line.
	reserve = 1 << 10
	// aside is how much of a long line is shown on each side of the match.
	aside = 200
	// leastShare is the smallest part of the budget that is worth giving to a
	// file: its path and a line.
	leastShare = 160

	complete = "Complete."
)

// count is a number with its noun in the right form.
func count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	case strings.HasSuffix(noun, "ch"):
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %s", n, noun+"s")
}

// clean makes valid UTF-8 of bytes of a file and drops what would break a line.
func clean(s []byte) string {
	text := strings.ToValidUTF8(string(s), "\uFFFD")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' {
			return '\uFFFD'
		}
		return r
	}, strings.TrimSuffix(text, "\r"))
}

// cut shortens a long line to what is around the match at from..to, marking
// what is left out with an ellipsis. A match that is itself long is shown
// from its start.
func cut(line string, from, to int) string {
	if len(line) <= 2*aside+(to-from) && len(line) <= 4*aside {
		return line
	}
	start, end := max(0, from-aside), min(len(line), min(to, from+2*aside)+aside)
	for start > 0 && !utf8.RuneStart(line[start]) {
		start--
	}
	for end < len(line) && !utf8.RuneStart(line[end]) {
		end++
	}
	out := line[start:end]
	if start > 0 {
		out = "…" + out
	}
	if end < len(line) {
		out += "…"
	}
	return out
}

// block is a part of a result that is shown whole, in part or not at all: a
// file with its lines.
type block struct {
	head  string   // a line above the others, with its line end
	lines []string // each with its line end
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
		left, total := room, 0
		for i, s := range sizes {
			level = left / (shown - i)
			if s > level {
				break
			}
			left -= s
			total += s
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
	used := len(b.head)
	whole := b.size() <= level
	for i, l := range b.lines {
		if !whole && i > 0 && used+len(l)+leastShare/2 > level {
			left = len(b.lines) - i
			out.WriteString(rest(left))
			return left
		}
		out.WriteString(l)
		used += len(l)
	}
	return 0
}
