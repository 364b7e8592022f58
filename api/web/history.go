package web

import (
	"context"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/browse"
)

var (
	commitsTemplate  = layout.Parse(templates, "templates/commits.html", "templates/place.html")
	commitTemplate   = layout.Parse(templates, "templates/commit.html", "templates/place.html")
	branchesTemplate = layout.Parse(templates, "templates/branches.html", "templates/place.html")
	blameTemplate    = layout.Parse(templates, "templates/blame.html", "templates/place.html")
)

const commitsPerPage = 50

// commitRow is a commit for people.
type commitRow struct {
	Hash, Short, URL, Files   string
	Message, Body             string
	Author, Email, When, Date string
}

func (p *Pages) commitRow(repo string, c *browse.CommitInfo) commitRow {
	return commitRow{
		Hash: c.Hash, Short: short(c.Hash), URL: address(repo, "", "commit", c.Hash), Files: address(repo, c.Hash, "tree", ""), Message: c.Message, Body: c.Body,
		Author: c.AuthorName, Email: c.AuthorEmail, When: p.ago(c.Date), Date: c.Date.UTC().Format("2006-01-02 15:04 UTC"),
	}
}

// commits is the history of a revision or a path.
func (p *Pages) commits(ctx context.Context, v *layout.Visit, l place) error {
	page, _ := strconv.Atoi(v.Query.Get("page"))
	req := browse.CommitsRequest{
		Repo: l.Repo, Ref: l.Rev, Path: l.Path, Page: max(1, page), PerPage: commitsPerPage,
		Author: v.Query.Get("author"), Since: v.Query.Get("since"), Until: v.Query.Get("until"), Query: v.Query.Get("message"),
	}
	r, err := p.History.Commits(ctx, v.Viewer, req)
	if err != nil {
		return err
	}

	data := struct {
		place
		Request      browse.CommitsRequest
		Total        string
		Rows         []commitRow
		Newer, Older string
		Feed         string
	}{place: l, Request: req, Feed: l.At("commits.atom", "") + "?" + url.Values{"path": {l.Path}}.Encode(), Total: counted(r.Total, "commit", "commits")}
	if r.AtLeast {
		data.Total = "≥ " + data.Total
	}
	for i := range r.Commits {
		data.Rows = append(data.Rows, p.commitRow(l.Repo, &r.Commits[i]))
	}
	turn := func(n int) string {
		q := url.Values{}
		for k, values := range v.Query {
			q[k] = values
		}
		q.Set("page", fmt.Sprint(n))
		return "?" + q.Encode()
	}
	if req.Page > 1 {
		data.Newer = turn(req.Page - 1)
	}
	if len(r.Commits) == commitsPerPage && (r.AtLeast || req.Page*commitsPerPage < r.Total) {
		data.Older = turn(req.Page + 1)
	}
	return v.Show(layout.Head{Title: "History of " + l.Repo, Page: "commits"}, commitsTemplate, data)
}

// change is a commit or a comparison, for their template.
type change struct {
	place
	Commit         *commitRow
	Parents        []commitRow
	Base, Head     string
	Swap           string
	Files          []changedFile
	Added, Removed int
	Cut            bool
}

type changedFile struct {
	Name, Old, URL, Status string
	Added, Removed         int
	Binary, Cut            bool
	Code                   template.HTML
}

// commit is the page of one commit: what it says and what it changed beside its
// first parent.
func (p *Pages) commit(ctx context.Context, v *layout.Visit, l place) error {
	if l.Path == "" {
		return noPath()
	}
	c, err := p.History.Commit(ctx, v.Viewer, browse.CommitRequest{Repo: l.Repo, Ref: l.Path})
	if err != nil {
		return err
	}

	row := p.commitRow(l.Repo, c)
	data := change{place: place{Repo: l.Repo, Rev: c.Hash, Kind: "tree"}, Commit: &row}
	for _, parent := range c.Parents {
		data.Parents = append(data.Parents, commitRow{Short: short(parent), URL: address(l.Repo, "", "commit", parent)})
	}
	if len(c.Parents) > 0 {
		if err := p.difference(ctx, v, &data, c.Parents[0], c.Hash); err != nil {
			return err
		}
	}
	return v.Show(layout.Head{Title: c.Message, Page: "commit"}, commitTemplate, data)
}

// compare is the page of the difference of two revisions: <base>...<head>.
func (p *Pages) compare(ctx context.Context, v *layout.Visit, l place) error {
	base, head, ok := strings.Cut(l.Path, "...")
	if !ok {
		base, head, ok = strings.Cut(l.Path, "..")
	}
	if !ok || base == "" || head == "" {
		return noPath()
	}
	data := change{place: place{Repo: l.Repo, Kind: "tree"}, Base: base, Head: head, Swap: address(l.Repo, "", "compare", head+"..."+base)}
	if err := p.difference(ctx, v, &data, base, head); err != nil {
		return err
	}
	return v.Show(layout.Head{Title: base + " and " + head, Page: "compare"}, commitTemplate, data)
}

// difference fills in what changed between two revisions.
func (p *Pages) difference(ctx context.Context, v *layout.Visit, data *change, base, head string) error {
	r, err := p.Files.Diff(ctx, v.Viewer, browse.DiffRequest{Repo: data.Repo, Base: base, Head: head, MaxBytes: 2 << 20})
	if err != nil {
		return err
	}
	data.Cut = r.Cut
	for i := range r.Files {
		f := &r.Files[i]
		row := changedFile{Name: f.NewPath, Status: string(f.Status), Added: f.Added, Removed: f.Removed, Binary: f.Binary, Cut: f.Cut, URL: address(data.Repo, head, "blob", f.NewPath)}
		if f.NewPath == "" {
			row.Name, row.URL = f.OldPath, address(data.Repo, base, "blob", f.OldPath)
		} else if f.OldPath != "" && f.OldPath != f.NewPath {
			row.Old = f.OldPath
		}
		row.Code = template.HTML(appendHunks(nil, f.Hunks))
		data.Added, data.Removed = data.Added+f.Added, data.Removed+f.Removed
		data.Files = append(data.Files, row)
	}
	return nil
}

