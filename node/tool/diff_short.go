package tool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/shard"
)

// A patch that fits an answer may still be long. Then it has one line of context, long runs are cut, and
// the files for which there is no room are told by their counts.
const (
	patchBytes   = 5000 // of a patch that is shown whole
	manyHunks    = 6    // above which a change has one line of context
	longestRun   = 12   // added or removed lines in a row, above which a run is cut
	linesOfARun  = 6    // that are shown of a longer one
	shortContext = 1
)

// bound returns the number of bytes that the patch of an answer may take without being shortened.
func (c *comparison) bound() int {
	if c.Has("maxTokens") || c.mode != "auto" {
		return c.room()
	}
	return min(c.room(), patchBytes)
}

// lessContext leaves one line around each change if there are many, unless the caller asked for context.
func (c *comparison) lessContext() {
	hunks := 0
	for i := range c.files {
		hunks += len(c.files[i].diff.Hunks)
	}
	if c.Has("context") || hunks <= manyHunks {
		return
	}
	for i := range c.files {
		f := *c.files[i].diff
		f.Hunks = nil
		for k := range c.files[i].diff.Hunks {
			f.Hunks = append(f.Hunks, withContext(&c.files[i].diff.Hunks[k], shortContext)...)
		}
		plus, minus := c.files[i].plus, c.files[i].minus
		c.files[i] = diffBlock(&f)
		c.files[i].plus, c.files[i].minus = plus, minus
	}
	c.measure()
}

// measure computes the size of the patch anew.
func (c *comparison) measure() {
	c.size = 0
	for i := range c.files {
		c.size += c.files[i].size()
	}
}

// withContext divides a hunk into those with at most n lines around each change.
func withContext(h *browse.DiffHunk, n int) (hunks []browse.DiffHunk) {
	lines := slices.Collect(strings.Lines(h.Body))
	keep := make([]bool, len(lines))
	for i, line := range lines {
		if line[0] != '+' && line[0] != '-' {
			continue
		}
		for k := max(0, i-n); k <= min(len(lines)-1, i+n); k++ {
			keep[k] = true
		}
	}

	old, head := h.OldStart, h.NewStart
	var part *browse.DiffHunk
	for i, line := range lines {
		// A line such as "\ No newline at end of file" is of the line before it.
		if line[0] == '\\' {
			if part != nil {
				part.Body += line
			}
			continue
		}
		if !keep[i] {
			part = nil
		} else if part == nil {
			hunks = append(hunks, browse.DiffHunk{OldStart: old, NewStart: head, Heading: h.Heading})
			part = &hunks[len(hunks)-1]
		}
		if line[0] != '+' {
			old++
			if part != nil {
				part.OldLines++
			}
		}
		if line[0] != '-' {
			head++
			if part != nil {
				part.NewLines++
			}
		}
		if part != nil {
			part.Body += line
		}
	}
	return hunks
}

// cutRuns shortens long runs of added or removed lines. It returns the number of lines left out.
func (c *comparison) cutRuns() (left int) {
	for i := range c.files {
		var lines []string
		all := c.files[i].lines
		for from := 0; from < len(all); {
			to := from + 1
			sign := all[from][0]
			for to < len(all) && all[to][0] == sign {
				to++
			}
			if run := to - from; (sign == '+' || sign == '-') && run > longestRun {
				lines = append(lines, all[from:from+linesOfARun]...)
				lines = append(lines, fmt.Sprintf("… %d more %c lines\n", run-linesOfARun, sign))
				left += run - linesOfARun
			} else {
				lines = append(lines, all[from:to]...)
			}
			from = to
		}
		c.files[i].lines = lines
	}
	c.measure()
	return left
}

// brief writes the begin of a patch that is longer than the bound, source before tests and prose. Behind it
// are the files without room, by their counts.
func (c *comparison) brief(out *strings.Builder, e *end) {
	slices.SortStableFunc(c.files, func(x, y changed) int { return int(shard.PathRank(x.path)) - int(shard.PathRank(y.path)) })
	room := c.bound() - out.Len()
	cut := 0
	if c.size > room {
		cut = c.cutRuns()
	}

	first := "" // the first file that is not shown whole
	for i := range c.files {
		f := &c.files[i]
		if first == "" && i > 0 && room < len(f.line())+leastShare {
			first = f.path
		}
		out.WriteString(f.line())
		room -= len(f.line())
		for k, line := range f.lines {
			if first != "" {
				break
			}
			// A single line that is left is not worth another call.
			if len(line) > room && k > 0 && k+1 < len(f.lines) {
				first = f.path
				fmt.Fprintf(out, "… %d more lines\n", len(f.lines)-k)
				break
			}
			out.WriteString(line)
			room -= len(line)
		}
	}
	switch {
	case first != "" && len(c.files) > 1:
		e.leaves("what has no lines above; continue with " + c.with("path", first, "mode", "patch") + " or another path")
	case first != "":
		e.leaves("the rest of the patch; continue with " + c.with("mode", "patch"))
	case cut > 0:
		e.leaves(count(cut, "line") + " of long runs; continue with " + c.with("mode", "patch"))
	}
}
