package web

import (
	"cmp"
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/docs"
	"github.com/shoalsearch/shoal/node/call"
)

// docsMap is the page of the documentation that lists all others.
const docsMap = "README.md"

var docsTemplate = layout.Parse(templates, "templates/docs.html")

// manual is a page of the documentation.
type manual struct{ path, title, text string }

// manuals has all pages of the documentation, docsMap first, then by path. The files are part of the
// program, so reading cannot fail.
var manuals = func() (all []manual) {
	_ = fs.WalkDir(docs.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			text, _ := docs.Files.ReadFile(name)
			title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
			all = append(all, manual{name, title, string(text)})
		}
		return err
	})
	slices.SortFunc(all, func(a, b manual) int {
		return cmp.Or(cmp.Compare(strings.Count(b.path, docsMap), strings.Count(a.path, docsMap)), cmp.Compare(a.path, b.path))
	})
	return all
}()

// foundManual is a page that has all words of a search, with the line that has most of them.
type foundManual struct {
	Path, Title, Line string
	score             int
}

// docs shows a page of the documentation, or the pages with all words of ?q=.
func (p *overview) docs(ctx context.Context, v *layout.Visit) error {
	name := cmp.Or(strings.Trim(strings.TrimPrefix(v.Path, "/docs"), "/"), docsMap)
	data := struct {
		Query, Source string
		Doc           *document
		Found         []foundManual
		Searched      bool
		Map           bool // the page is docsMap
	}{Query: strings.TrimSpace(v.Query.Get("q"))}

	if data.Query != "" && utf8.ValidString(data.Query) {
		data.Searched, data.Found = true, findManuals(strings.Fields(strings.ToLower(data.Query)))
		return v.Show(layout.Head{Title: "Documentation", Page: "docs"}, docsTemplate, data)
	}
	i := slices.IndexFunc(manuals, func(m manual) bool { return m.path == name || m.path == name+".md" })
	if i < 0 {
		return call.Fail(call.ErrNotFound, "There is no such page of the documentation: /docs lists them.")
	}

	data.Map, name = manuals[i].path == docsMap, manuals[i].path

	// Links to files outside of docs lead to the list: this site does not serve those files.
	site := p.markdownSite("md", 0)
	site.Dir = path.Dir("docs/" + name)
	site.File = func(p string) string {
		if rest, ok := strings.CutPrefix(p, "docs/"); ok {
			return "/docs/" + rest
		}
		return "/docs"
	}
	site.Tree = func(string) string { return "/docs" }
	if data.Doc, _ = render(ctx, []byte(manuals[i].text), site); data.Doc == nil {
		data.Source = manuals[i].text
	}
	return v.Show(layout.Head{Title: manuals[i].title, Page: "docs"}, docsTemplate, data)
}

// findManuals returns the pages that have all words. Pages with more of the words in their path and
// headings come first. Other lines do not count, because long pages would always come first.
func findManuals(words []string) (found []foundManual) {
	for _, m := range manuals {
		f := foundManual{Path: m.path, Title: m.title}
		text, best := strings.ToLower(m.text), -1
		if slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			continue
		}

		for _, w := range words {
			if strings.Contains(strings.ToLower(m.path), w) {
				f.score += 10
			}
		}

		for line := range strings.SplitSeq(m.text, "\n") {
			low, n := strings.ToLower(line), 0
			for _, w := range words {
				if strings.Contains(low, w) {
					n++
				}
			}
			if strings.HasPrefix(line, "#") {
				f.score += n
			}
			if n > best {
				best, f.Line = n, strings.Trim(line, "#|* ")
			}
		}
		found = append(found, f)
	}
	slices.SortStableFunc(found, func(a, b foundManual) int { return cmp.Compare(b.score, a.score) })
	return found
}
