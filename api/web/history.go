package web

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard/lex"
)

var (
	commitsTemplate  = layout.Parse(templates, "templates/commits.html", "templates/place.html")
	branchesTemplate = layout.Parse(templates, "templates/branches.html", "templates/place.html")
	blameTemplate    = layout.Parse(templates, "templates/blame.html", "templates/place.html")
)

// Entries on a page of a list.
const (
	commitsPerPage = 50
	refsPerPage    = 100
)

// commitRow is a commit for display.
type commitRow struct {
	Hash, Short, URL, Files   string
	Message, Body             string
	Author, Email, When, Date string
}

// commitDay has consecutive commits of one day.
type commitDay struct {
	Day  string
	Rows []commitRow
}

func (p dating) commitRow(repo string, c *browse.CommitInfo) commitRow {
	return commitRow{
		Hash: c.Hash, Short: short(c.Hash), URL: address(repo, "", "commit", c.Hash), Files: address(repo, c.Hash, "tree", ""), Message: c.Message, Body: strings.ReplaceAll(c.Body, "\r\n", "\n"), // some editors end lines with \r\n

		Author: c.AuthorName, Email: c.AuthorEmail, When: p.ago(c.Date), Date: c.Date.UTC().Format("2006-01-02 15:04 UTC"),
	}
}

// commits shows the history of a revision or a path.
func (p *revisions) commits(ctx context.Context, v *layout.Visit, l place) error {
	page, _ := strconv.Atoi(v.Query.Get("page"))
	req := browse.CommitsRequest{
		Repo:    l.Repo,
		Ref:     l.Rev,
		Path:    l.Path,
		Author:  v.Query.Get("author"),
		Since:   v.Query.Get("since"),
		Until:   v.Query.Get("until"),
		Query:   v.Query.Get("message"),
		Page:    max(1, page),
		PerPage: commitsPerPage,

		Verbatim: v.Query.Get("verbatim") != "",
	}

	lines := v.Query.Get("lines")
	r, err := p.commitsOf(ctx, v.Viewer, req, lines)
	if err != nil {
		return err
	}

	data := struct {
		place
		Request      browse.CommitsRequest
		Total        string
		Days         []commitDay
		Newer, Older string
		Feed         string
		Shallow      bool   // the mirror lacks older commits
		Lines        string // lines of the file whose history is shown; "" for the whole file
		Switch       string // link to the same page without .mailmap, or with it
		Until, GoOn  string // date at which a slow search stopped, and the link that continues it
	}{place: l, Request: req, Shallow: r.Shallow, Feed: l.At("commits.atom", "") + "?" + url.Values{"path": {l.Path}}.Encode(), Total: counted(r.Total, "commit", "commits"), Lines: lines}

	// The total is a minimum if the count stopped early, or the mirror lacks older commits.
	if r.AtLeast || r.Shallow {
		data.Total = "≥ " + data.Total
	}

	for i := range r.Commits {
		day := r.Commits[i].Date.UTC().Format("2 January 2006")
		if n := len(data.Days); n == 0 || data.Days[n-1].Day != day {
			data.Days = append(data.Days, commitDay{Day: day})
		}
		last := &data.Days[len(data.Days)-1]
		last.Rows = append(last.Rows, p.commitRow(l.Repo, &r.Commits[i]))
	}

	// with returns the address of this page's query with another value, on the first page.
	with := func(name, value string) string {
		q := url.Values{}
		maps.Copy(q, v.Query)
		q.Del("page")
		q.Set(name, value)
		return "?" + q.Encode()
	}
	pageURL := func(n int) string { return with("page", fmt.Sprint(n)) }

	data.Switch = with("verbatim", "1")
	if req.Verbatim {
		data.Switch = with("verbatim", "")
	}
	if !r.Reached.IsZero() && lines == "" {
		data.Until = r.Reached.UTC().Format("2006-01-02 15:04 UTC")
		data.GoOn = with("until", r.Reached.UTC().Format(time.RFC3339))
	}

	if req.Page > 1 {
		data.Newer = pageURL(req.Page - 1)
	}

	// After a full page there may be more. An exact total says whether there are.
	if lines == "" && len(r.Commits) == commitsPerPage && (r.AtLeast || hasNextPage(req.Page, commitsPerPage, r.Total)) {
		data.Older = pageURL(req.Page + 1)
	}
	return v.Show(layout.Head{Title: "History of " + l.Repo, Page: "commits"}, commitsTemplate, data)
}

