package markdown_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"html"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api/web/markdown"
)

// site is a site for a document in docs, whose clock stands still.
func site() markdown.Site {
	at := func(kind string) func(string) string {
		return func(path string) string {
			return "/" + kind + "/" + strings.ReplaceAll(url.PathEscape(path), "%2F", "/")
		}
	}
	return markdown.Site{
		Dir: "docs", File: at("blob"), Tree: at("tree"), Raw: at("raw"), Prefix: "md", Level: 1,
		Text: func(dst, text []byte) []byte { return append(dst, html.EscapeString(string(text))...) },
		Code: func(dst []byte, language string, code []byte) []byte {
			if language != "" {
				dst = append(dst, `<i class="k">`+html.EscapeString(language)+`</i> `...)
			}
			return append(dst, html.EscapeString(string(code))...)
		},
		Now: func() time.Time { return time.Time{} },
	}
}

func draw(t testing.TB, s markdown.Site, source string) *markdown.Document {
	t.Helper()
	doc, err := markdown.Render(context.Background(), []byte(source), s)
	if err != nil {
		t.Fatalf("%.100q: %v", source, err)
	}
	return doc
}

const outside = ` rel="nofollow noreferrer noopener"`

func TestRender_writesTheHTMLOfEachConstruct(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ source, want string }{
		// Text.
		{"a *b* **c** ~~d~~ `e<f`", "<p>a <em>b</em> <strong>c</strong> <del>d</del> <code>e&lt;f</code></p>\n"},
		{"a  \nb\nc", "<p>a<br>\nb\nc</p>\n"},
		{`\*a\* &amp; \&amp; &copy; &#x3C;b>`, "<p>*a* &amp; &amp;amp; © &lt;b&gt;</p>\n"},
		{"> a\n\n---\n", "<blockquote>\n<p>a</p>\n</blockquote>\n<hr>\n"},

		// A quote may be a note of one of five kinds.
		{"> [!WARNING]\n> a *b*\n>\n> c\n", "<blockquote class=\"warning\"><p><strong>Warning</strong></p>\n<p>a <em>b</em></p>\n<p>c</p>\n</blockquote>\n"},
		{"> [!tip]\n> - a\n", "<blockquote class=\"tip\"><p><strong>Tip</strong></p>\n<ul>\n<li>a</li>\n</ul>\n</blockquote>\n"},
		{"> [!OTHER]\n> a\n", "<blockquote>\n<p>[!OTHER]\na</p>\n</blockquote>\n"},
		{"> [!NOTE] a\n\n<blockquote class=\"top\">b</blockquote>", "<blockquote>\n<p>[!NOTE] a</p>\n</blockquote>\n<blockquote>b</blockquote>"},

		// Code in a line ends with as many backticks as it begins with.
		{"`a ``b` ``c` d`` \\`e` `f", "<p><code>a ``b</code> <code>c` d</code> `e<code> </code>f</p>\n"},
		{"\\``a`\n```\nb", "<p>`<code>a</code></p>\n<pre tabindex=\"0\"><code>b\n</code></pre>\n"},

		// Headings have ids that are the document's own, and leave out no level.
		{"# A b\n\n### C, `d`!\n\n# A b", "<h2 id=\"md-a-b\" class=\"size1\">A b</h2>\n<h3 id=\"md-c-d\" class=\"size3\">C, <code>d</code>!</h3>\n<h2 id=\"md-a-b-1\" class=\"size1\">A b</h2>\n"},
		{"# Ünï_1\n\n# <i>", "<h2 id=\"md-ünï_1\" class=\"size1\">Ünï_1</h2>\n<h2 id=\"md-\" class=\"size1\"><em></em></h2>\n"},

		// Lists.
		{"- a\n- b\n", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n"},
		{"3. a\n", "<ol start=\"3\">\n<li>a</li>\n</ol>\n"},
		{"- [x] a\n- [ ] b\n", "<ul class=\"tasks\">\n<li><input type=\"checkbox\" disabled=\"\" checked=\"\" aria-label=\"done\"> a</li>\n<li><input type=\"checkbox\" disabled=\"\" aria-label=\"to do\"> b</li>\n</ul>\n"},

		// Code.
		{"```go\na < b\n```\n", "<pre tabindex=\"0\"><code><i class=\"k\">go</i> a &lt; b\n</code></pre>\n"},
		{"~~~ {.rust,no_run}\na\n~~~\n", "<pre tabindex=\"0\"><code><i class=\"k\">rust</i> a\n</code></pre>\n"},
		{"    a\n", "<pre tabindex=\"0\"><code>a\n</code></pre>\n"},

		// Tables.
		{"| |b|\n|-|-:|\n|c|d|\n", "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table>\n<thead>\n<tr>\n<td></td>\n<th scope=\"col\" class=\"right\">b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>c</td>\n<td class=\"right\">d</td>\n</tr>\n</tbody>\n</table></div>\n"},

		{"|<script>|*a*|\n|-|-|\n", "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table>\n<thead>\n<tr>\n<td></td>\n<th scope=\"col\"><em>a</em></th>\n</tr>\n</thead>\n</table></div>\n"},

		// A link that says nothing is none.
		{"a[](b) [![](c.png)](d) <a href=e><b></b></a> [![f](f.png)](g)", "<p>a <img src=\"/raw/docs/c.png\" alt=\"\" loading=\"lazy\"> <b></b> <a href=\"/blob/docs/g\"><img src=\"/raw/docs/f.png\" alt=\"f\" loading=\"lazy\"></a></p>\n"},

		// HTML is drawn anew, and balanced.
		{"a<br>b <KBD class=x onclick=y()>c</kbd>", "<p>a<br>b <kbd>c</kbd></p>\n"},
		{"a <b>c *d</b> e* f", "<p>a <b>c <em>d</em></b> e f</p>\n"},
		{"</div></section> <b>a", " <b>a</b>"},
		{"<p align=\"center\">\n<img src=\"a.svg\" width=\"90\" height=\"9%\" alt=\"A\">\n<h1>b</h1>\n\n**c**\n\n</p>\n\nd", "<p>\n<img src=\"/raw/docs/a.svg\" alt=\"A\" width=\"90\" loading=\"lazy\">\n</p><h2 id=\"md-b\" class=\"size1\">b</h2>\n<p><strong>c</strong></p>\n\n<p>d</p>\n"},
		{"<details><summary>a</summary>\n\nb\n\n</details>\nc", "<details><summary>a</summary>\n<p>b</p>\n</details>\nc"},
		{"<ul><li>a<li>b</ul>", "<ul><li>a</li><li>b</li></ul>"},
		{"<table><tr><th>a<td>b</table>", "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table><tr><th scope=\"col\">a</th><td>b</td></tr></table></div>"},
		{"<a name=\"X y\"></a>[x](#x-y)", "<p><a id=\"md-x-y\"></a><a href=\"#md-x-y\">x</a></p>\n"},
		{"<!-- a -->\n\n<script>\nb\n</script>\n\n<style>c{}</style>\n\nd", "\n\n\n<p>d</p>\n"},
		{"<div>\n<svg onload=x()><text>a</text></svg>\n<iframe src=x>b</iframe>\n<form><input value=c>d</form>", "<div>\na\n\nd</div>"},
	} {
		if got := string(draw(t, site(), tt.source).HTML); got != tt.want {
			t.Errorf("%q:\n%q\nwant\n%q", tt.source, got, tt.want)
		}
	}
}

