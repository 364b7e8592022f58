package web

import (
	"regexp"
	"strings"
	"testing"
)

func TestPage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url, mime string
		ok        bool
	}{
		{"/", "text/html; charset=utf-8", true},
		{"/search", "text/html; charset=utf-8", true},
		{"/browse/local/demo@main/-/blob/a%2Fb.go", "text/html; charset=utf-8", true},
		{"/static/app.js", "text/javascript; charset=utf-8", true},
		{"/static/style.css", "text/css; charset=utf-8", true},
		{"/static/icon.svg", "image/svg+xml", true},
		{"/static/../web.go", "", false},
		{"/static/", "", false},
		{"/static/nothing.js", "", false},
		{"/other", "", false},
	} {
		body, mime, ok := Page(c.url)
		if ok != c.ok || ok && (mime != c.mime || len(body) == 0) {
			t.Errorf("Page(%q) = %d bytes, %q, %t; want %q, %t", c.url, len(body), mime, ok, c.mime, c.ok)
		}
	}
}

// The policy forbids what is inline or from elsewhere: the browser would
// silently leave it out.
func TestTheDocumentObeysItsPolicy(t *testing.T) {
	t.Parallel()
	body, _, _ := Page("/")
	for _, bad := range []string{`<script>`, `<style`, ` style="`, ` onclick=`, `http://`, `https://`} {
		if strings.Contains(string(body), bad) {
			t.Errorf("index.html has %q", bad)
		}
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="(/static/[^"]+)"`).FindAllStringSubmatch(string(body), -1) {
		if _, _, ok := Page(m[1]); !ok {
			t.Errorf("index.html refers to %s, which is not there", m[1])
		}
	}
	script, _, _ := Page("/static/app.js")
	if strings.Contains(string(script), "innerHTML") {
		t.Error("app.js uses innerHTML: text of repositories must never become markup")
	}
}

// The pages pass lists of lists of elements around; one that is not unfolded
// would be shown as the text of its links.
func TestElementsUnfoldLists(t *testing.T) {
	t.Parallel()
	script, _, _ := Page("/static/app.js")
	for _, want := range []string{"e.append(...children.flat(Infinity)", "main.replaceChildren(...children.flat(Infinity)"} {
		if !strings.Contains(string(script), want) {
			t.Errorf("app.js does not unfold lists: no %s", want)
		}
	}
}