// commitsOf returns the commits of a request, or if lines is "12" or "12-20", the newest commits that
// changed these lines of its file.
func (p *revisions) commitsOf(ctx context.Context, v catalog.Viewer, req browse.CommitsRequest, lines string) (*browse.CommitsResponse, error) {
	if lines == "" {
		return p.reader.Commits(ctx, v, req)
	}
	from, to, isRange := strings.Cut(lines, "-")
	if !isRange {
		to = from
	}
	first, firstErr := strconv.Atoi(from)
	last, lastErr := strconv.Atoi(to)
	if firstErr != nil || lastErr != nil || first < 1 || last < first {
		return nil, call.Fail(call.ErrInvalid, "lines is a number or a range of them: 12 or 12-20.")
	}
	r, err := p.reader.Trace(ctx, v, browse.TraceRequest{Repo: req.Repo, Ref: req.Ref, Path: req.Path, First: first, Last: last, Verbatim: req.Verbatim, Limit: 100})
	if err != nil {
		return nil, err
	}
	return &browse.CommitsResponse{Commits: r.Commits, Total: r.Total, AtLeast: r.AtLeast || r.Total > len(r.Commits), Shallow: r.Shallow}, nil
}

// blamePage is the data of a blame.
type blamePage struct {
	place
	Binary  bool
	Code    template.HTML
	Ages    int    // number of colours for the age of a line; 0 without lines
	Trouble string // why there are no lines; "" if there are

	Verbatim bool   // without .mailmap and .git-blame-ignore-revs
	Past     string // number of lines whose commit was ignored; "" for none
	Shallow  bool   // some lines may be older than the commit shown
	Next     string // address of the page with the next lines; "" for none
	From     string // number of the first line on the page Next
}

// blame shows the commit of each line. If git needs a while, it first sends the file's first lines.
func (p *revisions) blame(ctx context.Context, v *layout.Visit, l place) error {
	src, err := p.reader.Source(ctx, v.Viewer, browse.SourceRequest{Repo: l.Repo, Path: l.Path, Ref: l.Rev})
	if err != nil {
		return err
	}

	head := layout.Head{Title: "Blame of " + l.Path, Page: "blame"}
	if src.Binary {
		return v.Show(head, blameTemplate, blamePage{place: l, Binary: true})
	}
	head.Scripts = []string{"js/file.js"}

	verbatim := v.Query.Get("verbatim") != ""
	first, _ := strconv.Atoi(v.Query.Get("first"))
	ended := inBackground(func() (*browse.BlameResponse, error) {
		return p.reader.Blame(ctx, v.Viewer, browse.BlameRequest{Repo: l.Repo, Path: l.Path, Ref: l.Rev, Verbatim: verbatim})
	})
	page := func(r *browse.BlameResponse, err error) blamePage {
		if err != nil {
			return blamePage{place: l, Trouble: troubleOf(err, "").Message}
		}
		code, next := p.drawBlame(l.Repo, src, r, max(1, first))
		data := blamePage{place: l, Ages: ages, Verbatim: verbatim, Shallow: r.Shallow, Code: template.HTML(code)}
		if next > 0 {
			q := maps.Clone(v.Query)
			q.Set("first", strconv.Itoa(next))
			data.Next, data.From = "?"+q.Encode(), grouping(next)
		}
		if r.Past > 0 {
			data.Past = counted(r.Past, "line", "lines")
		}
		return data
	}

	if o, ok := waitBriefly(ended); ok {
		r, err := o.get()
		if err != nil {
			return err
		}
		return v.Show(head, blameTemplate, page(r, nil))
	}
	streamBlame(v, head, src, ended, page)
	return nil
}

