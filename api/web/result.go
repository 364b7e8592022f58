package web

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// The bounds of what a file of an answer shows, so that one file never floods
// the page.
const (
	openChunks   = 3       // of a file, unfolded
	foldedChunks = 20      // more of it, folded; the rest is a search in that file
	longestLine  = 1 << 10 // bytes of a line; of longer ones the part around the first match
)

// revisionOf returns the revision of a file in an answer, "" for HEAD, and its name for people: for
// HEAD, the branch that it points to.
func revisionOf(f *search.File, branch string) (rev, label string) {
	for _, full := range f.Branches {
		name := query.ShortRev(full)
		// Prefer HEAD, or the branch that it points to: a link without a revision stays valid
		// after a push.
		if name == "HEAD" || name == branch && full != "refs/tags/"+branch {
			return "", cmp.Or(branch, name)
		}
		if rev == "" {
			rev = cmp.Or(f.Ref, name)
		}
	}

	// A commit that is read from git has no other name.
	if commit.MatchString(rev) {
		return rev, short(rev)
	}
	return rev, rev
}

// commit is a hash of git, by which a revision is named that is not indexed.
var commit = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// showing is how much of a file a page shows.
type showing uint8

const (
	folded showing = iota // its best chunks, and others folded
	linked                // its best chunks, and a link to the others
	opened                // all that was found, and a link to the others
	entire                // all that was found: other pages have the others
)

// appendFile appends a file of an answer: its name, and its chunks with their
// marks. branch is the name of the repository's default branch.
func appendFile(dst []byte, f *search.File, branch string, box layout.Box, m marking, show showing) []byte {
	rev, label := revisionOf(f, branch)
	page := address(f.Repository, rev, "blob", f.Path)
	matches := max(f.Matches, rangesOf(f.Chunks))

	// The heading: path with its marks, repository, revision, language, count.
	dst = append(append(dst, "<article class=\"file\">\n<h2>"...), layout.Icon("file")...)
	dst = append(dst, `<a class="path" href="`...)
	dst = append(appendAttribute(dst, page), `">`...)
	dst = appendPath(dst, f.Path, marksOf(f.NameRanges, 0, len(f.Path)))
	dst = append(dst, `</a> <a class="repo chip" href="`...)
	dst = appendAttribute(dst, address(f.Repository, rev, "tree", ""))
	dst = append(append(dst, `">`...), layout.Name(f.Repository)...)
	dst = append(dst, `</a> <span class="dim">`...)
	if label != "" {
		dst = append(dst, layout.Name(label)...)
	}
	if label != "" && f.Language != "" {
		dst = append(dst, " · "...)
	}
	dst = layout.AppendText(dst, []byte(f.Language))
	dst = append(dst, "</span>"...)

	// Where files are the answer, none of the matches is drawn: the count leads to them.
	named := len(f.Chunks) == 0
	switch count := counted(matches, "match", "matches"); {
	case matches > 0 && named:
		dst = appendAttribute(append(dst, ` <a class="dim count" href="`...), searchURL(inFile(withoutType(box), f), 0))
		dst = append(append(append(dst, `">`...), count...), "</a>"...)
	case matches > 0:
		dst = fmt.Appendf(dst, ` <span class="dim count">%s</span>`, count)
	}
	dst = append(dst, "</h2>\n"...)

	best, rest := f.Chunks, []shard.Chunk(nil)
	if show < opened {
		best, rest = bestChunks(f.Chunks, openChunks)
	}
	m = m.forFile(f.Chunks)
	dst = appendChunks(dst, best, f.Language, sourcePage(page, f.Path), m)
	if more := matches - rangesOf(best); more > 0 && show != entire && !named {
		dst = appendFolded(dst, f, rest, more, page, box, m, show)
	}
	return append(dst, "</article>\n"...)
}

func rangesOf(chunks []shard.Chunk) int {
	sum := 0
	for i := range chunks {
		sum += len(chunks[i].Ranges)
	}
	return sum
}