func TestRender_resolvesLinksWithinTheRepository(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ address, want string }{
		{"https://example.com/a?b=c&d#e", "https://example.com/a?b=c&amp;d#e"}, {"HTTP://Example.com", "http://Example.com"}, {"mailto:a@example.com", "mailto:a@example.com"}, {"//example.com/x", "https://example.com/x"},
		{"#Install-it", "#md-install-it"}, {"a.md", "/blob/docs/a.md"}, {"a.md#Install", "/blob/docs/a.md#md-install"}, {"a.md#L3", "/blob/docs/a.md?plain=1#L3"}, {"main.go#L10-L20", "/blob/docs/main.go#L10-L20"},
		{"../main.go?raw=true", "/blob/main.go"}, {"/x/y.go", "/blob/x/y.go"}, {"sub/", "/tree/docs/sub"}, {"..", "/tree/"}, {".", "/tree/docs"}, {"./a%20b.txt", "/blob/docs/a%20b.txt"}, {"<c d.txt>", "/blob/docs/c%20d.txt"}, {"100%.txt", "/blob/docs/100%25.txt"},

		// Out of the repository, and nowhere.
		{"../../x", ""}, {"/../x", ""}, {"a%00b", ""}, {"%0A", ""}, {"?x", ""},
		{"javascript:pwned()", ""}, {"JaVaScRiPt:pwned()", ""}, {"javascript&colon;pwned()", ""}, {"javascript&#58;pwned()", ""}, {"&#106;avascript:pwned()", ""}, {"java&Tab;script:pwned()", ""}, {"java&NewLine;script:pwned()", ""},
		{"&#1;javascript:pwned()", ""}, {"<java\tscript:pwned()>", ""}, {"< javascript:pwned()>", ""}, {`javascript\:pwned()`, ""}, {"vbscript:pwned()", ""}, {"data:text/html,x", ""}, {"DATA:image/svg+xml,x", ""},
		{"file:///etc/passwd", ""}, {"ftp://example.com", ""}, {"blob:https://example.com/x", ""}, {"view-source:x", ""}, {"https:", ""}, {"https:///x", ""}, {"http://[::1", ""}, {"tel:1", ""},
	} {
		want := "<p>x</p>\n"
		if tt.want != "" {
			want = `<p><a href="` + tt.want + `"`
			if strings.Contains(tt.want, ":") {
				want += outside
			}
			want += ">x</a></p>\n"
		}
		if got := string(draw(t, site(), "[x]("+tt.address+")").HTML); got != want {
			t.Errorf("%q:\n%s%s", tt.address, got, want)
		}
	}
}

