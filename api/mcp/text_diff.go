package mcp

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node"
)

const (
	// leastHunks is the smallest part of the budget that is worth giving to
	// the lines of a changed file.
	leastHunks = 1 << 10
	// mostGroups is how many directories sum up what is too much to list.
	mostGroups = 120
)

// changed is one file of a difference, ready to be written.
type changed struct {
	block
	path        string
	plus, minus int
}

// diffText writes a unified diff. What is too large for that is a list of the
// files with the number of their lines, and then the lines of as many as fit;
// what is too large even for a list is summed up by directories.
func diffText(a *args, r *node.DiffResponse) string {
	if len(r.Files) == 0 {
		if path := a.text("path"); path != "" {
			return fmt.Sprintf("%s and %s do not differ below %s, or neither has it. All that differs: %s.\n%s",
				a.text("base"), a.text("head"), clean([]byte(path)), a.with("get_diff", "path", nil), complete)
		}
		return fmt.Sprintf("%s and %s do not differ.\n%s", a.text("base"), a.text("head"), complete)
	}
	files, plus, minus, size, names := make([]changed, len(r.Files)), 0, 0, 0, 0
	for i := range r.Files {
		files[i] = diffBlock(&r.Files[i])
		plus, minus = plus+files[i].plus, minus+files[i].minus
		size += files[i].size()
		names += len(files[i].line())
	}
	var out strings.Builder
	var left []string
	switch {
	case len(files) == 1: // its line is the first
		files[0].head = files[0].line()
	default:
		fmt.Fprintf(&out, "%s changed, +%d -%d lines\n", count(len(files), "file"), plus, minus)
	}
	switch {
	case len(files) == 1 && size > budget-2*reserve:
		rest := files[0].fit(&out, budget-2*reserve, func(int) string { return "" })
		left = append(left, "the last "+count(rest, "line")+" of the difference; read the file itself with read_file")
	case size <= budget-2*reserve:
		for i := range files {
			files[i].fit(&out, budget, nil)
		}
	case names <= budget/2:
		left = listed(&out, a, files, budget-2*reserve-names)
	default:
		left = summed(&out, a, files)
	}
	if r.Cut {
		left = append(left, "the difference is larger than can be read at once, and the numbers are too small; narrow it with path")
	}
	out.WriteString(ending(left))
	return out.String()
}

// line is a file in a list.
func (c *changed) line() string {
	return fmt.Sprintf("%s+%d -%d\n", c.head[:len(c.head)-1]+" ", c.plus, c.minus)
}

// listed writes all files in a list and the lines of those that fit.
func listed(out *strings.Builder, a *args, files []changed, room int) (left []string) {
	blocks := make([]block, 0, len(files))
	for i := range files {
		out.WriteString(files[i].line())
		blocks = append(blocks, files[i].block)
	}
	out.WriteByte('\n')
	// As many files as can be shown in a way that is of use: all lines of the
	// small ones, some of the large ones.
	shown := min(len(blocks), max(1, room/leastHunks))
	level, shown := share(blocks[:shown], room)
	shortened, first := 0, -1
	for i := range blocks[:shown] {
		if blocks[i].fit(out, level, func(left int) string { return fmt.Sprintf("… %d more lines\n", left) }) > 0 {
			if shortened++; first < 0 {
				first = i
			}
		}
	}
	if shortened > 0 {
		left = append(left, fmt.Sprintf("lines of %s (marked …); continue with %s", count(shortened, "file"), a.with("get_diff", "path", files[first].path)))
	}
	if hidden := files[shown:]; len(hidden) > 0 {
		left = append(left, fmt.Sprintf("the lines of %s from %s on; continue with %s", count(len(hidden), "file"), hidden[0].path, a.with("get_diff", "path", hidden[0].path)))
	}
	return left
}

// summed writes how much changed in each directory, as deep as there is room.
func summed(out *strings.Builder, a *args, files []changed) []string {
	var best []changed
	for depth := 1; depth < 10; depth++ {
		groups := grouped(files, depth)
		if best != nil && len(groups) > mostGroups {
			break
		}
		best = groups
	}
	slices.SortStableFunc(best, func(x, y changed) int { return cmp.Compare(len(y.lines), len(x.lines)) })
	for _, g := range best[:min(len(best), mostGroups)] {
		fmt.Fprintf(out, "%s: %s, +%d -%d\n", g.path, count(len(g.lines), "file"), g.plus, g.minus)
	}
	left := []string{"the names and lines of all files; continue with " + a.with("get_diff", "path", strings.TrimSuffix(best[0].path, "/")) + " or another path"}
	if len(best) > mostGroups {
		left = append(left, count(len(best)-mostGroups, "directory"))
	}
	return left
}

// grouped sums up files by the first elements of their paths. The lines of a
// group are its files.
func grouped(files []changed, depth int) []changed {
	var groups []changed
	at := map[string]int{}
	for _, f := range files {
		parts := strings.SplitAfterN(f.path, "/", depth+1)
		name := strings.Join(parts[:min(len(parts), depth)], "")
		i, ok := at[name]
		if !ok {
			i = len(groups)
			at[name] = i
			groups = append(groups, changed{path: name})
		}
		g := &groups[i]
		g.plus, g.minus, g.lines = g.plus+f.plus, g.minus+f.minus, append(g.lines, f.path)
	}
	return groups
}

// diffBlock is one file of a diff: a line with what happened to it, then its
// hunks.
func diffBlock(f *node.DiffFile) changed {
	from, to := clean([]byte(f.OldPath)), clean([]byte(f.NewPath))
	c := changed{path: cmp.Or(to, from)}
	switch {
	case from == "":
		c.head = "A " + to
	case to == "":
		c.head = "D " + from
	case from != to:
		c.head = "R " + from + " -> " + to
	default:
		c.head = "M " + to
	}
	if f.OldMode != f.NewMode && from != "" && to != "" {
		c.head += fmt.Sprintf(" (mode %s -> %s)", f.OldMode, f.NewMode)
	}
	c.head += "\n"
	if f.Binary {
		c.lines = append(c.lines, "Binary files differ\n")
	}
	for _, h := range f.Hunks {
		head := fmt.Sprintf("@@ -%d,%d +%d,%d @@", h.OldStart, h.OldLines, h.NewStart, h.NewLines)
		if h.Heading != "" {
			head += " " + cut(clean([]byte(h.Heading)), 0, 0)
		}
		c.lines = append(c.lines, head+"\n")
		for line := range strings.Lines(h.Body) {
			text := clean([]byte(strings.TrimSuffix(line, "\n")))
			if len(text) > longestLine {
				text = cutEnd(text, longestLine)
			}
			switch {
			case strings.HasPrefix(text, "+"):
				c.plus++
			case strings.HasPrefix(text, "-"):
				c.minus++
			}
			c.lines = append(c.lines, text+"\n")
		}
	}
	return c
}
