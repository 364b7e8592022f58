package web

import (
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"

	"github.com/shoalsearch/shoal/api/layout"
)

func TestMarkdownOf_convertsNotebooksAndCSVTables(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, text, want string }{
		{"a.ipynb", `{"cells": [{"cell_type": "markdown", "source": ["# Head\n", "words"]}, {"cell_type": "code", "source": "a = 1", "outputs": [{"text": ["1\n"]}, {"data": {"text/plain": "2", "image/png": "aaaa"}}]}], "metadata": {"language_info": {"name": "python"}}}`,
			"# Head\nwords\n\n```python\na = 1\n```\n\n```\n1\n```\n\n```\n2\n```\n\n"},
		{"a.ipynb", "{\"cells\": [{\"cell_type\": \"code\", \"source\": \"```\"}]}", "````\n```\n````\n\n"},
		{"a.ipynb", `{"cells": 1}`, ""},
		{"a.csv", "name,count\nredis,12\n\"a|b\",\"c\nd\"\nshort\n", "| name | count |\n|---|---|\n| redis | 12 |\n| a\\|b | c d |\n| short |  |\n"},
		{"a.tsv", "a\tb\n<b>\t[x](y)\n", "| a | b |\n|---|---|\n| \\<b\\> | \\[x\\]\\(y\\) |\n"},
		{"a.csv", "one\ntwo\n", ""},
		{"a.txt", "a,b\n", ""},
	} {
		if got := string(markdownOf("", c.file, []byte(c.text))); got != c.want {
			t.Errorf("%s %q:\n%q, want\n%q", c.file, c.text, got, c.want)
		}
	}
}

// A table is rendered with its rows, and markup in it is escaped.
func TestCSVFile_isRenderedAsATableWithEscapedMarkup(t *testing.T) {
	t.Parallel()
	p := New(Deps{Browse: oneFile{text: []byte("name,note\nredis,<b>bold</b> `code` &amp; ![x](y)\n")}, Now: time.Now})
	v := &layout.Visit{Method: "GET", Path: "/", Viewer: catalog.Viewer{}}
	if err := p.reading.sources.file(t.Context(), v, place{Repo: "acme/app", Kind: "blob", Path: "data.csv"}); err != nil {
		t.Fatal(err)
	}
	page := string(v.Body)
	for _, want := range []string{">name</th>", "<td>redis</td>", "&lt;b&gt;bold&lt;/b&gt; `code` &amp;amp; ![x](y)", `?plain=1`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}