func TestRender_turnsImagesOfOtherSitesIntoLinks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ source, want string }{
		{"![a](b.png \"c\")", `<img src="/raw/docs/b.png" alt="a" title="c" loading="lazy">`},
		{"![a *b* `c`](/b.png?raw=true)", `<img src="/raw/b.png" alt="a b c" loading="lazy">`},
		{"![a](https://example.com/x.png)", `<a href="https://example.com/x.png"` + outside + `>a</a>`},
		{"![](//example.com/x.png)", `<a href="https://example.com/x.png"` + outside + `>image</a>`},
		{"[![a](https://example.com/x.svg)](https://example.com)", `<a href="https://example.com"` + outside + `>a</a>`},
		{"[![a](b.svg)](c.md)", `<a href="/blob/docs/c.md"><img src="/raw/docs/b.svg" alt="a" loading="lazy"></a>`},
		{"![a](data:image/png;base64,AA)", `a`}, {"![a](javascript:x)", `a`}, {"![a](../../b.png)", `a`},
		{`<img src=x onerror=pwned() alt="a">`, `<img src="/raw/docs/x" alt="a" loading="lazy">`},
		{`<img src="https://example.com/x" alt='"><script>'>`, `<a href="https://example.com/x"` + outside + `>&#34;&gt;&lt;script&gt;</a>`},
		{`<a href="https://a.example"><img src="https://b.example/x" alt=c></a>`, `<a href="https://a.example"` + outside + `>c</a>`},
		{"https://example.com/a_b_c, www.example.com and a@example.com", `<a href="https://example.com/a_b_c"` + outside + `>https://example.com/a_b_c</a>, <a href="http://www.example.com"` + outside + `>www.example.com</a> and <a href="mailto:a@example.com"` + outside + `>a@example.com</a>`},
	} {
		if got := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(string(draw(t, site(), tt.source).HTML)), "<p>"), "</p>"); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.source, got, tt.want)
		}
	}
}

