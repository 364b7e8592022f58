package web

import (
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/browse"
)

func stopped() time.Time { return time.Time{} }

// A document has coloured code and shows hidden characters, and its links keep the revision of
// the page.
func TestRenderedDocument_coloursCodeAndKeepsTheRevisionInLinks(t *testing.T) {
	t.Parallel()
	p := New(Deps{Now: stopped})
	l := place{Repo: "example.com/a", Rev: "v1/x", Kind: "blob", Path: "docs/a.md"}
	doc, refused := p.reading.sources.document(t.Context(), l, l.Path, []byte("[a](../b c.go#L3) [a](<../b c.go#L3>) ![d](e%20f.png) [g](h.md#L3) x\u202ey\n\n```golang\nfunc f() {}\n```\n\n```nosuch\nfunc \u200b\n```\n"), 1)
	if doc == nil || refused != "" {
		t.Fatal(refused)
	}
	for _, want := range []string{
		`<a href="/browse/example.com/a@v1%2Fx/-/blob/b%20c.go#L3">a</a>`, `<img src="/browse/example.com/a@v1%2Fx/-/raw/docs/e%20f.png" alt="d" loading="lazy">`,
		`<a href="/browse/example.com/a@v1%2Fx/-/blob/docs/h.md?plain=1#L3">g</a>`, "x<bdi class=\"hid\" data-c=\"U+202E\">\u202e</bdi>y",
		`<code><i class="k">func</i> f() {}`, "<code>func <bdi class=\"hid\" data-c=\"U+200B\">\u200b</bdi>\n</code>",
	} {
		if !strings.Contains(string(doc.HTML), want) {
			t.Errorf("no %s in\n%s", want, doc.HTML)
		}
	}

	if doc, refused := p.reading.sources.document(t.Context(), l, l.Path, make([]byte, 513<<10), 1); doc != nil || !strings.Contains(refused, "512 KB") {
		t.Errorf("%v %q", doc, refused)
	}
}

// An answer is rendered with its citations. Lines of a document lead to its source, and the
// model's text does not link into this site.
func TestAskAnswer_isRenderedWithCitationsAndWithoutOtherLinks(t *testing.T) {
	t.Parallel()
	p := New(Deps{Now: stopped})
	cite := func(path string, first int, state ask.CiteState) ask.Piece {
		return ask.Piece{Cite: &ask.Citation{Repo: "r", Path: path, Commit: "c0ffee", First: first, Last: first, State: state}}
	}
	doc, _ := p.conversations.answer(t.Context(), 2, []ask.Piece{
		{Text: "# One\n\n**It is "}, cite("a*b*.go", 3, ask.Cited), {Text: "** and `"}, cite("b.md", 4, ask.Moved), {Text: "`, not "}, cite("<img src=x>", 0, ask.Unverified),
		{Text: " \x010\x02 <script>pwned()</script> <b>x</b> [y](/settings/keys) [z](javascript:pwned()) ![w](https://example.com/?secret)"},
	})
	want := `<h3 id="t2-one" class="size1">One</h3>
<p><strong>It is <a class="cite" href="/browse/r@c0ffee/-/blob/a%2Ab%2A.go#L3">a*b*.go:3</a></strong> and <code><a class="cite" href="/browse/r@c0ffee/-/blob/b.md?plain=1#L4" title="moved to where this stands">b.md:4</a></code>, ` +
		`not <span class="cite dim">&lt;img src=x&gt; (unverified)</span> ` + "\uFFFD0\uFFFD" + ` &lt;script&gt;pwned()&lt;/script&gt; &lt;b&gt;x&lt;/b&gt; y z ` +
		`<a href="https://example.com/?secret" rel="nofollow noreferrer noopener">w</a> (example.com)</p>` + "\n"
	if got := string(doc.HTML); strings.ReplaceAll(got, "a*b*.go#", "a%2Ab%2A.go#") != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestDirectoryPage_showsTheREADME(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ names, want string }{
		{"a.go README README.md README.txt", "README.md"}, {"README.rst README", "README.rst"}, {"readme.txt", "readme.txt"}, {"readme/ README.MD", "README.MD"}, {"readmes.md a", ""},
	} {
		var entries []browse.TreeEntry
		for name := range strings.FieldsSeq(tt.names) {
			e := browse.TreeEntry{Name: strings.TrimSuffix(name, "/"), Path: strings.TrimSuffix(name, "/"), Type: "blob"}
			if e.Name != name {
				e.Type = "tree"
			}
			entries = append(entries, e)
		}
		if got := findReadme(entries); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.names, got, tt.want)
		}
	}
}

// A link to lines of a document leads to its source.
func TestRenderedDocument_lineLinksLeadToTheSource(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ page, file, want string }{
		{"/x/a.go#L3", "a.go", "/x/a.go#L3"}, {"/x/a.md", "a.md", "/x/a.md?plain=1"}, {"/x/A.MD#L3-L4", "A.MD", "/x/A.MD?plain=1#L3-L4"},
	} {
		if got := sourcePage(tt.page, tt.file); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.page, got, tt.want)
		}
	}
}
