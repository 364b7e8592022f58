package layout

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// A page names every module that its scripts import, so that none waits for
// another to be read, and each of them is there.
func TestPage_preloadsEveryScriptModuleItImports(t *testing.T) {
	t.Parallel()
	got := modulesOf([]string{"js/file.js"})
	for _, want := range []string{bootScript, "js/keys.js", "js/part.js", "js/file.js", "js/card.js", "js/names.js", "js/finder.js", "js/chooser.js", "js/lines.js", "js/wrap.js"} {
		if !slices.Contains(got, want) {
			t.Errorf("js/file.js needs %s, which the page does not name: %v", want, got)
		}
	}
	if len(got) != len(slices.Compact(slices.Sorted(slices.Values(got)))) {
		t.Errorf("a module is named twice: %v", got)
	}
	files, _ := assets()
	for _, name := range got {
		if _, ok := files[name]; !ok {
			t.Errorf("%s is named, and is not there", name)
		}
	}
	if slices.Contains(got, "js/palette.js") {
		t.Error("the palette is loaded when it is first asked for, not before")
	}
}

// A page may name any drawing of the sprite, and each is a drawing of ours: no address,
// no style, and a size that the style gives.
func TestIcons_areSafeDrawingsOfTheSprite(t *testing.T) {
	t.Parallel()
	names := Icons()
	if len(names) < 24 {
		t.Errorf("%d drawings, want 24 at least", len(names))
	}
	for _, name := range names {
		drawing, err := icon(name)
		if err != nil || strings.ContainsAny(string(drawing), "\n#") || strings.Contains(string(drawing), "style") || !strings.HasSuffix(string(drawing), "</svg>") {
			t.Errorf("%s is %q, %v", name, drawing, err)
		}
	}
	if _, err := icon("nosuch"); err == nil {
		t.Error("a drawing that is not there is an element")
	}
}

// What is left out of a style means nothing to a browser.
func TestMinifiedStyle_keepsItsMeaning(t *testing.T) {
	t.Parallel()
	for css, want := range map[string]string{
		"/* why */ a { color: red; }\nb > c, d:hover { margin: 0 1px; }": "a{color:red}b > c,d:hover{margin:0 1px}",
		"div :is(a, b) { width: calc(100% - 2px); }":                     "div :is(a,b){width:calc(100% - 2px)}",
		"@media (max-width: 9px) { a::before { content: \"\"; } }":       "@media (max-width:9px){a::before{content:\"\"}}",
	} {
		if got := string(minifyCSS([]byte(css))); got != want {
			t.Errorf("%s\nis %s\nwant %s", css, got, want)
		}
	}
}

// The theme that a reader chose is in the first byte of a page; another cookie is none.
func TestThemeCookie_choosesTheThemeOfAPage(t *testing.T) {
	t.Parallel()
	for cookie, want := range map[string]string{"dark": ` data-theme="dark">`, "light": ` data-theme="light">`, "": `data-page="x">`, `"><script>`: `data-page="x">`} {
		v := &Visit{Method: "GET", Cookie: func(string) string { return cookie }}
		var page bytes.Buffer
		v.Begin(&page, Head{Page: "x"})
		if first, _, _ := strings.Cut(page.String(), "<head>"); !strings.Contains(first, want) {
			t.Errorf("with the cookie %q a page begins\n%s", cookie, first)
		}
	}
}