// TestRender_ofAnAnswerLinksOnlyCitations draws an answer: a citation is a link wherever it stands,
// nothing that a model writes is one, and its HTML is text.
func TestRender_ofAnAnswerLinksOnlyCitations(t *testing.T) {
	t.Parallel()
	s := site()
	s.File, s.Tree, s.Raw, s.Literal = nil, nil, nil, true
	s.Cites = []markdown.Cite{{Label: "a_b.go:3", URL: "/browse/x/-/blob/a_b.go#L3"}, {Label: "c.go", Note: "unverified"}, {Label: "d<e>.go", URL: "/browse/x/-/blob/d", Note: "moved"}}
	a, c, d := `<a class="cite" href="/browse/x/-/blob/a_b.go#L3">a_b.go:3</a>`, `<span class="cite dim">c.go (unverified)</span>`, `<a class="cite" href="/browse/x/-/blob/d" title="moved">d&lt;e&gt;.go</a>`
	for _, tt := range []struct{ source, want string }{
		{"By **x " + markdown.Mark(0) + "**, " + markdown.Mark(1) + ".", "<p>By <strong>x " + a + "</strong>, " + c + ".</p>\n"},
		{markdown.Mark(2), "<p>" + d + "</p>\n"},
		{"- " + markdown.Mark(0) + "\n- `" + markdown.Mark(2) + "`", "<ul>\n<li>" + a + "</li>\n<li><code>" + d + "</code></li>\n</ul>\n"},
		{"```go\nx " + markdown.Mark(0) + "\n```", "<pre tabindex=\"0\"><code>x " + a + "\n</code></pre>\n"},
		{"|a|\n|-|\n|" + markdown.Mark(0) + "|", "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table>\n<thead>\n<tr>\n<th scope=\"col\">a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>" + a + "</td>\n</tr>\n</tbody>\n</table></div>\n"},
		{"# A " + markdown.Mark(0), "<h2 id=\"md-a-a_bgo3\" class=\"size1\">A " + a + "</h2>\n"},
		{"[x " + markdown.Mark(0) + "](https://example.com/" + markdown.Mark(0) + ")", "<p><a href=\"https://example.com/a_b.go:3\"" + outside + ">x a_b.go:3</a> (example.com)</p>\n"},
		{"[safe](http://evil.example/?q=secret)", "<p><a href=\"http://evil.example/?q=secret\"" + outside + ">safe</a> (evil.example)</p>\n"},
		{"[https://good.example/](http://evil.example/)", "<p><a href=\"http://evil.example/\"" + outside + ">https://good.example/</a> (evil.example)</p>\n"},
		{"![safe](http://evil.example/a.png)", "<p><a href=\"http://evil.example/a.png\"" + outside + ">safe</a> (evil.example)</p>\n"},
		{"[me](mailto:a@evil.example)", "<p><a href=\"mailto:a@evil.example\"" + outside + ">me</a> (a@evil.example)</p>\n"},
		{"https://example.com/" + markdown.Mark(1), "<p><a href=\"https://example.com/\"" + outside + ">https://example.com/</a>" + c + "</p>\n"},
		{"a <b onclick=x()>b</b> [c](d.go) ![e](f.png)", "<p>a &lt;b onclick=x()&gt;b&lt;/b&gt; c e</p>\n"},
		{"<div>\n" + markdown.Mark(0), "<pre tabindex=\"0\">&lt;div&gt;\n" + a + "</pre>\n"},
		{markdown.Clean("\x010\x02 <a class=\"cite\" href=\"/x\">"), "<p>\uFFFD0\uFFFD &lt;a class=&#34;cite&#34; href=&#34;/x&#34;&gt;</p>\n"},
	} {
		if got := string(draw(t, s, tt.source).HTML); got != tt.want {
			t.Errorf("%q:\n%s\nwant\n%s", tt.source, got, tt.want)
		}
	}
}

