package web

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/search"
	changes "github.com/shoalsearch/shoal/shard/change"
)

// The size of a page of commits.
const (
	pageCommits  = 40 // commits, or changed files, on a page
	typedCommits = 10 // the same, while somebody types the query
	commitFiles  = 5  // files shown of one commit
	fileRows     = 40 // lines shown of one file
	nearRows     = 3  // lines shown before and after one that matches
	messageRows  = 5  // matching lines shown of a message, below its first line
)

// findCommits searches for the page of commits that begins after the position after; "" for the first.
func (p *searching) findCommits(ctx context.Context, v catalog.Viewer, r *results, after string) (*heap, error) {
	req := search.Request{
		Query: r.Query, Regexp: r.Regexp, CaseSensitive: r.Case, Words: r.Whole,
		Matches: pageCommits, After: after, Best: r.Best, Facets: after == "" && !r.typed, Releases: !r.typed,
	}
	if r.typed {
		req.Matches = typedCommits
		if !strings.Contains(req.Query, "timeout:") {
			req.Query = "timeout:" + typedTime.String() + " " + req.Query
		}
	}
	found, err := p.searcher.SearchCommits(ctx, v, req)
	return &heap{commits: found}, err
}

// fillCommits sets the page's fields from the answer of a search for commits.
func (r *results) fillCommits(found *search.CommitsResponse) {
	of := "commits"
	r.Summary = counted(found.Total, "commit", "commits")
	if found.Diff {
		of, r.Summary = "changed files", counted(found.Total, "changed file", "changed files")
	}

	r.Proof = proof{Complete: found.Coverage.Complete() || found.Coverage.Cut() && found.Exact, Gaps: found.Uncovered}
	r.Proof.Text = "counted exactly in the whole history, " + milliseconds(found.Took)
	switch {
	case found.Coverage.Cut() && !found.Exact:
		r.Summary, r.Proof.Text = "≥ "+r.Summary, "the first of all, not all counted, "+milliseconds(found.Took)
		if !strings.Contains(r.Query, "count:") {
			all := r.Box
			all.Query = "count:all " + r.Query
			r.CountAll = searchURL(all, 0)
		}
	case !r.Proof.Complete:
		r.Summary = "≥ " + r.Summary
		r.Proof.Warn, r.Proof.Text = true, "not complete: some commits were not searched, "+milliseconds(found.Took)
	case found.Named > 0:
		r.Proof.Text = fmt.Sprintf("counted exactly, but for %s, %s", counted(found.Named, "binary or huge change", "binary or huge changes"), milliseconds(found.Took))
	}
	r.Notes = append(r.Notes, found.Hints...)
	r.Proof.Numbers = []number{{"Binary and huge changes, known by name only", grouping(found.Named)}, {"Shown here, of all " + of, grouping(len(found.Commits))}, {"The node's own time", milliseconds(found.Took)}}

	r.Chips, r.Copies, r.Views = chipsOf(r.Box), copiesOf(r.Box), []viewList{ordersOf(r.Box)}
	r.Sides = sidesOf(r.Box)
	if found.Facets != nil {
		r.Narrow = narrowing{Facets: commitFacets(found.Facets, r.Box)}
	}
	var dst []byte
	for i := range found.Commits {
		dst = r.appendCommit(dst, &found.Commits[i])
	}
	r.Files = template.HTML(dst)
	r.Empty, r.Trend = len(found.Commits) == 0, searchURL(r.Box, 0)+"&trend=month"
	if found.Next != "" && !r.typed {
		r.Next = searchURL(r.Box, 0) + "&after=" + url.QueryEscape(found.Next)
	}
}

// ordersOf returns links to the same search in the orders that commits may have.
func ordersOf(b layout.Box) viewList {
	newest, best := b, b
	newest.Best, best.Best = false, true
	return viewList{"Order", []view{{"newest first", searchURL(newest, 0), !b.Best}, {"best first", searchURL(best, 0), b.Best}}}
}

// lineFilters has the filters for added and for removed lines.
var lineFilters = []struct{ name, filter string }{{"± both", ""}, {"+ added", "added:"}, {"− removed", "removed:"}}

