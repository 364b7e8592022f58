package web

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard/lex"
)

// In two similar lines the words that differ are marked; in other lines nothing is.
func TestDiff_marksChangedWordsOfSimilarLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, now, inOld, inNow string }{
		{`return "hello " + name`, `return "HELLO " + name`, `return "[hello] " + name`, `return "[HELLO] " + name`},
		{"f(a, b)", "f(a, b, c)", "f(a, b)", "f(a, b[, c])"},
		{"x := oldName + 1", "x := newName + 1", "x := [oldName] + 1", "x := [newName] + 1"},
		{"größe = 1", "größe = 2", "größe = [1]", "größe = [2]"},
		{"\tindented", "\t\tindented", "[\t]indented", "[\t\t]indented"},
		{"func main() {", "// nothing alike whatever it is", "func main() {", "// nothing alike whatever it is"},
		{"", "new", "", "new"},
		{"same", "same", "same", "same"},
		{"caf\xe9 one", "caf\xe9 two", "caf\xe9 [one]", "caf\xe9 [two]"},
	} {
		inOld, inNow := changedWords([]byte(c.old), []byte(c.now))
		if got := bracketed(c.old, inOld); got != c.inOld {
			t.Errorf("%q beside %q: %q, want %q", c.old, c.now, got, c.inOld)
		}
		if got := bracketed(c.now, inNow); got != c.inNow {
			t.Errorf("%q beside %q: %q, want %q", c.now, c.old, got, c.inNow)
		}
	}
}

func bracketed(s string, marks []span) string {
	var b strings.Builder
	at := 0
	for _, m := range marks {
		b.WriteString(s[at:m.start] + "[" + s[m.start:m.end] + "]")
		at = m.end
	}
	return b.String() + s[at:]
}

// hunk changes a comment in the middle of Go code.
var hunk = browse.DiffHunk{OldStart: 3, OldLines: 4, NewStart: 3, NewLines: 4, Body: " func f() int {\n-\t// one\n-\treturn 1\n+\t// two\n+\treturn 1 + 1\n+\n }\n"}

func TestDiffViews_showEachLineInItsPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		view int
		want []string
	}{
		{0, []string{
			`<div class="row"><span class="no">3</span><span class="no">3</span><code> <i class="k">func</i> f`,
			`<div class="row del"><span class="no">4</span><span class="no"></span><code>-`,
			`<i class="c">// <mark>one</mark></i>`,
			`<div class="row add"><span class="no"></span><span class="no">6</span><code>+</code>`,
		}},
		{1, []string{
			`<div class="pair same"><span class="no">3</span><code class=""> <i class="k">func</i> f`,
			`<div class="pair"><span class="no">4</span><code class="del">-`,
			`<i class="c">// <mark>one</mark></i></code><span class="no">4</span><code class="add">+`,
			`<div class="pair"><span class="no"></span><code class="none"></code><span class="no">6</span><code class="add">+</code>`,
		}},
	} {
		got := string(appendHunks(nil, []browse.DiffHunk{hunk}, "Go", false, changeViews[c.view]))
		at := 0
		for _, want := range c.want {
			i := strings.Index(got[at:], want)
			if i < 0 {
				t.Fatalf("%s: no %s in its place in\n%s", changeViews[c.view].name, want, got)
			}
			at += i + len(want)
		}
	}
}

// manyFiles is a difference with so many files, each with one changed line.
type manyFiles struct {
	browse.Reader
	count int
	asked []browse.DiffRequest
}

func (m *manyFiles) Diff(_ context.Context, _ catalog.Viewer, req browse.DiffRequest) (*browse.DiffResponse, error) {
	m.asked = append(m.asked, req)
	r := &browse.DiffResponse{BaseCommit: "dad", HeadCommit: "c0ffee"}
	first, last := 0, m.count
	if req.PerPage > 0 {
		first, last = min((req.Page-1)*req.PerPage, m.count), min(req.Page*req.PerPage, m.count)
		r.Total = m.count
	}
	for i := first; i < last; i++ {
		r.Files = append(r.Files, browse.DiffFile{NewPath: fmt.Sprint("f", i), Status: 'A', Added: 1})
	}
	return r, nil
}

// A change of many files has pages, each with the totals of the whole change. The look stays the
// same on all pages.
func TestDiffPage_splitsManyFilesIntoPagesWithOneTotal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		count                int
		query                string
		files                int
		shown, before, after string
	}{
		{100, "", 100, "", "", ""},
		{250, "view=split", 100, "files 1 to 100", "", "?page=2&view=split"},
		{250, "page=2", 100, "files 101 to 200", "?", "?page=3"},
		{250, "page=3", 50, "files 201 to 250", "?page=2", ""},
		{250, "page=9", 0, "no files are on this page", "?page=3", ""},
		{250, "page=x", 100, "files 1 to 100", "", "?page=2"},
	} {
		q, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		files, data := &manyFiles{count: c.count}, change{}
		p := &revisions{reader: files}
		if _, err := p.difference(t.Context(), &layout.Visit{Query: q}, &data, browse.DiffRequest{Base: "a", Head: "b", MergeBase: true}); err != nil {
			t.Fatal(err)
		}

		if len(data.Files) != c.files || data.Total != fmt.Sprint(c.count, " files") || data.Added != c.count || data.Shown != c.shown || data.Before != c.before || data.After != c.after {
			t.Errorf("%d files, %q: %d, %s, +%d, %q, before %q, after %q", c.count, c.query, len(data.Files), data.Total, data.Added, data.Shown, data.Before, data.After)
		}
		if n := len(files.asked); n > 1 != (c.count > 100) || n == 2 && (!files.asked[1].Stat || files.asked[1].PerPage != 0 || files.asked[1].Base != "dad" || files.asked[1].MergeBase) {
			t.Errorf("%d files, %q: asked for %+v", c.count, c.query, files.asked)
		}
		if page := q.Get("page"); page == "2" && (data.Views[0].Views[1].URL != "?page=2&view=split" || data.Views[2].Views[1].URL != "?w=1") {
			t.Errorf("other views are %+v", data.Views)
		}
	}
}