// streamBlame sends the page's frame and the file's first lines at once, and the blame when ended
// delivers it. page makes the page's data from it.
func streamBlame(v *layout.Visit, head layout.Head, src *browse.SourceResponse, ended <-chan outcome[*browse.BlameResponse], page func(*browse.BlameResponse, error) blamePage) {
	v.Mime = layout.MimeHTML
	v.Stream = func(w *bufio.Writer) error {
		if v.Part == "" {
			v.Begin(w, head)
		}

		// The style hides these lines once the blame follows them, which has the anchors of the lines.
		preview := newBlocks(src.Content, src.Language)
		preview.anchors = false
		b := preview.append([]byte(`<div class="doing"><p>git reads the history of this file</p><div class="code file-text" translate="no">`))
		_, err := w.Write(append(b, "</div></div>\n"...))
		if err := errors.Join(err, w.Flush()); err != nil {
			<-ended // soon, because the reader has left and so the context has ended
			return err
		}

		var rest bytes.Buffer
		if err := blameTemplate.Execute(&rest, page((<-ended).get())); err != nil {
			return err
		}
		if v.Part == "" {
			v.End(&rest, head)
		}
		_, err = w.Write(rest.Bytes())
		return errors.Join(err, w.Flush())
	}
}

const (
	ages          = 10      // number of colours for the age of a line
	mostBlamed    = 8 << 20 // bytes of lines and commits on a page; more lines are on further pages
	longestOrigin = 200     // bytes of a message or name next to a line
)

// drawBlame draws the lines of a file from first on, each run with its commit, until the page is full.
// next is the first line of the next page; 0 for none.
func (p *revisions) drawBlame(repo string, src *browse.SourceResponse, r *browse.BlameResponse, first int) (code []byte, next int) {
	text := src.Content
	for number := 1; number < first && len(text) > 0; number++ {
		_, text, _ = nextLine(text)
	}
	before := src.Content[:len(src.Content)-len(text)]

	// Use one painter for all runs, because a comment may span several.
	paint := newPainter(src.Language, lex.For(src.Language).After(before, 0))

	age, last := agesOf(r.Commits), first
	if n := len(r.Ranges); n > 0 {
		last = r.Ranges[n-1].StartLine + r.Ranges[n-1].LineCount - 1
	}
	for _, g := range r.Ranges {
		c := r.Commits[g.Hash]
		for number := max(first, g.StartLine); number < g.StartLine+g.LineCount; number++ {
			if len(code) > mostBlamed {
				return append(code, "</div>\n"...), number
			}
			// A browser lays out only the blocks near its window, and reserves the height of the others.
			if (number-first)%blockLines == 0 {
				code = append(code, nextBlock(number-first, last-number)...)
			}
			var line []byte
			line, text, _ = nextLine(text)

			// Draw each line as a row, so that its number, commit and text stay aligned. Only the first
			// line of a run shows the commit.
			isFirst := number == max(first, g.StartLine)
			code = fmt.Appendf(code, `<div class="row blame age%d`, age[g.Hash])
			if isFirst {
				code = append(code, " first"...)
			}
			code = append(code, `">`...)
			if isFirst {
				code = append(p.appendOrigin(append(code, `<span class="who">`...), repo, &c), "</span>"...)
			}
			code = fmt.Appendf(code, `<span class="no" id="L%d">%d</span><code>`, number, number)
			code = append(appendCode(code, line[:min(len(line), longestShown)], paint.colours(line), nil), "</code></div>\n"...)
		}
	}
	if len(code) > 0 {
		code = append(code, "</div>\n"...)
	}
	return code, 0
}

// nextBlock returns the HTML that begins a block of lines, and before that ends the previous one if
// there are lines before. The block is full if enough lines come after its first one.
func nextBlock(before, after int) string {
	begin := `<div class="stretch">`
	if after >= blockLines-1 {
		begin = `<div class="stretch full">`
	}
	if before > 0 {
		return "</div>\n" + begin
	}
	return begin
}