// sidesOf returns links to the same search in added lines, in removed lines, and in both. It returns nil
// for a query that does not search in lines.
func sidesOf(b layout.Box) []view {
	var out []view
	for _, s := range lineFilters {
		other := b
		other.Query = withLineFilter(b.Query, s.filter, diffQuery.MatchString(b.Query))
		out = append(out, view{s.name, searchURL(other, 0), other.Query == b.Query})
	}
	if out[1].URL == out[2].URL || !slices.ContainsFunc(out, func(v view) bool { return v.Here }) {
		return nil
	}
	return out
}

// withLineFilter returns a query that searches for its texts in lines of one kind: filter is added:,
// removed:, or "" for both. plainInLines means that a text without a filter searches in lines, as with
// type:diff. Otherwise it searches in messages, and stays unchanged.
func withLineFilter(q, filter string, plainInLines bool) string {
	tokens := tokensNamed(q, changeName)
	for i, t := range slices.Backward(tokens) {
		not, text := "", t.text
		if rest, cut := strings.CutPrefix(text, "-"); cut && len(rest) > 0 {
			not, text = "-", rest
		}
		switch {
		case t.filter == "added" || t.filter == "removed":
			_, value, _ := strings.Cut(text, ":")
			if filter == "" && !plainInLines {
				continue // without its filter the text would search in messages
			}
			text = filter + value
		case t.filter != "" || !plainInLines || isOperator(tokens, i):
			continue
		case strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")"):
			text = "(" + withLineFilter(text[1:len(text)-1], filter, plainInLines) + ")"
		default:
			text = filter + text
		}
		q = q[:t.start] + not + text + q[t.start+len(t.text):]
	}
	return q
}

// commitFacets returns the facets of found commits: repositories, authors, and months or years.
func commitFacets(found *search.CommitFacets, b layout.Box) []facet {
	var out []facet
	for _, k := range commitFacetKinds {
		if f := facetOf(k.facetKind, k.values(found), found.Exact, b, facetRows); len(f.Rows) > 0 {
			out = append(out, f)
		}
	}
	if f := monthFacet(found, b); len(f.Rows) > 0 {
		out = append(out, f)
	}
	return out
}

var commitFacetKinds = []struct {
	facetKind
	values func(*search.CommitFacets) []search.FacetValue
}{
	{facetKinds[0], func(f *search.CommitFacets) []search.FacetValue { return f.Repositories }},
	{facetKind{name: "Authors", filter: func(v string) string { return "author:" + fieldRegexp("^"+quoteMeta(v)+" <") }, wrote: regexp.MustCompile(`^author:"?\^[^*|$]* <"?$`)},
		func(f *search.CommitFacets) []search.FacetValue { return f.Authors }},
}

// monthFacet returns the facet of months, or of years if there are many months.
func monthFacet(found *search.CommitFacets, b layout.Box) facet {
	f := facet{Name: "Months"}
	values := found.Months
	if len(values) > facetRows {
		f.Name, values = "Years", nil
		for _, m := range found.Months {
			year, _, _ := strings.Cut(m.Value, "-")
			if n := len(values); n == 0 || values[n-1].Value != year {
				values = append(values, search.FacetValue{Value: year})
			}
			values[len(values)-1].Files += m.Files
		}
	}
	rest := dateFilters.ReplaceAllString(b.Query, " ")
	rest = strings.Join(strings.Fields(rest), " ")
	for _, v := range values {
		with, span := b, "since:"+v.Value+" until:"+v.Value
		row := facetRow{Value: v.Value, Chosen: strings.Contains(b.Query, span)}
		if with.Query = rest; !row.Chosen {
			with.Query = strings.TrimSpace(span + " " + grouped(rest))
		}
		row.Include = searchURL(with, 0)
		if found.Exact {
			row.Count = grouping(v.Files)
		}
		f.Rows = append(f.Rows, row)
	}
	return f
}

// dateFilters matches the filters that monthFacet writes.
var dateFilters = regexp.MustCompile(`(?:^|\s)(?:since|until):\S+`)

