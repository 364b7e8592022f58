package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/api/layout"
)

// own lists what of a page is not of this site's own making: elements that no
// page has, handlers and styles in attributes, addresses that lead elsewhere.
var own = `(() => {
  const drawings = new Set(` + drawings() + `);
  const known = new Set('HTML HEAD META TITLE LINK SCRIPT BODY A HEADER FORM INPUT SPAN LABEL BUTTON NAV DIV MAIN H1 H2 H3 P UL OL LI ARTICLE SECTION ASIDE CODE PRE BDI I MARK DETAILS SUMMARY DL DT DD TABLE CAPTION THEAD TBODY TR TH TD IMG TIME SELECT OPTION STRONG EM KBD BR HR BLOCKQUOTE DIALOG TEXTAREA DEL SVG USE FIGURE FIGCAPTION'.split(' '));
  const drawn = new Set('H4 H5 H6 B S INS SUB SUP SAMP VAR'.split(' ')); // in a document
  const here = u => { const at = new URL(u, location.href); return at.origin === location.origin; };
  const bad = [];
  for (const e of document.querySelectorAll('*')) {
    const say = what => bad.push(what + ': ' + e.outerHTML.slice(0, 200));
    const document = e.parentElement && e.parentElement.closest('.markdown');
    const frame = e.matches('head > style, .brand > svg, .brand > svg *, #lookup > datalist, datalist#revisions, bdi > wbr, b.isA, b.isM, b.isD, b.isR, .charts svg > rect') // of the style the policy allows one text
      || drawings.has(e.closest('svg.icon')?.outerHTML);
    if (!known.has(e.tagName.toUpperCase()) && !frame && !(document && drawn.has(e.tagName))) say('an element');
    if (document && e.id && !e.id.startsWith('md-')) say('an id ' + e.id);
    for (const a of e.attributes) {
      if (/^on/.test(a.name) || a.name === 'style' || a.name === 'srcdoc') say('an attribute ' + a.name);
      if (document && a.name === 'href' && /^(https?|mailto):/.test(a.value) && e.rel === 'nofollow noreferrer noopener') continue;
      if (['href', 'src', 'action', 'formaction'].includes(a.name) && !here(a.value)) say('an address ' + a.value);
    }
    if (e.tagName === 'SCRIPT' && (e.textContent || !new URL(e.src).pathname.startsWith('/static/'))) say('a script');
    if (e.tagName === 'IMG' && !/^\/static\/|\/-\/raw\//.test(new URL(e.src).pathname)) say('an image');
  }
  return bad.concat(window.reports);
})()`

// drawings is the drawings of the site as a browser writes them, as a list of a script.
func drawings() string {
	var all []string
	for _, name := range layout.Icons() {
		all = append(all, regexp.MustCompile(`<(\w+)([^>]*)/>`).ReplaceAllString(string(layout.Icon(name)), "<$1$2></$1>"))
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic("BUG: texts are always JSON: " + err.Error())
	}
	return string(text)
}

// innocent opens a page and holds it to consist of nothing but this site's own.
func (b *tab) innocent(path string, status int64) {
	b.t.Helper()
	b.goTo(path, status)
	b.clean(path)
}

func (b *tab) clean(what string) {
	b.t.Helper()
	for _, bad := range eval[[]string](b, own) {
		b.t.Errorf("%s: %s", what, bad)
	}
}

