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

// Entries of a page of each list.
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
		Hash: c.Hash, Short: short(c.Hash), URL: address(repo, "", "commit", c.Hash), Files: address(repo, c.Hash, "tree", ""), Message: c.Message, Body: strings.ReplaceAll(c.Body, "\r\n", "\n"), // as some editors end lines; it says nothing

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
		Lines        string // of the file, whose history is shown; "" for all
		Switch       string // link to the page with or without .mailmap
		Until, GoOn  string // where a slow search stopped, and the link to continue
	}{place: l, Request: req, Shallow: r.Shallow, Feed: l.At("commits.atom", "") + "?" + url.Values{"path": {l.Path}}.Encode(), Total: counted(r.Total, "commit", "commits"), Lines: lines}

	// If counting stopped or the history is cut, there are more.
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

	// Other filters stay in the address.
	with := func(name, value string) string {
		q := url.Values{}
		maps.Copy(q, v.Query)
		q.Del("page")
		q.Set(name, value)
		return "?" + q.Encode()
	}
	turn := func(n int) string { return with("page", fmt.Sprint(n)) }

	data.Switch = with("verbatim", "1")
	if req.Verbatim {
		data.Switch = with("verbatim", "")
	}
	if !r.Reached.IsZero() && lines == "" {
		data.Until = r.Reached.UTC().Format("2006-01-02 15:04 UTC")
		data.GoOn = with("until", r.Reached.UTC().Format(time.RFC3339))
	}

	if req.Page > 1 {
		data.Newer = turn(req.Page - 1)
	}

	// A full page does not mean that there is another; an exact count does.
	if lines == "" && len(r.Commits) == commitsPerPage && (r.AtLeast || goesOn(req.Page, commitsPerPage, r.Total)) {
		data.Older = turn(req.Page + 1)
	}
	return v.Show(layout.Head{Title: "History of " + l.Repo, Page: "commits"}, commitsTemplate, data)
}