// agesOf returns the age of each commit of a file: 0 for the newest, ages-1 for the oldest. It depends
// on the order of the commits, not on their dates, because most files have many old commits and few
// new ones.
func agesOf(commits map[string]browse.BlameCommit) map[string]int {
	order := slices.Collect(maps.Keys(commits))
	slices.SortFunc(order, func(a, b string) int {
		return cmp.Or(commits[b].Date.Compare(commits[a].Date), cmp.Compare(a, b))
	})

	out := make(map[string]int, len(order))
	for i, hash := range order {
		out[hash] = i * (ages - 1) / max(1, len(order)-1)
	}
	return out
}

// appendOrigin appends the commit of a run of lines, and a link to the blame before that commit.
func (p *revisions) appendOrigin(dst []byte, repo string, c *browse.BlameCommit) []byte {
	author := browse.Beginning(c.AuthorName, longestOrigin)
	about := short(c.Hash) + ", " + c.Date.UTC().Format("2006-01-02 15:04 UTC") + ", " + author
	dst = append(append(dst, `<a class="what" href="`...), address(repo, "", "commit", c.Hash)...)
	dst = append(appendAttribute(append(dst, `" title="`...), layout.Plain(about)), `">`...)
	dst = append(append(dst, layout.Name(browse.Beginning(c.Message, longestOrigin))...), "</a> "...)
	dst = append(append(dst, `<span class="dim by">`...), layout.Name(author)...)
	dst = append(append(dst, "</span> <span class=\"dim\">"...), p.ago(c.Date)...)
	dst = append(dst, "</span> "...)
	if c.PreviousHash != "" { // it is not the file's first commit
		dst = append(append(dst, `<a href="`...), address(repo, c.PreviousHash, "blame", c.PreviousPath)...)
		dst = append(dst, `" class="dim" title="blame before this change">prior</a>`...)
	}
	return dst
}

// branches shows a page of the branches, or of the tags.
func (p *revisions) branches(ctx context.Context, v *layout.Visit, l place) error {
	page, _ := strconv.Atoi(v.Query.Get("page"))
	req := browse.RefsRequest{Repo: l.Repo, Query: v.Query.Get("query"), Page: max(1, page), PerPage: refsPerPage}

	list := p.reader.Branches
	if l.Kind == "tags" {
		list = p.reader.Tags
	}

	r, err := list(ctx, v.Viewer, req)
	if err != nil {
		return err
	}

	type refRow struct {
		Name, URL, Short, When, Date, Compare string
		Default, Indexed                      bool
	}
	data := struct {
		place
		Query, Total string
		Base         string // revision with which each row can be compared
		Compared     comparing
		Rows         []refRow
		Older        string
	}{place: l, Query: req.Query, Base: cmp.Or(l.Branch, "HEAD"), Total: counted(r.Total, "name", "names"), Compared: comparingAt(l, "", "")}
	data.Compared.Usual = data.Base

	for _, f := range r.Refs {
		row := refRow{
			Name: f.Name, URL: address(l.Repo, cmp.Or(f.Ref, f.Name), "tree", ""), Short: short(f.Commit), When: p.ago(f.CommittedAt), Date: f.CommittedAt.UTC().Format("2006-01-02"),
			Default: f.Default, Indexed: f.Indexed,
		}
		// Show what a branch adds to the base, and what the base adds to a tag.
		switch {
		case f.Default:
		case l.Kind == "tags":
			row.Compare = address(l.Repo, "", "compare", cmp.Or(f.Ref, f.Name)+"..."+data.Base)
		default:
			row.Compare = address(l.Repo, "", "compare", data.Base+"..."+cmp.Or(f.Ref, f.Name))
		}
		data.Rows = append(data.Rows, row)
		data.Compared.Names = append(data.Compared.Names, row.Name)
	}

	if hasNextPage(req.Page, refsPerPage, r.Total) {
		data.Older = "?" + url.Values{"query": {req.Query}, "page": {fmt.Sprint(req.Page + 1)}}.Encode()
	}
	return v.Show(layout.Head{Title: "Revisions of " + l.Repo, Page: l.Kind}, branchesTemplate, data)
}
