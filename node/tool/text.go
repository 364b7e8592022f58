package tool

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/node/paths"
)

const (
	// tokenBytes is about how many bytes of code make a token of a model.
	tokenBytes = 4
	// reserve is kept for the first and the last line.
	reserve = 400
	// aside is how much of a long line is shown on each side of the match.
	aside = 200
	// leastShare is the smallest part of the budget that is worth giving to a
	// file: its path and a line.
	leastShare = 160
)

// The parameter of how much a caller wants to read, which every tool has.
var maxTokens = Param{Name: "maxTokens", Kind: Integer, Min: 500, Max: 8000, Default: 4000}

// room is how many bytes of text the answer may have between its first and its
// last line. Clients drop or hide what is much larger than they want.
func (a *Args) room() int { return a.Number("maxTokens")*tokenBytes - reserve }

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

// clean is visible for a line that may still have the carriage return of its end.
func clean(s []byte) string { return visible(bytes.TrimSuffix(s, []byte("\r"))) }

// visible is a line of a file as text: each byte that is no UTF-8 is a replacement character,
// and what would break the line, hides, or turns its order around is written by its code.
func visible(s []byte) string {
	text := string(s)
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	return escapeHidden(text)
}

// label is a name, an argument or a line that somebody else wrote, as it stands
// between the words of an answer: what does not show there is written by its code,
// which means the same in the arguments of a call.
func label(s string) string { return clean([]byte(s)) }

// fileLabel is the name of a file in its one written form.
func fileLabel(path string) string { return paths.Written(path) }

// escapeHidden writes what does not show, or reorders the text around it, as JSON
// writes a character by its code.
func escapeHidden(text string) string {
	if strings.IndexFunc(text, paths.Hidden) < 0 {
		return text
	}
	var shown strings.Builder
	for _, r := range text {
		if paths.Hidden(r) {
			shown.WriteString(paths.Escape(r))
		} else {
			shown.WriteRune(r)
		}
	}
	return shown.String()
}

// cut shortens a long line to what is around the match at from..to, marking
// what is left out with an ellipsis. A match that is itself long is shown
// from its start.
func cut(line string, from, to int) string {
	if len(line) <= 2*aside+(to-from) && len(line) <= 4*aside {
		return line
	}

	start := max(0, from-aside)
	end := min(len(line), min(to, from+2*aside)+aside)

	// A letter of several bytes is not cut through.
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

// cutEnd keeps about n bytes of the start of a line.
func cutEnd(s string, n int) string {
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// of names a repository in front of a path unless the call had its full name.
func of(a *Args, repo string) string {
	if a.asked == repo {
		return ""
	}
	return repo + " "
}

// noRoom adds that only the first entries of a page fit, and names the call for the rest. Its pages
// have a size for which one begins at the first entry that is not shown, or before it.
func (e *end) noRoom(a *Args, noun string, shown, all int) {
	before := (a.Number("page") - 1) * a.Number("perPage")
	size := shown
	for before%size != 0 {
		size--
	}

	e.leaves(fmt.Sprintf("%s of this page, for lack of room; continue with %s", count(all-shown, noun), a.with("page", before/size+2, "perPage", size)))
}

// pages adds what a page of a list leaves out that has a known number of entries.
func (e *end) pages(a *Args, shown, total int) {
	page, per := a.Number("page"), a.Number("perPage")
	before := (page - 1) * per

	switch {
	// Behind the last page there is nothing to read, and a model would take that for an answer.
	case shown == 0 && total > 0 && page > 1:
		e.leaves(fmt.Sprintf("everything: there is no page %d, the last is %s", page, a.with("page", (total+per-1)/per)))
	case before+shown < total && shown > 0:
		e.leaves(fmt.Sprintf("%d more; continue with %s", total-before-shown, a.with("page", page+1)))
	}
}