// inFile returns a search limited to one of the files that it found.
func inFile(box layout.Box, f *search.File) layout.Box {
	path := string([]rune(f.Path)) // each byte that is no UTF-8 is one character
	expr := strings.ReplaceAll(regexp.QuoteMeta(path), "\ufffd", ".")
	box.Query = "reposet:" + query.Quote(f.Repository) + " file:" + fieldRegexp("^"+expr+"$") + " " + grouped(box.Query)
	return box
}

// withoutType returns a search for lines in place of files.
func withoutType(box layout.Box) layout.Box {
	box.Query = strings.TrimSpace(strings.ReplaceAll(box.Query, "type:file", ""))
	return box
}

// appendFolded appends the chunks behind the "more" button, and a link to the matches that are not
// on the page. more is the number of all hidden matches.
func appendFolded(dst []byte, f *search.File, rest []shard.Chunk, more int, page string, box layout.Box, m marking, show showing) []byte {
	// All of them, also those that the search has not brought.
	here := searchURL(inFile(box, f), 0)

	// Later pages, and results while typing, have no room for folded matches.
	if show != folded {
		dst = appendAttribute(append(dst, `<p class="more"><a href="`...), here)
		return fmt.Appendf(dst, "\">+%s more in this file</a></p>\n", layout.Grouping(more))
	}

	shown := rest[:min(len(rest), foldedChunks)]
	dst = fmt.Appendf(dst, `<details class="more"><summary>+%s more in this file</summary>`, layout.Grouping(more))
	dst = appendChunks(dst, shown, f.Language, sourcePage(page, f.Path), m)

	// More than was brought, or than a fold holds.
	if rangesOf(shown) < more {
		dst = append(dst, `<p><a href="`...)
		dst = append(appendAttribute(dst, here), `">all matches in this file</a></p>`...)
	}
	return append(dst, "</details>\n"...)
}

// appendChunks appends runs of lines.
func appendChunks(dst []byte, chunks []shard.Chunk, language, page string, m marking) []byte {
	if len(chunks) == 0 {
		return dst
	}
	dst = append(dst, `<div class="code" translate="no">`...)
	for i := range chunks {
		dst = appendChunk(dst, &chunks[i], language, page, m)
	}
	return append(dst, "</div>\n"...)
}

func appendChunk(dst []byte, c *shard.Chunk, language, page string, m marking) []byte {
	paint := newPainter(language, c.Open)
	// Matches are ranges of the file; those of a line are found by its offset.
	number, at := int(c.Start.Line), int(c.Start.Offset)
	before := int(c.Before)

	dst = append(dst, `<div class="chunk">`...)
	for rest := c.Content; len(rest) > 0; number++ {
		line, after, size := nextLine(rest)
		marks := m.keep(line, marksOf(c.Ranges, at, at+len(line)))
		// Colour even a line that is shown in part: it may open a comment that continues on the
		// next line.
		colours := paint.colours(line)

		dst = append(dst, `<div class="line`...)
		if len(marks) > 0 {
			dst = append(dst, " hit"...)
		}
		dst = append(appendAttribute(append(dst, `"><a href="`...), page), "#L"...)
		dst = append(appendInt(dst, number), `">`...)
		dst = append(appendInt(dst, number), `</a>`...)

		// A line may be a whole file. Its matches are what matters.
		behind := 0
		if len(after) == 0 {
			behind = int(c.After)
		}
		if len(line) > longestLine || before+behind > 0 {
			dst = appendLong(dst, line, marks, before, behind)
		} else {
			dst = appendCode(dst, line, colours, marks)
		}
		before = 0
		dst = append(dst, "</div>\n"...)

		rest, at = after, at+size
	}
	return append(dst, "</div>"...)
}