// appendHunks appends the changed lines of a file with their old and new numbers.
func appendHunks(dst []byte, hunks []browse.DiffHunk) []byte {
	for _, h := range hunks {
		dst = fmt.Appendf(dst, `<div class="row hunk"><code>@@ -%d,%d +%d,%d @@ `, h.OldStart, h.OldLines, h.NewStart, h.NewLines)
		dst = append(layout.AppendText(dst, []byte(h.Heading)), "</code></div>\n"...)
		before, after := h.OldStart, h.NewStart
		for rest := []byte(h.Body); len(rest) > 0; {
			var line []byte
			line, rest, _ = nextLine(rest)
			if len(line) == 0 {
				continue
			}
			class, old, now := "", strconv.Itoa(before), strconv.Itoa(after)
			switch line[0] {
			case '+':
				class, old = " add", ""
				after++
			case '-':
				class, now = " del", ""
				before++
			default:
				before, after = before+1, after+1
			}
			dst = fmt.Appendf(dst, `<div class="row%s"><span class="no">%s</span><span class="no">%s</span><code>`, class, old, now)
			dst = append(layout.AppendText(dst, line[:min(len(line), longestShown)]), "</code></div>\n"...)
		}
	}
	return dst
}

// blame is the page that says of each line which commit it comes from.
func (p *Pages) blame(ctx context.Context, v *layout.Visit, l place) error {
	src, err := p.Files.Source(ctx, v.Viewer, browse.SourceRequest{Repo: l.Repo, Path: l.Path, Ref: l.Rev})
	if err != nil {
		return err
	}
	if src.Binary {
		return v.Show(layout.Head{Title: "Blame of " + l.Path, Page: "blame"}, blameTemplate, struct {
			place
			Binary bool
			Code   template.HTML
		}{l, true, ""})
	}
	r, err := p.Files.Blame(ctx, v.Viewer, browse.BlameRequest{Repo: l.Repo, Path: l.Path, Ref: l.Rev})
	if err != nil {
		return err
	}

	var b []byte
	number, text, paint := 1, src.Content, newPainter(src.Language, 0)
	for _, g := range r.Ranges {
		c := r.Commits[g.Hash]
		for i := range g.LineCount {
			var line []byte
			line, text, _ = nextLine(text)
			b = append(b, `<div class="row blame`...)
			if i == 0 {
				b = append(b, " first"...)
			}
			b = append(b, `"><span class="who">`...)
			if i == 0 {
				b = p.appendOrigin(b, l.Repo, &c)
			}
			b = fmt.Appendf(b, `</span><span class="no" id="L%d">%d</span><code>`, number, number)
			b = append(appendCode(b, line[:min(len(line), longestShown)], paint.colours(line), nil), "</code></div>\n"...)
			number++
		}
	}
	return v.Show(layout.Head{Title: "Blame of " + l.Path, Page: "blame", Scripts: []string{"js/file.js"}}, blameTemplate, struct {
		place
		Binary bool
		Code   template.HTML
	}{l, false, template.HTML(b)})
}

// appendOrigin appends the commit of a run of lines, and the way to what was
// there before it.
func (p *Pages) appendOrigin(dst []byte, repo string, c *browse.BlameCommit) []byte {
	dst = append(append(dst, `<a href="`...), address(repo, "", "commit", c.Hash)...)
	dst = append(appendAttribute(append(dst, `" title="`...), layout.Plain(c.Message)), `">`...)
	dst = fmt.Appendf(dst, "%s</a> <span class=\"dim\">%s</span> ", short(c.Hash), c.Date.UTC().Format("2006-01-02"))
	dst = append(append(dst, layout.Name(c.AuthorName)...), ' ')
	if c.PreviousHash != "" {
		dst = append(appendAttribute(append(dst, `<a href="`...), address(repo, c.PreviousHash, "blame", c.PreviousPath)), `">prior</a>`...)
	}
	return dst
}

// branches is the list of branches or tags.
func (p *Pages) branches(ctx context.Context, v *layout.Visit, l place) error {
	page, _ := strconv.Atoi(v.Query.Get("page"))
	req := browse.RefsRequest{Repo: l.Repo, Query: v.Query.Get("query"), Page: max(1, page), PerPage: 100}
	list := p.History.Branches
	if l.Kind == "tags" {
		list = p.History.Tags
	}
	r, err := list(ctx, v.Viewer, req)
	if err != nil {
		return err
	}

	type refRow struct {
		Name, URL, Short, When string
		Default, Indexed       bool
	}
	data := struct {
		place
		Query, Total string
		Rows         []refRow
		Older        string
	}{place: l, Query: req.Query, Total: counted(r.Total, "name", "names")}
	for _, f := range r.Refs {
		data.Rows = append(data.Rows, refRow{f.Name, address(l.Repo, f.Name, "tree", ""), short(f.Commit), p.ago(f.CommittedAt), f.Default, f.Indexed})
	}
	if req.Page*100 < r.Total {
		data.Older = "?" + url.Values{"query": {req.Query}, "page": {fmt.Sprint(req.Page + 1)}}.Encode()
	}
	return v.Show(layout.Head{Title: "Revisions of " + l.Repo, Page: l.Kind}, branchesTemplate, data)
}
