package tool

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/node/paths"
)

const (
	// tokenBytes is roughly the number of bytes of code in a model's token.
	tokenBytes = 4
	// reserve is the number of bytes for the first and the last line.
	reserve = 400
	// aside is the number of bytes of a long line shown on each side of a match.
	aside = 200
	// leastShare is the smallest useful number of bytes for a file: its path and one line.
	leastShare = 160
)

// The parameter for the size of an answer, which every tool has.
var maxTokens = Param{Name: "maxTokens", Kind: Integer, Min: 500, Max: 8000, Default: 4000}

// room returns the number of bytes between the first and the last line of the answer. Clients drop
// or hide answers that are much larger than requested.
func (a *Args) room() int { return a.Number("maxTokens")*tokenBytes - reserve }

// count returns a number with its noun, in the singular or plural.
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

// clean is like visible, but first removes a carriage return at the end.
func clean(s []byte) string { return visible(bytes.TrimSuffix(s, []byte("\r"))) }

// visible returns a line of a file as valid UTF-8. Invalid bytes become replacement characters.
// Characters that are invisible, break the line or reverse its order are written as their codes.
func visible(s []byte) string {
	text := string(s)
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	return escapeHidden(text)
}

// label returns a foreign name, argument or line for use inside an answer. Invisible characters are
// written as codes, which mean the same in the arguments of a call.
func label(s string) string { return clean([]byte(s)) }

// fileLabel returns the name of a file as all answers write it.
func fileLabel(path string) string { return paths.Written(path) }

// escapeHidden replaces invisible and reordering characters by their JSON codes.
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

// cut shortens a long line to the text around the match at from..to, with ellipses. A long match is
// shown from its start.
func cut(line string, from, to int) string { return cutAround(line, from, to, aside) }

// cutAround is cut with another number of bytes on each side.
func cutAround(line string, from, to, aside int) string {
	if len(line) <= 2*aside+(to-from) && len(line) <= 4*aside {
		return line
	}

	start := max(0, from-aside)
	end := min(len(line), min(to, from+2*aside)+aside)

	// Do not cut within a character.
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

// of returns the repository to write before a path; "" if the call had its full name.
func of(a *Args, repo string) string {
	if a.asked == repo {
		return ""
	}
	return repo + " "
}

// noRoom adds that only the first shown entries of a page fit, with the call for the rest. That
// call has pages of another size, such that one begins at the first entry not shown, or before it.
func (e *end) noRoom(a *Args, noun string, shown, all int) {
	before := (a.Number("page") - 1) * a.Number("perPage")
	size := shown
	for before%size != 0 {
		size--
	}

	e.leaves(fmt.Sprintf("%s of this page, for lack of room; continue with %s", count(all-shown, noun), a.with("page", before/size+2, "perPage", size)))
}

// pages adds the call for the next page, if there is one. total is the number of all entries.
func (e *end) pages(a *Args, shown, total int) {
	page, per := a.Number("page"), a.Number("perPage")
	before := (page - 1) * per

	switch {
	// A page after the last is empty, which a model could take for the answer.
	case shown == 0 && total > 0 && page > 1:
		e.leaves(fmt.Sprintf("everything: there is no page %d, the last is %s", page, a.with("page", (total+per-1)/per)))
	case before+shown < total && shown > 0:
		e.leaves(fmt.Sprintf("%d more; continue with %s", total-before-shown, a.with("page", page+1)))
	}
}