// appendLong appends the part of a long line around its first match, and says how much is missing.
// before and behind count bytes that were left out earlier.
func appendLong(dst, line []byte, marks []span, before, behind int) []byte {
	// A quarter of the room is for the text before the match.
	from := 0
	if len(marks) > 0 {
		from = max(0, marks[0].start-longestLine/4)
	}
	to := min(len(line), from+longestLine)
	if n := before + from; n > 0 {
		dst = fmt.Appendf(dst, `<span class="cut">%s</span>`, counted(n, "byte", "bytes"))
	}

	// Counted from where the part begins, and cut where it ends.
	var inside []span
	for _, m := range marks {
		if m.start < to {
			inside = append(inside, span{max(0, m.start-from), min(m.end, to) - from})
		}
	}
	dst = appendCode(dst, line[from:to], nil, inside)
	if n := len(line) - to + behind; n > 0 {
		dst = fmt.Appendf(dst, `<span class="cut">%s</span>`, counted(n, "byte", "bytes"))
	}
	return dst
}

// appendPath appends a path with marks in it, its directory apart from its name.
func appendPath(dst []byte, path string, marks []span) []byte {
	dir := strings.LastIndexByte(path, '/') + 1
	dst = append(dst, "<bdi>"...)
	if dir > 0 {
		dst = append(appendCode(append(dst, `<span class="dir">`...), []byte(path[:dir]), nil, cutMarks(marks, 0, dir)), "</span>"...)
	}
	return append(appendCode(dst, []byte(path[dir:]), nil, cutMarks(marks, dir, len(path))), "</bdi>"...)
}

// cutMarks returns the parts of marks between two positions, relative to the first.
func cutMarks(marks []span, from, to int) []span {
	var out []span
	for _, m := range marks {
		if start, end := max(m.start, from), min(m.end, to); start < end {
			out = append(out, span{start - from, end - from})
		}
	}
	return out
}

// marksOf returns the parts of ranges of a file between two offsets, relative to the first. Offsets
// count the file's own bytes, whatever its encoding.
func marksOf(ranges []shard.Range, from, to int) []span {
	var out []span
	for _, r := range ranges {
		start, end := max(int(r.Start.Offset), from), min(int(r.End.Offset), to)
		if start < end {
			out = append(out, span{start - from, end - from})
		}
	}
	return out
}

// address returns the page of a path in a repository. It writes @, and a slash in a revision, as
// %40 and %2F, so that the address is unambiguous.
func address(repo, rev, kind, path string) string {
	at := ""
	if rev != "" && rev != "HEAD" {
		at = "@" + strings.ReplaceAll(url.PathEscape(rev), "@", "%40")
	}
	if kind != "" {
		kind = "/-/" + kind + "/"
	}
	return "/browse/" + escaped(repo) + at + kind + escaped(path)
}

// escaped escapes a name for an address, except its slashes.
func escaped(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(url.PathEscape(p), "@", "%40")
	}
	return strings.Join(parts, "/")
}

// searchURL returns the address of a page of results. from is the number of matches on earlier
// pages.
func searchURL(b layout.Box, from int) string {
	// Only what differs from the plain search is named: the same search has one address.
	v := url.Values{"query": {b.Query}}
	if b.Regexp {
		v.Set("isRegexEnabled", "true")
	}
	if b.Case {
		v.Set("isCaseSensitivityEnabled", "true")
	}
	if b.Whole {
		v.Set("whole", "1")
	}

	if b.Context > 0 {
		v.Set("ctx", fmt.Sprint(b.Context))
	}
	if b.Grouped {
		v.Set("group", "repo")
	}
	if b.Best {
		v.Set("order", "best")
	}
	if from > 0 {
		v.Set("from", fmt.Sprint(from))
	}

	return "/search?" + v.Encode()
}

func appendAttribute(dst []byte, s string) []byte { return layout.AppendText(dst, []byte(s)) }

// counted formats a number with its noun.
func counted(n int, one, many string) string { return layout.Counted(n, one, many) }

// grouping writes a number with a comma between thousands.
func grouping(n int) string { return layout.Grouping(n) }