// commitsOf returns the commits of a request, or the newest commits that changed some lines of
// its file, "12" or "12-20".
func (p *revisions) commitsOf(ctx context.Context, v catalog.Viewer, req browse.CommitsRequest, lines string) (*browse.CommitsResponse, error) {
	if lines == "" {
		return p.reader.Commits(ctx, v, req)
	}
	from, to, several := strings.Cut(lines, "-")
	if !several {
		to = from
	}
	first, bad := strconv.Atoi(from)
	last, worse := strconv.Atoi(to)
	if bad != nil || worse != nil || first < 1 || last < first {
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
	Ages    int    // number of colours; 0 without lines
	Trouble string // why there are no lines

	Verbatim bool   // without .mailmap and .git-blame-ignore-revs
	Past     string // lines last changed by ignored commits; "" for none
	Shallow  bool   // some lines may be older than their commit
	Next     string // the page with the next lines; "" for none
	From     string // number of its first line
}

// blame shows the commit of each line.
func (p *revisions) blame(ctx context.Context, v *layout.Visit, l place) error {
	src, err := p.reader.Source(ctx, v.Viewer, browse.SourceRequest{Repo: l.Repo, Path: l.Path, Ref: l.Rev})
	if err != nil {
		return err
	}

	// Without lines there is nothing to show.
	head := layout.Head{Title: "Blame of " + l.Path, Page: "blame"}
	if src.Binary {
		return v.Show(head, blameTemplate, blamePage{place: l, Binary: true})
	}
	head.Scripts = []string{"js/file.js"}

	// The same revision, so that lines and commits belong together.
	verbatim := v.Query.Get("verbatim") != ""
	first, _ := strconv.Atoi(v.Query.Get("first"))
	ended := inBackground(func() (*browse.BlameResponse, error) {
		return p.reader.Blame(ctx, v.Viewer, browse.BlameRequest{Repo: l.Repo, Path: l.Path, Ref: l.Rev, Verbatim: verbatim})
	})
	page := func(r *browse.BlameResponse, err error) blamePage {
		if err != nil {
			return blamePage{place: l, Trouble: troubleOf(err, "").Message}
		}
		code, next := p.blamed(l.Repo, src, r, max(1, first))
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

	if o, quick := inTime(ended); quick {
		r, err := o.taken()
		if err != nil {
			return err
		}
		return v.Show(head, blameTemplate, page(r, nil))
	}
	streamBlame(v, head, src, ended, page)
	return nil
}

// streamBlame sends the page's frame and the first lines at once, and its content when git has
// finished.
func streamBlame(v *layout.Visit, head layout.Head, src *browse.SourceResponse, ended <-chan outcome[*browse.BlameResponse], page func(*browse.BlameResponse, error) blamePage) {
	v.Mime = layout.MimeHTML
	v.Stream = func(w *bufio.Writer) error {
		if v.Part == "" {
			v.Begin(w, head)
		}

		// The style hides this once the content follows it. Anchors are left to the content.
		lines := newBlocks(src.Content, src.Language)
		lines.anchors = false
		b := lines.append([]byte(`<div class="doing"><p>git reads the history of this file</p><div class="code file-text" translate="no">`))
		_, err := w.Write(append(b, "</div></div>\n"...))
		if err := errors.Join(err, w.Flush()); err != nil {
			<-ended // the context ends when the reader disconnects
			return err
		}

		var rest bytes.Buffer
		if err := blameTemplate.Execute(&rest, page((<-ended).taken())); err != nil {
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

// blamed draws the lines of a file from first on, each run with its commit. next is the first
// line of the next page, 0 for none.
func (p *revisions) blamed(repo string, src *browse.SourceResponse, r *browse.BlameResponse, first int) (code []byte, next int) {
	// One painter for all runs, because a comment may span them.
	text := src.Content
	for number := 1; number < first && len(text) > 0; number++ {
		_, text, _ = nextLine(text)
	}
	before := src.Content[:len(src.Content)-len(text)]
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
				code = append(code, blockTurn(number-first, last-number)...)
			}
			var line []byte
			line, text, _ = nextLine(text)

			// The commit is shown at the first line of its run. Each line is its own row, so that
			// number, commit and text stay aligned.
			starts := number == max(first, g.StartLine)
			code = fmt.Appendf(code, `<div class="row blame age%d`, age[g.Hash])
			if starts {
				code = append(code, " first"...)
			}
			code = append(code, `">`...)
			if starts {
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

// blockTurn ends the block before, if there are lines before, and begins one, which is full if
// enough lines follow.
func blockTurn(before, after int) string {
	turn := `<div class="stretch">`
	if after >= blockLines-1 {
		turn = `<div class="stretch full">`
	}
	if before > 0 {
		return "</div>\n" + turn
	}
	return turn
}

// agesOf returns the age of each commit of a file: 0 for the newest, ages-1 for the oldest. Ages
// are spread by order, because most files have old commits and a few from the last days.
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

// appendOrigin appends the commit of a run of lines, and a link to the lines before it.
func (p *revisions) appendOrigin(dst []byte, repo string, c *browse.BlameCommit) []byte {
	author := browse.Beginning(c.AuthorName, longestOrigin)
	about := short(c.Hash) + ", " + c.Date.UTC().Format("2006-01-02 15:04 UTC") + ", " + author
	// Names are escaped, because a commit may be hostile.
	dst = append(append(dst, `<a class="what" href="`...), address(repo, "", "commit", c.Hash)...)
	dst = append(appendAttribute(append(dst, `" title="`...), layout.Plain(about)), `">`...)
	dst = append(append(dst, layout.Name(browse.Beginning(c.Message, longestOrigin))...), "</a> "...)
	dst = append(append(dst, `<span class="dim by">`...), layout.Name(author)...)
	dst = append(append(dst, "</span> <span class=\"dim\">"...), p.ago(c.Date)...)
	dst = append(dst, "</span> "...)
	// Not if the line is from the file's first commit.
	if c.PreviousHash != "" {
		dst = append(append(dst, `<a href="`...), address(repo, c.PreviousHash, "blame", c.PreviousPath)...)
		dst = append(dst, `" class="dim" title="blame before this change">prior</a>`...)
	}
	return dst
}

// branches shows the branches or tags.
func (p *revisions) branches(ctx context.Context, v *layout.Visit, l place) error {
	page, _ := strconv.Atoi(v.Query.Get("page"))
	req := browse.RefsRequest{Repo: l.Repo, Query: v.Query.Get("query"), Page: max(1, page), PerPage: refsPerPage}

	list := p.reader.Branches
	if l.Kind == "tags" {
		list = p.reader.Tags
	}

	// Filter and cut at the source, because there may be very many.
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
		Base         string // what rows are compared with
		Compared     comparing
		Rows         []refRow
		Older        string
	}{place: l, Query: req.Query, Base: cmp.Or(l.Branch, "HEAD"), Total: counted(r.Total, "name", "names"), Compared: comparingAt(l, cmp.Or(l.Branch, "HEAD"), "")}

	for _, f := range r.Refs {
		row := refRow{
			Name: f.Name, URL: address(l.Repo, cmp.Or(f.Ref, f.Name), "tree", ""), Short: short(f.Commit), When: p.ago(f.CommittedAt), Date: f.CommittedAt.UTC().Format("2006-01-02"),
			Default: f.Default, Indexed: f.Indexed,
		}
		// A branch is compared with its base, a tag with what came later.
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

	if goesOn(req.Page, refsPerPage, r.Total) {
		data.Older = "?" + url.Values{"query": {req.Query}, "page": {fmt.Sprint(req.Page + 1)}}.Encode()
	}
	return v.Show(layout.Head{Title: "Revisions of " + l.Repo, Page: l.Kind}, branchesTemplate, data)
}