// nothingOfARepositoryBecomesMarkup opens every page of the hostile repository.
func nothingOfARepositoryBecomesMarkup(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	at := func(kind, path string) string { return browse(hostileRepo, "", kind, path) }
	for _, path := range []string{
		"/", "/repos", "/repos?query=%3Cscript%3E", "/cluster", at("", ""), at("commits", ""), at("branches", ""), at("tags", ""), at("compare", "HEAD~1...HEAD"),
		find("<script>pwned()</script>"), find(`"><img src=x onerror=pwned()>`), find("needle rev:*"), find("nosuch" + rlo), find("type:repo img"), find("sym:x"),
	} {
		b.innocent(path, 200)
	}
	for _, path := range []string{"/%3Cscript%3Epwned()%3C/script%3E", at("blob", "<script>"), at("<b>", ""), browse(hostileRepo, "<svg>", "", "")} {
		b.innocent(path, 404)
	}
	b.innocent(find("lang:<script>"), 400)

	// Each entry of the directory leads to its own file, whatever it is called.
	b.innocent(at("", ""), 200)
	entries := eval[[]struct{ Name, URL string }](b, `[...document.querySelectorAll('table.tree a.path')].map(a => ({Name: a.textContent, URL: a.getAttribute('href')}))`)
	if want := len(hostileNames) + 17; len(entries) != want {
		t.Errorf("the directory has %d entries, want %d", len(entries), want)
	}
	for _, e := range entries {
		b.innocent(e.URL, 200)
		if strings.Contains(e.URL, "/-/tree/") {
			continue
		}
		b.innocent(strings.Replace(e.URL, "/-/blob/", "/-/blame/", 1), 200)
		b.innocent(strings.Replace(e.URL, "/-/blob/", "/-/commits/", 1), 200)
		s.harmlessRaw(t, strings.Replace(e.URL, "/-/blob/", "/-/raw/", 1))
	}

	// A name with a slash is a directory and what is in it.
	b.innocent(at("tree", "<script src=x"), 200)
	b.innocent(at("blob", "<script src=x/>"), 200)
	b.innocent(at("names", "")+"?name="+url.QueryEscape("<script src=x/>"), 200)

	// Each of the forms is in the page as text, the whole of it.
	b.innocent(at("blob", "forms.html"), 200)
	b.expect("the text of the file", `document.querySelector('.text').textContent === `+quote(strings.Join(hostileForms, "\n")+"\n"))
	b.innocent(find("needle file:forms"), 200)
	b.expect("all matches", fmt.Sprintf(`[...document.querySelectorAll('.line.hit mark')].filter(e => e.textContent === 'needle').length === %d`, len(hostileForms)))

	// A branch and a commit of such names.
	b.innocent(browse(hostileRepo, "<svg/onload=pwned()>", "", ""), 200)
	b.innocent(browse(hostileRepo, "feature/x@y", "blob", "bidi.go"), 200)
	b.innocent(at("commits", ""), 200)
	b.innocent(eval[string](b, `[...document.querySelectorAll('a')].find(a => a.href.includes('/-/commit/')).getAttribute('href')`), 200)
	first := s.hostile.Git("rev-list", "--max-parents=0", "HEAD")
	for _, query := range []string{"", "?view=split"} {
		b.innocent(at("compare", first+"...HEAD")+query, 200)
	}

	// And while somebody types.
	b.goTo("/", 200)
	b.press("pwned")
	b.until("results", `document.querySelectorAll('#files .file').length > 3`)
	b.clean("results while typing")
}

// harmlessRaw holds a raw file to run nothing in this site.
func (s *site) harmlessRaw(t *testing.T, path string) {
	t.Helper()
	r, err := http.Get(s.url + path)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	mime := r.Header.Get("Content-Type")
	inline := strings.HasPrefix(mime, "text/plain") || strings.HasPrefix(mime, "image/") || r.Header.Get("Content-Disposition") == "attachment"
	if r.StatusCode != 200 || !strings.Contains(r.Header.Get("Content-Security-Policy"), "sandbox") || r.Header.Get("X-Content-Type-Options") != "nosniff" || !inline {
		t.Errorf("%s: %s %v", path, r.Status, r.Header)
	}
}

// hiddenCharactersAreSeen shows what a file and a name would hide.
func hiddenCharactersAreSeen(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(browse(hostileRepo, "", "blob", "bidi.go"), 200)
	b.expect("a warning", `document.querySelector('[role=note]').textContent.includes('hidden characters')`)
	b.expect("a box with its code", `[...document.querySelectorAll('.text .hid')].some(e => e.dataset.c === 'U+202E' && e.getBoundingClientRect().width > 20)`)
	b.expect("the text is that of the file", `document.querySelector('.text').textContent.includes('needle\u202e } \u2066if isAdmin')`)
	b.goTo(browse(hostileRepo, "", "", ""), 200)
	b.expect("the name of a file keeps its direction", `[...document.querySelectorAll('a.path bdi')].some(e => e.textContent === 'evil\u202egpj.sh' && e.querySelector('.hid'))`)
	b.expect("a line break in a name is seen", `[...document.querySelectorAll('a.path bdi')].some(e => e.querySelector('.hid[data-c="U+000A"]'))`)
	b.goTo(browse(appRepo, "", "blob", "main.go"), 200)
	b.expect("no warning for a plain file", `!document.querySelector('[role=note]')`)
}
