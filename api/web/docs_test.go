package web

import (
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api/web/markdown"
	"github.com/shoalsearch/shoal/docs"
)

// Every page of the documentation can be rendered, and its links to other pages work.
func TestDocumentationPages_areRenderedWithWorkingLinks(t *testing.T) {
	t.Parallel()
	if len(manuals) < 30 || manuals[0].path != docsMap {
		t.Fatalf("%d pages, the first one %s", len(manuals), manuals[0].path)
	}
	for _, m := range manuals {
		site := markdown.Site{Dir: strings.TrimSuffix("docs/"+m.path[:strings.LastIndexByte("/"+m.path, '/')], "/")}
		site.File = func(p string) string {
			if rest, ok := strings.CutPrefix(p, "docs/"); ok && strings.HasSuffix(rest, ".md") {
				if _, err := fs.Stat(docs.Files, rest); err != nil {
					t.Errorf("docs/%s links to %s, which is not there", m.path, p)
				}
			}
			return "/x"
		}
		site.Tree = func(p string) string {
			t.Errorf("docs/%s links to the directory %s, which has no page at /docs", m.path, p)
			return "/x"
		}
		site.Now = func() time.Time { return time.Time{} }
		site.Text = func(dst, text []byte) []byte { return append(dst, text...) }
		site.Code = func(dst []byte, _ string, code []byte) []byte { return append(dst, code...) }
		if _, err := markdown.Render(t.Context(), []byte(m.text), site); err != nil {
			t.Errorf("docs/%s: %v", m.path, err)
		}
	}
}

// A search returns the pages with all its words, in any case, the most relevant first.
func TestDocumentationSearch_ranksPagesWithAllWords(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"drain node":       "how-to/add-remove-replace.md",
		"SNAPSHOT restore": "how-to/restore.md",
		"smtp_host":        "reference/flags-and-variables.md",
		"rotate key":       "how-to/rotate-keys.md",
		"sourcebot":        "how-to/from-sourcebot.md",
		"zzzz drain":       "",
	} {
		found := findManuals(strings.Fields(strings.ToLower(query)))
		got := ""
		for _, f := range found[:min(len(found), 3)] {
			if f.Path == want {
				got = f.Path
			}
			if f.Title == "" || f.Line == "" {
				t.Errorf("%s: a hit without title or line: %+v", query, f)
			}
		}
		if got != want || want == "" && len(found) > 0 {
			t.Errorf("%s: found %+v, want %s among the first three", query, found, want)
		}
	}
}