// TestRender_refusesTooExpensiveDocuments gives documents that are built to take long. Each is
// refused, or drawn, soon.
func TestRender_refusesTooExpensiveDocuments(t *testing.T) {
	t.Parallel()
	fill := func(s string) string { return strings.Repeat(s, (512<<10)/len(s)) }
	for _, tt := range []struct {
		name, source string
		want         error // nil for any
	}{
		{"one byte too many", strings.Repeat("a", 512<<10+1), markdown.ErrLarge},
		{"10,000 quotes within each other", strings.Repeat(">", 10000) + "a", markdown.ErrDeep},
		{"lists within lists", strings.Repeat("- ", 150) + "a", markdown.ErrDeep},
		{"emphasis within emphasis", strings.Repeat("*a **b ", 200) + strings.Repeat("c** d*", 200), markdown.ErrDeep},
		{"images within images", strings.Repeat("![", 10000) + "x" + strings.Repeat("](y)", 10000), nil},
		{"tags within tags", strings.Repeat("<div>", 10000), markdown.ErrDeep},
		{"10,000 brackets within each other", strings.Repeat("[", 10000) + strings.Repeat("]", 10000), nil},
		{"brackets", fill("["), nil}, {"brackets within each other", strings.Repeat("[", 256<<10) + strings.Repeat("]", 256<<10), nil},
		{"delimiters", fill("*a_ "), markdown.ErrSlow}, {"links that do not end", fill("[a](b"), nil}, {"definitions", fill("[a]: b\n"), markdown.ErrSlow},
		{"fences", fill("```\n"), nil}, {"tags that do not end", fill("<a "), nil}, {"comments", fill("<!--"), nil}, {"addresses", fill("http://a.b/ "), nil},
		{"a table of 100,000 rows", "|a|\n|-|\n" + fill("|a|\n"), nil}, {"a wide table", fill("|a")[:256<<10] + "\n" + fill("|-")[:256<<10-2], nil},
		{"lists, each deeper", func() string {
			var b strings.Builder
			for i := 0; b.Len() < 500<<10; i++ {
				b.WriteString(strings.Repeat(" ", i*2) + "* a\n")
			}
			return b.String()
		}(), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := site()
			s.Now = time.Now
			began := time.Now()
			doc, err := markdown.Render(context.Background(), []byte(tt.source), s)
			if took := time.Since(began); took > 5*time.Second { // 50 ms on a machine that does nothing else, and what cannot be stopped
				t.Errorf("took %v", took)
			}
			if slow := errors.Is(err, markdown.ErrSlow); tt.want != nil && !errors.Is(err, tt.want) && !slow {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if (doc == nil) == (err == nil) {
				t.Errorf("document %v and error %v", doc != nil, err)
			}
		})
	}
}

// A document that is slow by itself is given up; one that had to wait for a busy machine
// is drawn.
func TestRender_givesUpADocumentThatUsesTooMuchCPU(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a *b* c\n\n", 5000)
	for _, c := range []struct {
		text string
		look time.Duration // that passes between two looks at the clock
		want error
	}{
		{"# Guide\n\n* one\n* two\n", time.Minute, nil},
		{long, time.Millisecond, markdown.ErrSlow},
		{long, 0, nil},
	} {
		s, now := site(), time.Unix(0, 0)
		s.Now = func() time.Time {
			now = now.Add(c.look)
			return now
		}
		if _, err := markdown.Render(context.Background(), []byte(c.text), s); !errors.Is(err, c.want) {
			t.Errorf("%d bytes, %v at each look: %v, want %v", len(c.text), c.look, err, c.want)
		}
	}
}

var update = flag.Bool("update", false, "write the golden files")

// TestRender_ofARealREADMEEqualsItsGolden draws a README that has a bit of everything.
func TestRender_ofARealREADMEEqualsItsGolden(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("testdata/readme.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := draw(t, site(), string(source))
	got := doc.HTML
	for _, h := range doc.Headings {
		got = append(got, strings.Repeat("  ", h.Level-1)+h.ID+" "+h.Text+"\n"...)
	}

	const golden = "testdata/readme.golden"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (-update writes it):\n%s", golden, got)
	}
}

func BenchmarkRender(b *testing.B) {
	source, err := os.ReadFile("testdata/readme.md")
	if err != nil {
		b.Fatal(err)
	}
	source = bytes.Repeat(append(source, "\n\n"...), 100<<10/len(source)+1)[:100<<10]
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		draw(b, site(), string(source))
	}
}
