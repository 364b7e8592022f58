package web

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/node/suggest"
)

// goRow is a link to a place that the query names, such as a file, a commit or a frame of a call stack.
type goRow struct {
	URL, Name, In string
	Code          template.HTML // the source line, for a frame with the lines around it; "" for none
	Say           string        // text in place of a source line: the subject of a commit, the kind of a symbol
}

// goRows converts targets to rows.
func goRows(list []suggest.Target) []goRow {
	rows := make([]goRow, 0, len(list))
	for i := range list {
		rows = append(rows, goRowOf(&list[i]))
	}
	return rows
}

func goRowOf(t *suggest.Target) goRow {
	row := goRow{Name: t.Path, In: t.Repository, Say: t.Text}
	if t.Revision != "" && t.Kind != suggest.CommitTarget && t.Kind != suggest.CompareTarget {
		row.In += " at " + t.Revision
	}

	switch t.Kind {
	case suggest.CommitTarget:
		row.Name, row.URL = short(t.Revision), address(t.Repository, "", "commit", t.Revision)
	case suggest.CompareTarget:
		row.Name, row.URL = t.Revision, address(t.Repository, "", "compare", t.Revision)
	case suggest.RepositoryTarget:
		row.Name, row.In, row.URL = t.Repository, t.Revision, address(t.Repository, t.Revision, "", "")
	case suggest.DirectoryTarget:
		row.Name, row.URL = cmp.Or(t.Path, "/"), address(t.Repository, t.Revision, "tree", t.Path)
	case suggest.FilesTarget:
		row.Name, row.Say, row.URL = "files "+t.Text, "", "/search?query="+url.QueryEscape(t.Query)
	default:
		row.URL = address(t.Repository, t.Revision, "blob", t.Path)
		row.setLines(t)
	}
	return row
}

// setLines makes the row lead to the lines that t names in its file, and shows the source of the first
// one.
func (row *goRow) setLines(t *suggest.Target) {
	if t.Line == 0 {
		return
	}
	row.Name += ":" + strconv.Itoa(t.Line)
	row.URL = lineOf(row.URL, t.Path, t.Line)
	if t.EndLine > 0 {
		row.Name += "-" + strconv.Itoa(t.EndLine)
		row.URL += "-L" + strconv.Itoa(t.EndLine)
	}
	if t.Around != "" {
		row.Code, row.Say = template.HTML(appendFrame(nil, t, row.URL)), ""
	} else if t.Kind == suggest.FileTarget && strings.TrimSpace(t.Text) != "" {
		line := []byte(strings.TrimSpace(t.Text))
		row.Code, row.Say = template.HTML(appendCode(nil, line, newPainter(t.Language, t.Open).colours(line), nil)), ""
	}
}

// appendFrame appends the line of a frame, marked and with a link, and the lines around it.
func appendFrame(dst []byte, t *suggest.Target, url string) []byte {
	paint, text := newPainter(t.Language, t.Open), []byte(t.Around)
	for n := t.First; len(text) > 0; n++ {
		var line []byte
		line, text, _ = nextLine(text)
		if n == t.Line {
			dst = append(appendAttribute(append(dst, `<div class="line hit"><a href="`...), url), '"')
		} else {
			dst = append(dst, `<div class="line"><a`...)
		}
		dst = appendShown(fmt.Appendf(dst, ">%d</a>", n), line, paint.colours(line))
		dst = append(dst, "</div>"...)
	}
	return dst
}

// isTrace reports whether targets are the frames of a call stack.
func isTrace(list []suggest.Target) bool { return len(list) > 0 && list[len(list)-1].Frame }

// nearest is a search for most words of a query, with its first files.
type nearest struct {
	Parts, URL string
	Summary    string // how many matches and files it has
	Files      template.HTML
	Apart      bool // the page also has files with all words, but not together
}

// nearestOf renders the first files of a nearest search.
func (r *results) nearestOf(n *suggest.Nearest) *nearest {
	box := r.Box
	box.Query, box.Regexp, box.Case, box.Whole = n.Request.Query, true, false, false
	files := n.Response.Files[:min(len(n.Response.Files), nearestFiles)]
	out := &nearest{Parts: n.Parts, URL: searchURL(box, 0), Summary: summaryOf(n.Response, n.Response.HasEveryFile()), Apart: !r.Empty}

	branches := map[uint32]string{}
	for i := range n.Response.Repositories {
		branches[n.Response.Repositories[i].ID] = n.Response.Repositories[i].DefaultBranch
	}

	var dst []byte
	for i := range files {
		dst = appendFile(dst, &files[i], branches[files[i].RepoID], box, marking{}, linked)
	}
	out.Files = template.HTML(dst)
	return out
}

// nearestFiles is how many files of the nearest search a page shows. Its link leads to all.
const nearestFiles = 10
