package tool

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/symbols"
)

// mostOverLines is the largest number of files that are read to count matches over several lines.
const mostOverLines = 1000

// overLines counts the matches of the original pattern that the answer misses because they span
// lines, and adds the call that finds them; "" if there are none.
func (g *grepping) overLines(ctx context.Context, v catalog.Viewer, s symbols.Searcher) string {
	if g.pattern == g.written || !hidesMatches(g.written) {
		return ""
	}
	call := g.with("pattern", overPattern(g.Text("pattern")), "limit", nil, "offset", nil)

	req := g.request()
	req.Pattern, req.Limit, req.Context, req.Counts = g.written, mostOverLines, 0, false
	r, err := s.Grep(ctx, v, req)
	if err != nil {
		return "what matches over lines: " + call
	}

	written, within := regexp.MustCompile("(?m)"+g.written), regexp.MustCompile("(?m)"+g.pattern)
	lost := 0
	for i := range r.Files {
		lost += hiddenIn(r.Files[i].Lines, written, within)
	}
	switch {
	case r.Coverage.Worst() == coverage.Limit || r.Coverage.Worst() == coverage.Late:
		return fmt.Sprintf("at least %d more over lines: %s", lost, call)
	case lost == 0:
		return ""
	}
	return fmt.Sprintf("%d more over lines: %s", lost, call)
}

// overPattern returns a pattern with RE2's meaning: its classes match line ends, and its dots do
// not, unless they have their own (?s).
func overPattern(pattern string) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err == nil && hasDot(re) {
		return "(?s)(?-s:" + pattern + ")"
	}
	return "(?s)" + pattern
}

// hasDot reports whether a pattern has a dot that does not match line ends.
func hasDot(re *syntax.Regexp) bool {
	for _, sub := range re.Sub {
		if hasDot(sub) {
			return true
		}
	}
	return re.Op == syntax.OpAnyCharNotNL
}

// hidesMatches reports whether a pattern may have matches that only exist across lines. Optional
// white space at its edges, as in ^\s*if, does not count: the rest matches without it.
func hidesMatches(pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.Perl&^syntax.OneLine)
	if err != nil {
		return false
	}

	parts := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		parts = re.Sub
	}
	for len(parts) > 0 && isEdge(parts[0]) {
		parts = parts[1:]
	}
	for len(parts) > 0 && isEdge(parts[len(parts)-1]) {
		parts = parts[:len(parts)-1]
	}
	for _, part := range parts {
		if changed, _ := loseLineEnds(part); changed {
			return true
		}
	}
	return false
}

// isEdge reports whether a part of an expression is ^, $, or optional white space.
func isEdge(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine:
		return true
	case syntax.OpStar:
		sub := re.Sub[0]
		return sub.Op == syntax.OpCharClass && spacesOnly(sub.Rune)
	}
	return false
}

// spacesOnly reports whether a class only has white space.
func spacesOnly(ranges []rune) bool {
	for i := 0; i < len(ranges); i += 2 {
		blank := ranges[i] == ' ' && ranges[i+1] == ' '
		control := ranges[i] >= '\t' && ranges[i+1] <= '\r'
		if !blank && !control {
			return false
		}
	}
	return true
}

// hiddenIn counts the matches of the original pattern that the single-line pattern misses: on some
// line they have text that it does not match.
func hiddenIn(lines []browse.Line, written, within *regexp.Regexp) (hidden int) {
	for _, run := range runsOfLines(lines) {
		// Append a newline, because a match may include the end of its last line.
		run = append(run, '\n')
		for _, at := range written.FindAllIndex(run, -1) {
			if showsLess(run, at[0], at[1], within) {
				hidden++
			}
		}
	}
	return hidden
}

// showsLess reports whether the match from..to has text on a line that the single-line pattern does
// not match.
func showsLess(text []byte, from, to int, within *regexp.Regexp) bool {
	for from < to {
		end := from + len(text[from:]) // of the line
		if n := bytes.IndexByte(text[from:], '\n'); n >= 0 {
			end = from + n
		}
		line := text[bytes.LastIndexByte(text[:from], '\n')+1 : end]
		if len(bytes.TrimSpace(text[from:min(end, to)])) > 0 && !within.Match(line) {
			return true
		}
		from = end + 1
	}
	return false
}