// FuzzDiffViews_showTheTextAndEscapeMarkup checks that both views show the text of any change, and escape markup.
func FuzzDiffViews_showTheTextAndEscapeMarkup(f *testing.F) {
	f.Add("-a <b>\n+a <i>\n \n+x\n-y\n", "Go")
	f.Add("-/* \u202e\n /*\n+*/ \xff\n\\ No newline at end of file\n", "C")
	f.Fuzz(func(t *testing.T, body, language string) {
		h := browse.DiffHunk{OldStart: 1, NewStart: 1, Body: body}
		for _, v := range changeViews {
			z := html.NewTokenizer(strings.NewReader(string(appendHunks(nil, []browse.DiffHunk{h}, language, false, v))))
			for more := true; more; {
				switch z.Next() {
				case html.ErrorToken:
					more = false
				case html.StartTagToken:
					if tok := z.Token(); !strings.Contains(" div code span i mark bdi ", " "+tok.Data+" ") {
						t.Fatalf("%s: %q makes the element %v", v.name, body, tok)
					}
				case html.CommentToken, html.DoctypeToken:
					t.Fatalf("%s: %q makes markup", v.name, body)
				}
			}
		}
	})
}

// A file counts for every revision that has it. With one revision there is nothing to choose.
func TestRevisionFacet_countsAFileForEachOfItsRevisions(t *testing.T) {
	t.Parallel()
	resp := &search.Response{Coverage: coverage.Of(coverage.Parts, 1, 1), Files: []search.File{
		{Repository: "r", Path: "a.go", Branches: []string{"HEAD", "refs/heads/main", "refs/tags/v1"}},
		{Repository: "r", Path: "b.go", Branches: []string{"HEAD", "refs/heads/main"}},
	}}
	resp.Stats.Files = 2
	box := layout.Box{Query: "rev:* x"}
	facets := facetsOf(resp.CountFiles(), box, facetRows)
	last := facets[len(facets)-1]
	if last.Name != "Revisions" || len(last.Rows) != 2 || last.Rows[0].Value != "main" || last.Rows[0].Count != "2" || last.Rows[1].Value != "v1" || last.Rows[1].Count != "1" {
		t.Errorf("facets end with %+v", last)
	}
	if want := searchURL(layout.Box{Query: "-rev:v1 rev:* x"}, 0); last.Rows[1].Exclude != want {
		t.Errorf("without v1: %s, want %s", last.Rows[1].Exclude, want)
	}

	resp.Files = resp.Files[1:]
	resp.Stats.Files = 1
	for _, f := range facetsOf(resp.CountFiles(), box, facetRows) {
		if f.Name == "Revisions" {
			t.Errorf("one revision is offered: %+v", f)
		}
	}
}

func TestDiff_showsChangedLineEnds(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		" one\n-two\r\n+two\n":         1,
		"-two\n+two\r\n":               1,
		"-one\r\n-two\r\n+one\n+two\n": 2,
		"-two\r\n+three\r\n":           0,
		"-two\r\n+three\n":             0,
		"-\r\n+\n":                     1,
		" two\r\n-a\n+b\n":             0,
		"-two\r\n\\ No newline at end of file\n+two\n": 1,
	} {
		hunks := []browse.DiffHunk{{OldStart: 1, NewStart: 1, Body: body}}
		for _, as := range changeViews {
			if n := strings.Count(string(appendHunks(nil, hunks, "Text", false, as)), "␍"); n != want {
				t.Errorf("%q as %v shows %d carriage returns, want %d", body, as.name, n, want)
			}
		}
	}
}

// The number of rows of a page is limited, however short they are.
// A hunk within a comment that neither opens nor closes in it has the colours of a comment, because
// it says what is open.
func TestDiffViews_colourAHunkThatBeginsInAComment(t *testing.T) {
	open := lex.For("C").After([]byte("/*\n"), 0)
	hunks := []browse.DiffHunk{{OldStart: 9, OldLines: 1, NewStart: 9, NewLines: 1, Body: "-if (one)\n+if (two)\n", OldOpen: open, NewOpen: 0}}
	for _, view := range changeViews {
		got := string(appendHunks(nil, hunks, "C", true, view))
		old, now, _ := strings.Cut(got, "+<")
		if strings.Contains(old, `class="k"`) || !strings.Contains(now, `class="k"`) {
			t.Errorf("%s: %s", view.name, got)
		}
	}
}

func TestDiffPage_limitsItsRows(t *testing.T) {
	t.Parallel()
	hunks := []browse.DiffHunk{{Body: " a\n-b\n+c\n"}, {Body: "-d\n\\ No newline at end of file"}, {Body: "+e\n"}}
	for most, want := range []string{"", " a\n", " a\n-b\n", " a\n-b\n+c\n", " a\n-b\n+c\n|-d\n", " a\n-b\n+c\n|-d\n\\ No newline at end of file", " a\n-b\n+c\n|-d\n\\ No newline at end of file|+e\n"} {
		left := most
		first, cut := firstLines(hunks, &left)
		var bodies []string
		for _, h := range first {
			bodies = append(bodies, h.Body)
		}
		if got := strings.Join(bodies, "|"); got != want || cut != (most < 6) || left != 0 {
			t.Errorf("%d lines: %q, cut %v, %d left; want %q", most, got, cut, left, want)
		}
	}
}
