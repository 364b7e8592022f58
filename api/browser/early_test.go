package browser

import (
	"strconv"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/page"
)

// delay keeps the requests for a script from being sent, until release.
func (b *tab) delay(script string) (release func()) {
	b.t.Helper()
	b.must(call(b.ctx, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: "*/" + script}}}))

	return func() {
		b.t.Helper()
		b.must(call(b.ctx, fetch.Disable, cdp.Empty{}))
	}
}

// begin opens an address without waiting for all of it.
func (b *tab) begin(path string) {
	b.t.Helper()
	b.must(call(b.ctx, page.Navigate, page.NavigateParams{URL: b.base + path}))
	b.until("keys to be heard", `location.pathname === new URL(`+quote(b.base+path)+`).pathname && document.documentElement.dataset.keys === '1'`)
}

// keysAreHeldUntilTheyMeanSomething: nobody waits for the scripts of a page, or for
// a dialog, before typing on; what is pressed meanwhile is not lost, and means what
// it will mean then.
func keysAreHeldUntilTheyMeanSomething(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	finder := `document.getElementById('finder')`

	release := b.delay("js/finder.js")
	b.begin(browse(appRepo, "v1.0", "blob", "main.go"))
	b.press("t", "run")
	b.expect("the page is on its way", `!document.documentElement.dataset.booted && !`+finder)
	release()
	b.until("the finder with what was typed", finder+` && `+finder+`.open && `+finder+`.querySelector('input').value === 'run' && `+finder+`.dataset.query === 'run'`)

	// The box is there before the rest, and is not waited for.
	release = b.delay("js/search.js")
	b.begin(find("needle"))
	b.press("/")
	b.until("the box", `document.activeElement.id === 'query'`)
	b.press("Ctrl+End", " main")
	b.expect("what was typed in it", `document.getElementById('query').value === 'needle main' && !document.documentElement.dataset.booted`)
	release()
	b.until("all scripts", `document.documentElement.dataset.booted`)

	// What is typed behind Ctrl+K is for the palette, wherever the focus was.
	release = b.delay("js/palette.js")
	b.goTo("/", 200)
	b.expect("the focus in the box", `document.activeElement.id === 'query'`)
	b.press("Ctrl+k", "settx", "Backspace")
	release()
	palette := `document.getElementById('palette')`
	b.until("the palette with what was typed", palette+` && `+palette+`.querySelector('input').value === 'sett' && `+palette+`.dataset.query === 'sett'`)
	b.expect("nothing in the box", `document.getElementById('query').value === ''`)
}

// keysMayBeOthers: each single key can be put elsewhere, has one meaning at a time,
// and can be put back; all of them can be switched off.
func keysMayBeOthers(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	set := func(from, to string) {
		b.t.Helper()
		eval[bool](b, `(f => { f.elements.from.value = `+quote(from)+`; f.elements.to.value = `+quote(to)+`; f.elements.to.dispatchEvent(new Event('input', {bubbles: true})); f.requestSubmit(); return true; })(document.getElementById('remap'))`)
	}
	b.goTo("/help/keys", 200)
	set("j", "k")
	b.expect("a key that means something already is refused", `!document.querySelector('#remapped li') && document.getElementById('remap').elements.to.validationMessage.includes('k does something else')`)
	set("j", "d")
	set("g", "v")
	b.expect("both are listed", `document.getElementById('remapped').textContent.includes('d does what j did') && document.getElementById('remapped').textContent.includes('v does what g did')`)

	b.goTo(find("needle"), 200)
	eval[bool](b, `document.activeElement.blur(), true`)
	b.press("j")
	b.expect("the old key does nothing", `!document.querySelector('.file.on')`)
	b.press("d")
	b.until("the new one does", `document.querySelector('.file.on') === document.querySelector('.file')`)
	b.press("v", "r")
	b.until("a pair too", `location.pathname === '/repos' && document.documentElement.dataset.booted`)

	b.goTo("/help/keys", 200)
	for left := 2; left > 0; left-- {
		b.until("a list of what is other", `document.querySelectorAll('#remapped li button').length === `+strconv.Itoa(left))
		b.click("#remapped li button")
	}
	b.until("nothing is other", `!document.querySelector('#remapped li') && localStorage.getItem('keys') === '{}'`)
	b.goTo(find("needle"), 200)
	eval[bool](b, `document.activeElement.blur(), true`)
	b.press("j")
	b.until("the old key is back", `document.querySelector('.file.on')`)

	b.goTo("/help/keys", 200)
	b.click("#keysOff")
	b.goTo(find("needle"), 200)
	eval[bool](b, `document.activeElement.blur(), true`)
	b.press("j", "/")
	b.expect("no key does anything", `!document.querySelector('.file.on') && document.activeElement.id !== 'query'`)
	b.press("Ctrl+k")
	b.until("but those with a modifier", `document.activeElement.closest('#palette')`)
}

// lateResultsKeepTheFocus of somebody who has gone into the results before all of
// them were there.
func lateResultsKeepTheFocus(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(find("needle"), 200)
	eval[bool](b, `(window.was = document.querySelectorAll('.file a.path')[2], was.focus(), document.querySelector('#search').requestSubmit(), true)`)
	b.until("results anew", `!was.isConnected`)
	b.expect("the focus at the same file", `document.activeElement !== was && document.activeElement.matches('.file a.path') && document.activeElement.href === was.href`)

	// The file is not among the next results: the first link of them has the focus.
	eval[bool](b, `(window.was = document.activeElement, q => { q.value = 'Greeting'; document.querySelector('#search').requestSubmit(); return true; })(document.getElementById('query'))`)
	b.until("other results", `!was.isConnected`)
	b.until("the focus among them", `document.activeElement.closest('#results')`)
}
