package browser

import (
	"fmt"
	"strings"
	"testing"
)

// linesAreWrapped by w: each line has its number at its beginning, and the text
// stays the same, selected lines and all.
func linesAreWrapped(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.size(320, 900)
	b.goTo(browse(appRepo, "", "blob", "greet/greet.go"), 200)
	text := `document.querySelector('.text').textContent`
	before := eval[string](b, text)
	wide := `document.querySelector('#code').scrollWidth > document.querySelector('#code').clientWidth`
	b.expect("lines that are too long for the window", wide)

	b.press("w")
	b.until("no line is", `!(`+wide+`)`)
	b.expect("the same text", text+` === `+quote(before))
	b.expect("a number for each line", `(l => l.length === `+quote(before)+`.trimEnd().split('\n').length && l[3].dataset.n === '4' && l[3].textContent.startsWith('func Greeting'))([...document.querySelectorAll('.text .line')])`)
	b.expect("a long line is higher", `[...document.querySelectorAll('.text .line')].some(l => l.offsetHeight > 30)`)
	eval[bool](b, `location.hash = '#L4', true`)
	b.until("the line of the address", `document.documentElement.dataset.line === '4'`)

	b.goTo(browse(appRepo, "", "blob", "greet/greet_test.go"), 200)
	b.expect("it is kept", `document.querySelector('.text .line')`)
	b.goTo(find("Greeting file:greet.go"), 200)
	b.expect("in results too", `getComputedStyle(document.querySelector('.line')).whiteSpace === 'pre-wrap'`)
	b.goTo(browse(appRepo, "", "blob", "greet/greet.go"), 200)
	b.press("w")
	b.until("as it was", `!document.querySelector('.text .line') && `+text+` === `+quote(before))
}

// anAnswerHasViews: more lines around the matches by e, files by repository; both
// are in the address, and without scripts they are links.
func anAnswerHasViews(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(find("TestGreeting"), 200)
	lines := `document.querySelectorAll('.line').length`
	was := eval[int](b, lines)
	eval[bool](b, `document.activeElement.blur(), true`)
	b.press("e")
	b.until("three lines around", `location.search.includes('ctx=3') && `+lines+` > `+fmt.Sprint(was))
	b.press("e")
	b.until("ten", `location.search.includes('ctx=10')`)
	b.press("e")
	b.until("one again", `!location.search.includes('ctx') && `+lines+` === `+fmt.Sprint(was))

	b.goTo(find("needle")+"&group=repo", 200)
	b.grouped()
	b.expect("links for it", `[...document.querySelectorAll('.menu li a')].some(a => a.textContent === 'best files first') && document.querySelector('.menu [aria-current]').textContent === 'by repository'`)

	// The same while somebody types, when the files out of sight come a moment later.
	b.goTo(find("needl")+"&group=repo", 200)
	eval[bool](b, `(q => { q.focus(); q.setSelectionRange(5, 5); })(document.getElementById('query')), true`)
	b.press("e")
	b.untilTyped("needle")
	b.grouped()
}

// grouped fails where the files of the page do not stand below the name of their
// repository, or a repository is named twice.
func (b *tab) grouped() {
	b.t.Helper()
	names := eval[[]string](b, `[...document.querySelectorAll('#files > .group, #files > .file')].map(e => e.matches('.group') ? '# ' + e.textContent : e.querySelector('.repo').textContent)`)
	group, seen := "", map[string]bool{}
	for _, n := range names {
		if g, ok := strings.CutPrefix(n, "# "); ok {
			if group = g; seen[g] {
				b.t.Errorf("%s heads two groups", g)
			}
			seen[g] = true
		} else if n != group {
			b.t.Errorf("a file of %s stands below %s", n, group)
		}
	}
	if len(seen) < 3 {
		b.t.Errorf("groups %v", seen)
	}
}

// searchesAreSaved in this browser, listed on the first page, and taken out again.
func searchesAreSaved(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(find("needle lang:go", "isCaseSensitivityEnabled"), 200)
	b.click("#save")
	b.until("it says so", `document.getElementById('save').getAttribute('aria-pressed') === 'true'`)
	b.goTo("/", 200)
	b.expect("it is on the first page", `document.querySelector('#saved a').textContent === 'needle lang:go'`)
	b.click("#saved a")
	b.until("the same search", `location.search.includes('isCaseSensitivityEnabled=true') && document.getElementById('save') && document.getElementById('save').textContent === 'Saved'`)
	b.goTo("/", 200)
	b.click("#saved button")
	b.expect("it is gone", `!document.querySelector('#saved li') && localStorage.getItem('saved') === '[]'`)
}

// thePaletteLeadsAnywhere: pages, repositories, files, symbols, by keyboard.
func thePaletteLeadsAnywhere(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(browse(appRepo, "", "", ""), 200)
	rows := `[...document.querySelectorAll('#paletteList li')].map(e => e.textContent)`
	for i, st := range []step{
		{[]string{"Ctrl+k"}, `document.activeElement.closest('#palette') && ` + rows + `.some(r => r.startsWith('Repositories'))`},
		{[]string{"app"}, `document.getElementById('palette').dataset.query === 'app' && ` + rows + `.some(r => r.startsWith('local/app') && r.endsWith('repository')) && ` + rows + `.some(r => r.startsWith('web/app.js') && r.endsWith('file'))`},
		{[]string{"Escape"}, `!document.getElementById('palette').open`},
		{[]string{"Ctrl+k", "Greet"}, `document.getElementById('palette').dataset.query === 'Greet' && ` + rows + `.some(r => r.startsWith('Greeting') && / in .*greet/.test(r)) && ` + rows + `.at(-1).startsWith('Search for Greet')`},
		{[]string{"Enter"}, `location.pathname !== ` + quote(browse(appRepo, "", "", "")) + ` && document.documentElement.dataset.booted`},
		{[]string{"Ctrl+k"}, `document.activeElement.closest('#palette')`},
		{[]string{"settings"}, `document.getElementById('palette') && document.getElementById('palette').dataset.query === 'settings'`},
		{[]string{"Enter"}, `location.pathname === '/settings' && document.documentElement.dataset.booted`},
	} {
		b.steps(i, st)
	}

	// Outside of the repository its files are found too, and what was read stands first.
	b.goTo("/repos", 200)
	for i, st := range []step{
		{[]string{"t"}, `document.activeElement.closest('#palette') && ` + rows + `[0] === 'local/app' + 'read lately'`},
		{[]string{"app.js"}, `document.getElementById('palette').dataset.query === 'app.js' && ` + rows + `.some(r => r.startsWith('web/app.js') && r.endsWith('local/app'))`},
		{[]string{"Enter"}, `location.pathname === ` + quote(browse(appRepo, "", "blob", "web/app.js")) + ` && document.documentElement.dataset.booted`},
		{[]string{"Ctrl+k", "greet/greet.go:4"}, `document.getElementById('palette').dataset.query === 'greet/greet.go:4' && ` + rows + `[0] === 'greet/greet.go:4local/app'`},
		{[]string{"Escape"}, `!document.getElementById('palette').open`},
		{[]string{"/", "Greeting"}, `document.querySelector('#files .file .repo')?.textContent === 'local/app' && !document.querySelector('#code').checkVisibility() && ` + drawnFor("Greeting")},
		{[]string{"Escape", "Escape"}, `document.querySelector('#code').checkVisibility() && location.pathname.endsWith('app.js')`},
	} {
		b.steps(20+i, st)
	}
}