// appendCommit appends a commit: its head, the matching lines of its message, and its first files.
func (r *results) appendCommit(dst []byte, c *search.FoundCommit) []byte {
	page := address(c.Repository, "", "commit", c.ID)
	subject, body, _ := strings.Cut(c.Message, "\n")
	name, _, _ := strings.Cut(c.Author, " <")

	dst = append(append(dst, "<article class=\"file commit\">\n<h2>"...), layout.Icon("commit")...)
	dst = append(appendAttribute(append(dst, `<a class="path words" href="`...), page), `">`...)
	if strings.TrimSpace(subject) == "" {
		subject = "(no message)"
	}
	dst = append(appendCode(append(dst, "<bdi>"...), []byte(subject), nil, cutMarks(spansIn(c.Marks), 0, len(subject))), "</bdi></a>"...)
	dst = append(appendAttribute(append(dst, ` <a class="repo chip" href="`...), address(c.Repository, "", "tree", "")), `">`...)
	dst = append(append(dst, layout.Name(c.Repository)...), "</a>"...)
	dst = fmt.Appendf(dst, ` <span class="dim by">%s, <time title="%s">%s</time></span>`, layout.Name(name), c.CommitTime.UTC().Format("2006-01-02 15:04 UTC"), layout.Distance(r.now(), c.CommitTime))
	if c.FirstTag != "" {
		dst = fmt.Appendf(dst, ` <a class="chip" href="%s" title="the first release with this commit"><span class="dim">since</span> %s</a>`, template.HTMLEscapeString(address(c.Repository, c.FirstTag, "tree", "")), layout.Name(c.FirstTag))
	}
	dst = fmt.Appendf(dst, ` <a class="chip count" href="%s" aria-label="commit %s"><code>%s</code></a></h2>`+"\n", template.HTMLEscapeString(page), short(c.ID), short(c.ID))

	dst = appendMessage(dst, body, spansIn(c.Marks), len(c.Message)-len(body))
	for i := range c.Files[:min(len(c.Files), commitFiles)] {
		dst = appendFoundFile(dst, c, &c.Files[i])
	}
	if more := len(c.Files) - min(len(c.Files), commitFiles) + c.MoreFiles; more > 0 {
		dst = fmt.Appendf(dst, `<p class="more"><a href="%s">+%s of this commit</a></p>`+"\n", template.HTMLEscapeString(page), counted(more, "more file", "more files"))
	}
	return append(dst, "</article>\n"...)
}

// appendMessage appends the matching lines of a message's body, up to messageRows. at is the offset of
// the body in the message, to which the marks refer.
func appendMessage(dst []byte, body string, marks []span, at int) []byte {
	rows := 0
	for line := range strings.Lines(body) {
		text := strings.TrimRight(line, "\r\n")
		if here := cutMarks(marks, at, at+len(text)); len(here) > 0 && rows < messageRows {
			if rows++; rows == 1 {
				dst = append(dst, `<p class="said">`...)
			} else {
				dst = append(dst, "<br>"...)
			}
			dst = appendCode(dst, []byte(text), nil, here)
		}
		at += len(line)
	}
	if rows > 0 {
		dst = append(dst, "</p>\n"...)
	}
	return dst
}

func spansIn(marks []changes.Span) []span {
	out := make([]span, len(marks))
	for i, m := range marks {
		out[i] = span{m.Start, m.End}
	}
	return out
}

