package browser

import (
	"fmt"
	"strings"
	"testing"
)

// everyPageByKeyboard walks through each page with the Tab key: each stop is
// another element, can be seen, and shows that it has the focus.
func everyPageByKeyboard(t *testing.T, s *site) {
	t.Parallel()
	guest, owner := s.open(t, ""), s.open(t, s.owner)
	for i, st := range s.states() {
		if testing.Short() && i%4 != 0 {
			continue
		}
		b := guest
		if st.owner {
			b = owner
		}
		b.goTo(st.path, max(st.status, 200))
		if st.name == "the finder" || st.name == "the palette" {
			continue // it keeps the focus, and is walked in a test of its own
		}
		if st.act != nil {
			st.act(b)
		}
		// From the top of the page, wherever the focus was.
		eval[bool](b, `(() => { const body = document.body; body.tabIndex = -1; body.focus(); body.removeAttribute('tabindex'); scrollTo(0, 0); return true; })()`)

		seen := map[string]bool{}
		for range 40 {
			b.press("Tab")
			at := eval[string](b, focused)
			if at == "" {
				break // the end of the page
			}
			if what, bad := strings.CutPrefix(at, "!"); bad {
				t.Errorf("%s: %s", st.name, what)
			}
			if seen[at] {
				t.Errorf("%s: Tab comes to %s a second time", st.name, at)
				break
			}
			seen[at] = true
		}
		if len(seen) < 5 {
			t.Errorf("%s: Tab stops at %d elements only", st.name, len(seen))
		}
	}
}

// focused describes the element with the focus, with a mark before it where
// nobody can see that.
const focused = `(() => {
  const e = document.activeElement;
  if (!e || e === document.body) return '';
  window.order = window.order || new Map();
  if (!order.has(e)) order.set(e, order.size);
  const near = e.closest('.box, label') || e, style = getComputedStyle(e), around = getComputedStyle(near), r = near.getBoundingClientRect();
  const ring = style.outlineStyle !== 'none' || around.outlineStyle !== 'none';
  const name = order.get(e) + ' ' + e.outerHTML.slice(0, 120);
  if (!ring) return '!no focus ring on ' + name;
  if (r.width < 1 || r.bottom < 0 || r.top > innerHeight) return '!out of sight: ' + name;
  return name;
})()`

// step is what a reader presses, and what holds then.
type step struct {
	press []string
	then  string // an expression of the page
}

// aDayByKeyboard does what a reader does, step by step, without a mouse.
func aDayByKeyboard(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo("/", 200)
	for i, st := range []step{
		{[]string{"needle"}, `document.querySelectorAll('#files .file').length > 3`},
		{[]string{" lang:go", "Escape", "Enter"}, `location.pathname === '/search' && document.querySelector('.summary') && document.documentElement.dataset.booted`},
		{nil, `document.activeElement.id === 'query' || document.activeElement === document.body`},
	} {
		b.steps(i, st)
	}
	eval[bool](b, `document.activeElement.blur(), true`)
	for i, st := range []step{
		{[]string{"j", "j", "k"}, `document.querySelector('.file.on') === document.querySelectorAll('.file')[0]`},
		{[]string{"n"}, `document.activeElement.closest('.line.hit')`},
		{[]string{"j", "o"}, `location.pathname.includes('/-/blob/') && document.documentElement.dataset.booted`},
		{[]string{"y"}, `/@[0-9a-f]{40}\/-\/blob/.test(location.pathname)`},
		{[]string{"b"}, `location.pathname.includes('/-/blame/') && document.documentElement.dataset.booted`},
		{[]string{"h"}, `location.pathname.includes('/-/commits/') && document.documentElement.dataset.booted`},
		{[]string{"g", "r"}, `location.pathname === '/repos' && document.documentElement.dataset.booted`},
		{[]string{"g", "c"}, `location.pathname === '/settings/nodes' && document.documentElement.dataset.booted`},
		{[]string{"g", "h"}, `location.pathname === '/' && document.documentElement.dataset.booted`},
	} {
		b.steps(10+i, st)
	}
	b.goTo(find("needle"), 200)
	for i, st := range []step{
		{[]string{"/"}, `document.activeElement.id === 'query'`},
		{[]string{"Escape"}, `true`},
		{[]string{"Alt+c"}, `document.getElementById('case').checked && location.search.includes('isCaseSensitivityEnabled')`},
		{[]string{"Alt+w"}, `document.getElementById('whole').checked && location.search.includes('whole')`},
		{[]string{"Alt+r"}, `document.getElementById('regex').checked && location.search.includes('isRegexEnabled')`},
	} {
		b.steps(20+i, st)
	}
}

func (b *tab) steps(i int, st step) {
	b.t.Helper()
	b.press(st.press...)
	b.until(fmt.Sprintf("step %d, after %q", i, st.press), st.then)
}
