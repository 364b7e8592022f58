package markdown_test

import (
	"context"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/shoalsearch/shoal/api/web/markdown"
)

// known is every element that a document may have, with its attributes.
var known = map[string]string{
	"p": "", "br": "", "hr": "", "strong": "", "em": "", "b": "", "s": "", "del": "", "ins": "", "sub": "", "sup": "", "kbd": "", "samp": "", "var": "", "code": "", "blockquote": "class",
	"h1": "id class", "h2": "id class", "h3": "id class", "h4": "id class", "h5": "id class", "h6": "id class", "i": "class", "bdi": "class data-c", "span": "class",
	"pre": "tabindex", "ul": "class", "ol": "class start", "li": "", "dl": "", "dt": "", "dd": "", "details": "", "summary": "",
	"table": "", "thead": "", "tbody": "", "tr": "", "td": "class", "th": "class scope", "div": "class tabindex role aria-label",
	"a": "href title rel id class", "img": "src alt title width height loading", "input": "type disabled checked aria-label",
}

var (
	ids     = regexp.MustCompile(`^md-`)
	classes = regexp.MustCompile(`^(size[1-6]|[csnktd]|wide|tasks|note|tip|important|warning|caution|center|right|hid|cite|cite dim)$`)
)

// harmless holds what was drawn to the list, as a browser would read it within a
// page.
func harmless(t *testing.T, source string, drawn []byte) {
	t.Helper()
	page, err := html.Parse(strings.NewReader(`<!doctype html><body><main><section><div id="box">` + string(drawn) + `</div><p id="after"></p></section><p id="behind"></p></main><p id="last"></p></body>`))
	if err != nil {
		t.Fatal(err)
	}

	seen := map[string]bool{}
	for n := range page.Descendants() {
		if n.Type == html.CommentNode {
			t.Errorf("%q: a comment in %s", source, drawn)
		}
		if n.Type != html.ElementNode {
			continue
		}
		id := attribute(n, "id")
		switch id {
		case "box", "after":
			stands(t, source, drawn, n, "section")
			continue
		case "behind":
			stands(t, source, drawn, n, "main")
			continue
		case "last":
			stands(t, source, drawn, n, "body")
			continue
		case "":
		default:
			if seen[id] || !ids.MatchString(id) {
				t.Errorf("%q: the id %q in %s", source, id, drawn)
			}
			seen[id] = true
		}
		if n.Data == "html" || n.Data == "head" || n.Data == "body" || n.Data == "main" || n.Data == "section" {
			continue
		}
		listed(t, source, n)
	}
}

// stands holds an element of the page to stand where the page has it.
func stands(t *testing.T, source string, drawn []byte, n *html.Node, parent string) {
	t.Helper()
	if n.Parent.Data != parent {
		t.Errorf("%q: #%s stands in %s: %s", source, attribute(n, "id"), n.Parent.Data, drawn)
	}
}

func listed(t *testing.T, source string, n *html.Node) {
	t.Helper()
	attributes, ok := known[n.Data]
	if !ok {
		t.Errorf("%q: the element %s", source, n.Data)
	}
	for _, a := range n.Attr {
		if !strings.Contains(" "+attributes+" ", " "+a.Key+" ") {
			t.Errorf("%q: the attribute %s of %s", source, a.Key, n.Data)
		}
		switch a.Key {
		case "class":
			if !classes.MatchString(a.Val) {
				t.Errorf("%q: the class %q", source, a.Val)
			}
		case "src":
			if !strings.HasPrefix(a.Val, "/raw/") {
				t.Errorf("%q: the image %q", source, a.Val)
			}
		case "href":
			leads(t, source, n, a.Val)
		}
	}
	if n.Data == "input" && (attribute(n, "type") != "checkbox" || attribute(n, "aria-label") == "") {
		t.Errorf("%q: a field that is none to tick", source)
	}
}

// leads holds an address to lead to a page of this site, or elsewhere by one of
// three schemes, and to say then what it has to.
func leads(t *testing.T, source string, n *html.Node, to string) {
	t.Helper()
	if strings.HasPrefix(to, "/blob/") || strings.HasPrefix(to, "/tree/") || strings.HasPrefix(to, "#md-") {
		return
	}
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
		t.Errorf("%q: the address %q: %v", source, to, err)
	}
	if attribute(n, "rel") != "nofollow noreferrer noopener" {
		t.Errorf("%q: the link to %q has rel %q", source, to, attribute(n, "rel"))
	}
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// hostile is what somebody writes who wants a page to do something else than show it.
var hostile = []string{
	"# <script>pwned()</script>", "[x](javascript:pwned())", "<img src=x onerror=pwned()>", "<svg/onload=pwned()>", "<a href='javascript:pwned()'>x</a>", "</div></section></main></body>", "<div><div></div></div></div>",
	"<table><tr><td><div></table></div>x", "<table><div><tr></div><td>", "<b><p>x</b>y</p>", "<a href=x><a href=y>z</a></a>", "<h1><h2></h1></h2>", "<li><ul><li></li></ul></li>", "<p><table><p></table>",
	"<details><summary><details></summary>", "<select><option><div></select>", "<math><mtext><table><mglyph><style><img src=x onerror=pwned()></style></mglyph></table></mtext></math>",
	"<noscript><p title=\"</noscript><img src=x onerror=pwned()>\">", "<textarea><img src=x></textarea>", "<template><b></template>", "<plaintext>", "<!--><img src=x onerror=pwned()>-->", "<?php x ?>", "<![CDATA[<b>]]>",
	"<style>@import '//example.com/x.css';</style>", "<div style=\"position:fixed\" class=top id=query>x</div>", "<a id=query name=code>x</a>", "<form action=//example.com><button>x</button></form>", "<input type=password name=key>",
	"<base href=//example.com/>", "<meta http-equiv=refresh content=0>", "<iframe srcdoc=x></iframe>", "[x](//example.com/ \"onmouseover=pwned()\\\"\")", "![x](https://example.com/t.png)", "[x](java&#x0A;script:pwned())", "[a]: javascript:pwned()\n[a]",
	"<http://example.com/\"onclick=pwned()>", "<javascript:pwned()>", "`<script>`", "```<img src=x>\n</code></pre><script>\n```", "|<td>|</table>|\n|-|-|\n|</div>|<script>|", "\x010\x02\x00\x1b[31m", "a\u202eb", "- [x] <input>", "<pre><code></pre></code>", "<ul>\n\n- a\n\n</ul></ul>",
	"<table>\n\n|a|\n|-|\n\n</table>", "> <div>\n> a\n\n</div>", "<b>\n\n# x\n\n</b>", "[<b>](x)</b>", "<a href=x>[y](z)</a>", "*<b>*</b>",
}

func TestRender_dropsHostileMarkup(t *testing.T) {
	t.Parallel()
	for _, source := range append(hostile, strings.Join(hostile, "\n\n"), strings.Join(hostile, " "), strings.Join(hostile, "\n")) {
		harmless(t, source, draw(t, site(), source).HTML)
	}
}

// FuzzRender_outputIsHarmlessMarkup draws anything, and reads it as a browser would.
func FuzzRender_outputIsHarmlessMarkup(f *testing.F) {
	for _, source := range hostile {
		f.Add(source)
	}
	if readme, err := os.ReadFile("testdata/readme.md"); err == nil {
		f.Add(string(readme))
	}
	f.Fuzz(func(t *testing.T, source string) {
		s := site()
		doc, err := markdown.Render(context.Background(), []byte(source), s)
		if err != nil {
			return
		}
		harmless(t, source, doc.HTML)
	})
}