// appendFoundFile appends a changed file with its hunks, up to fileRows lines. Line numbers lead to the
// file at the commit or its parent, and the head of a hunk to where its first line is in HEAD.
func appendFoundFile(dst []byte, c *search.FoundCommit, f *changes.FileMatch) []byte {
	row := changedFile{Status: strings.ToUpper(f.Status[:min(1, len(f.Status))])}
	old, now := address(c.Repository, c.Parent, "blob", cmp.Or(f.From, f.Path)), address(c.Repository, c.ID, "blob", f.Path)
	page := now
	if f.Status == "deleted" {
		page, row.Status = old, "D"
	}
	dst = fmt.Appendf(dst, `<h3><b class="is%s" title="%s">%s</b> <a class="path" href="%s">`, row.Status, row.Became(), row.Status, template.HTMLEscapeString(page))
	if f.From != "" {
		dst = append(append(dst, layout.Name(f.From)...), " → "...)
	}
	dst = append(append(dst, layout.Name(f.Path)...), "</a>"...)
	if f.Kept != "" {
		dst = fmt.Appendf(dst, ` <span class="dim">%s: its lines were not searched</span>`, f.Kept)
	} else {
		dst = fmt.Appendf(dst, ` <span class="count"><span class="good">+%s</span> <span class="bad">−%s</span></span>`, grouping(f.Added), grouping(f.Removed))
	}
	dst = append(dst, "</h3>\n"...)
	if len(f.Hunks) == 0 {
		return dst
	}

	dst = fmt.Appendf(dst, `<div class="code" tabindex="0" role="group" aria-label="%s" translate="no">`, template.HTMLEscapeString("changes of "+layout.Plain(f.Path)+" in "+short(c.ID)))
	left := fileRows
	for i := range f.Hunks {
		if left > 0 {
			dst = appendFoundHunk(dst, c, f, &f.Hunks[i], old, now, &left)
		}
	}
	dst = append(dst, "</div>\n"...)
	if left <= 0 || f.MoreHunks > 0 {
		dst = fmt.Appendf(dst, `<p class="more"><a href="%s">all changes of this commit</a></p>`+"\n", template.HTMLEscapeString(address(c.Repository, "", "commit", c.ID)))
	}
	return dst
}

// leftOut is a row that stands for lines that are not shown.
const leftOut = `<div class="row gap"><span class="no">⋯</span></div>` + "\n"

// appendFoundHunk appends a hunk with at most *left lines, and reduces left by those. old and now are the
// pages of the file before and after the commit.
func appendFoundHunk(dst []byte, c *search.FoundCommit, f *changes.FileMatch, h *changes.Hunk, old, now string, left *int) []byte {
	dst = fmt.Appendf(dst, `<div class="row hunk"><code>@@ -%d,%d +%d,%d @@</code>`, h.Old.Start, h.Old.Lines, h.New.Start, h.New.Lines)
	if f.Status != "deleted" {
		line := max(1, h.New.Start)
		dst = fmt.Appendf(dst, ` <a href="%s?now=%d" title="where line %d is today">today</a>`, template.HTMLEscapeString(now), line, line)
	}
	dst = append(dst, "</div>\n"...)

	rows := linesOf(browse.DiffHunk{OldStart: h.Old.Start, OldLines: h.Old.Lines, NewStart: h.New.Start, NewLines: h.New.Lines, Body: h.Body})
	sides := paintersOf(rows, f.Language)
	shown := markRows(rows, h)
	for i := range rows {
		r := &rows[i]
		colours := sides[newSide]
		if r.sign == '-' {
			colours = sides[oldSide]
		}
		if *left <= 0 {
			return append(dst, leftOut...)
		}
		if !shown[i] {
			if colours.colours(r.text); i == 0 || shown[i-1] {
				dst = append(dst, leftOut...)
			}
			continue
		}
		*left--
		class, number, page := "add", r.now, now
		if r.sign == '-' {
			class, number, page = "del", r.old, old
		}
		if len(r.marks) > 0 {
			class += " hit"
		}
		dst = fmt.Appendf(dst, `<div class="row %s"><a class="no" href="%s">%d</a><code>`, class, template.HTMLEscapeString(lineOf(page, f.Path, number)), number)
		dst = append(appendChanged(dst, r, colours), "</code></div>\n"...)
	}
	return dst
}

// markRows sets the marks of a hunk's lines, and returns which lines to show: those near a matching one,
// or all if none matches.
func markRows(rows []changedLine, h *changes.Hunk) []bool {
	shown, marks, at := make([]bool, len(rows)), spansIn(h.Marks), 0
	for i := range rows {
		begin := at + 1
		at += strings.IndexByte(h.Body[at:], '\n') + 1
		rows[i].marks = cutMarks(marks, begin, begin+len(rows[i].text))
		if len(marks) > 0 && len(rows[i].marks) == 0 {
			continue
		}
		for near := max(0, i-nearRows); near < min(len(rows), i+nearRows+1); near++ {
			shown[near] = true
		}
	}
	return shown
}
