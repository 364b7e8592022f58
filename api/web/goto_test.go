package web

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/suggest"
	"github.com/shoalsearch/shoal/node/symbols"
)

// nothing is a node that finds no text.
type nothing struct{ symbols.Searcher }

func (nothing) Search(context.Context, catalog.Viewer, search.Request) (*search.Response, error) {
	return &search.Response{}, nil
}

// named is the target and the nearest answer for every text.
type named struct {
	Suggester
	targets []suggest.Target
	near    *suggest.Nearest
}

func (n named) GoTo(context.Context, catalog.Viewer, string) []suggest.Target { return n.targets }

func (n named) Nearest(context.Context, catalog.Viewer, search.Request, *search.Response) *suggest.Nearest {
	return n.near
}

// pageOf returns the page of results for a text.
func pageOf(t *testing.T, text string, n named) string {
	t.Helper()
	p := New(Deps{Search: nothing{}, Suggest: n, Now: time.Now})
	v := &layout.Visit{Method: "GET", Path: "/search", Part: "results", Query: url.Values{"query": {text}}, Status: 200}
	if err := p.searching.search(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	return string(v.Body)
}

func TestGoToPage_linksToEachKindOfResult(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		target suggest.Target
		want   []string
	}{
		{suggest.Target{Kind: suggest.FileTarget, Repository: "h/r", Path: "src/dict.c", Line: 5, EndLine: 9, Text: "\treturn 1;"}, []string{`href="/browse/h/r/-/blob/src/dict.c#L5-L9"`, "src/dict.c:5-9", "return"}},
		{suggest.Target{Kind: suggest.FileTarget, Repository: "h/r", Revision: "v1", Path: "README.md", Line: 5}, []string{"/browse/h/r@v1/-/blob/README.md", "h/r at v1"}},
		{suggest.Target{Kind: suggest.DirectoryTarget, Repository: "h/r"}, []string{`href="/browse/h/r/-/tree/"`}},
		{suggest.Target{Kind: suggest.CommitTarget, Repository: "h/r", Revision: strings.Repeat("a", 40), Text: "fix <it>"}, []string{"/-/commit/aaaa", "fix &lt;it&gt;"}},
		{suggest.Target{Kind: suggest.CompareTarget, Repository: "h/r", Revision: "a...b"}, []string{"/-/compare/a...b"}},
		{suggest.Target{Kind: suggest.RepositoryTarget, Repository: "h/r"}, []string{`href="/browse/h/r"`}},
		{suggest.Target{Kind: suggest.SymbolTarget, Repository: "h/r", Path: "a.go", Line: 7, Text: "method Store.Open"}, []string{"/-/blob/a.go#L7", "method Store.Open"}},
		{suggest.Target{Kind: suggest.FilesTarget, Text: "*.go", Query: "type:file file:x"}, []string{`href="/search?query=type%3Afile&#43;file%3Ax"`, "files *.go"}},
	} {
		body := pageOf(t, "x", named{targets: []suggest.Target{c.target}})
		for _, want := range append(c.want, `aria-label="Go to"`, "Nothing has this as text") {
			if !strings.Contains(body, want) {
				t.Errorf("%s: the page lacks %s:\n%s", c.target.Kind, want, body)
			}
		}
	}
	if body := pageOf(t, "x", named{}); strings.Contains(body, "goto") || strings.Contains(body, "✓") {
		t.Errorf("a text that names nothing, and is nowhere, has\n%s", body)
	}
}

func TestDefinitionPage_saysWhichDefinitionIsNearest(t *testing.T) {
	t.Parallel()
	n := &suggest.Nearest{Parts: "failed to open", Request: search.Request{Query: `"failed.*open"`, Regexp: true}, Response: &search.Response{Files: []search.File{{Repository: "h/r", Path: "errors.go"}}}}
	body := pageOf(t, "failed to open 7", named{near: n})
	for _, want := range []string{"<h1 class=\"summary\">Nothing has this text", "These lines have most of it", "<code>failed to open</code>", "errors.go", "isRegexEnabled=true"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s:\n%s", want, body)
		}
	}
}
