package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
)

// mostStops is how many stops of a page are looked at: of a page with thousands of
// links the first.
const mostStops = 250

// everyPageByKeyboard walks through each page with the Tab key: all that a mouse can
// use is reached, is seen when it is, and shows that it has the focus.
func everyPageByKeyboard(t *testing.T, s *site) {
	t.Parallel()
	guest, owner := s.open(t, ""), s.open(t, s.owner)
	guest.noteStops()
	owner.noteStops()
	for i, st := range s.states() {
		if testing.Short() && i%4 != 0 {
			continue
		}
		b := st.open(guest, owner)

		// From the top of the page, wherever the focus was; a dialog keeps it.
		eval[bool](b, `(() => { if (!document.querySelector('dialog:modal')) { const body = document.body; body.tabIndex = -1; body.focus(); body.removeAttribute('tabindex'); scrollTo(0, 0); } return true; })()`)
		b.walk(st.name)
	}
}

// noteStops has each page that the tab opens from now on note where the focus has been.
func (b *tab) noteStops() {
	b.t.Helper()
	// Of many windows one has the focus, and in the others nothing has a ring.
	b.must(call(b.ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}))
	b.must(call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: stops}))
}

// walk goes once around the page by Tab, and fails the test where something is out
// of reach. Behind the last stop the focus is nowhere, and then at the first again.
func (b *tab) walk(name string) {
	b.t.Helper()
	// The last commits of a directory come late, and are links.
	b.until("last commits", `!document.querySelector('[data-last]') || document.documentElement.dataset.last === 'told'`)

	for range min(eval[int](b, `stops.begin()`), mostStops) + 2 {
		b.press("Tab")
	}

	// A browser stops where something can be scrolled, too.
	for range 30 {
		if !eval[bool](b, fmt.Sprintf(`stops.missing(%d)`, mostStops)) {
			break
		}
		b.press("Tab")
	}
	for _, what := range eval[[]string](b, fmt.Sprintf(`stops.end(%d)`, mostStops)) {
		b.t.Errorf("%s: %s", name, what)
	}
}

// stops notes in a page which elements have had the focus, and whether they could be
// seen then. It moves nothing.
const stops = `window.stops = (() => {
  const been = new Map(), near = e => e.closest('.box, label') || e;
  const look = e => [e, near(e)].map(x => { const s = getComputedStyle(x); return s.outlineStyle === 'none' ? s.boxShadow : [s.outlineStyle, s.outlineWidth, s.outlineColor, s.boxShadow].join(' '); }).join(' | ');
  const own = 'a[href], button, input, select, textarea, summary, iframe', other = '[tabindex], [contenteditable]';
  let all = [];

  // usable is what a mouse can use and somebody without one has to reach.
  const usable = () => {
    const modal = document.querySelector('dialog:modal') || document;
    return [...modal.querySelectorAll(own + ', ' + other)].filter(e => (e.matches(own) || e.tabIndex >= 0) && !e.disabled && e.type !== 'hidden' && e.checkVisibility({ visibilityProperty: true }));
  };

  // seen reports whether a part of an element is in the window, with nothing over it.
  const seen = e => {
    const box = near(e);
    return [...box.getClientRects()].some(r => {
      const x0 = Math.max(r.left, 0), x1 = Math.min(r.right, innerWidth), y0 = Math.max(r.top, 0), y1 = Math.min(r.bottom, innerHeight);
      if (x1 - x0 < 1 || y1 - y0 < 1) return false;
      return [[.5, .5], [.1, .5], [.9, .5], [.5, .2], [.5, .8]].some(([h, v]) => {
        const top = document.elementFromPoint(x0 + (x1 - x0) * h, y0 + (y1 - y0) * v);
        return top && (box.contains(top) || top.contains(box) && !top.matches('header, dialog'));
      });
    });
  };

  addEventListener('focusin', e => { if (e.target.tagName) been.set(e.target, { on: look(e.target), seen: true }); }, true);
  addEventListener('keydown', () => { const was = been.get(document.activeElement); if (was) was.seen = seen(document.activeElement); }, true);

  const name = e => e.outerHTML.slice(0, 160);
  const left = most => all.slice(0, most).filter(e => !been.has(e) && e.isConnected && e.checkVisibility({ visibilityProperty: true }));
  return {
    begin() { been.clear(); all = usable(); return all.length; },
    missing: most => left(most).length > 0,
    end(most) {
      const out = left(most).map(e => 'Tab does not come to ' + name(e)), here = document.activeElement;
      if (been.has(here)) been.get(here).seen = seen(here);
      for (const [e, was] of been) {
        if (!e.isConnected || !e.checkVisibility() || !e.getClientRects().length || !near(e).offsetHeight) continue; // an empty table of a document has nothing to see
        if (!was.seen) out.push('out of sight: ' + name(e));
        if (!near(e).contains(here) && was.on === look(e)) out.push('no focus ring on ' + name(e));
      }

      // What shows a hand to a mouse is one of these, or is walked by keys of its own:
      // lists by arrows, lines by l.
      const known = new Set(all), inside = e => { for (let x = e; x; x = x.parentElement) if (known.has(x) || x.matches('label, [role=option], .nums, .line')) return true; return e.querySelector(own) !== null; };
      const hands = [...(document.querySelector('dialog:modal') || document.body).querySelectorAll('*')].filter(e => getComputedStyle(e).cursor === 'pointer' && e.checkVisibility());
      for (const e of hands) if (!inside(e)) out.push('a mouse can use it, and no key: ' + name(e));
      return out;
    },
  };
})();`

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

// theKeyboardKeepsItsPlace: what is closed, taken out or drawn anew gives the focus to
// where a reader goes on, and nothing needs a mouse to begin with.
func theKeyboardKeepsItsPlace(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	is := func(css string) string { return `document.activeElement.matches('` + css + `')` }
	walk := func(path string, steps ...step) {
		t.Helper()
		b.goTo(path, 200)
		for i, st := range steps {
			b.steps(i, st)
		}
	}

	// Esc leaves the box for what had the focus before, and single keys are heard.
	walk(find("straw"),
		step{[]string{"j", "/"}, is("#query")},
		step{[]string{"Escape"}, is(".file.on a.path") + ` && document.getElementById('query').value === 'straw'`},
		step{[]string{"k"}, is(".file.on a.path")})
	walk(find("needle"),
		step{[]string{"/", "Escape", "j"}, is(".file.on a.path")})

	// The next results, from their link.
	b.goTo(find("straw"), 200)
	b.tabTo("#next")
	b.steps(0, step{[]string{"Enter"}, `document.documentElement.dataset.ready === 'search:more' && ` + is(".file a") + ` && document.activeElement.closest('.file') !== document.querySelector('.file')`})

	// A menu that is open is closed from within, or behind a focus that goes on.
	b.goTo(browse(appRepo, "", "blob", "greet/greet.go"), 200)
	b.tabTo(".picker summary")
	for i, st := range []step{
		{[]string{"Enter"}, `document.querySelector('.picker').open`},
		{[]string{"Tab"}, is(".picker input")},
		{[]string{"Escape"}, is(".picker summary") + ` && !document.querySelector('.picker').open`},
		{[]string{"Enter", "Tab", "Shift+Tab", "Shift+Tab"}, `!document.querySelector('.picker').open && !` + is(".picker *")},
	} {
		b.steps(10+i, st)
	}

	// A name is looked up without a selection, which only a mouse makes.
	walk(browse(appRepo, "", "blob", "main.go"),
		step{[]string{"r"}, is("#lookup input") + ` && [...document.querySelectorAll('#namesHere option')].some(o => o.value === 'Greeting')`},
		step{[]string{"Escape"}, is("#code") + ` && document.getElementById('lookup').hidden`},
		step{[]string{"r", "Greeting", "Enter"}, is("#panel[open] .uses a") + ` && document.querySelector('#panel h2').textContent === '1 definition'`},
		step{[]string{"Escape"}, is("#code")},
		step{[]string{"r", "Greeting", "Enter"}, is("#panel[open] .uses a")})

	// What is there to be copied is selected by the focus, and only then.
	b.goTo("/settings/agents", 200)
	b.tabTo("pre.copy")
	b.expect("the text of the focus is selected", `String(getSelection()).trim() === document.activeElement.textContent.trim()`)
	b.tabTo("body, a")
	b.expect("nothing is selected", `getSelection().isCollapsed`)

	// What is taken out of a list leaves the focus at what is still there.
	eval[bool](b, `localStorage.setItem('saved', '["/search?query=one", "/search?query=two"]'), true`)
	b.goTo("/", 200)
	b.tabTo("#saved button")
	for i, st := range []step{
		{[]string{"Enter"}, `document.querySelectorAll('#saved li').length === 1 && ` + is("#saved button")},
		{[]string{"Enter"}, `!document.querySelector('#saved li') && ` + is("#main")},
	} {
		b.steps(20+i, st)
	}
	b.goTo("/help/keys", 200)
	b.tabTo("#remap input")
	b.steps(30, step{[]string{"d", "Enter"}, `document.querySelector('#remapped button')`})
	b.tabTo("#remapped button")
	b.steps(31, step{[]string{"Enter"}, `!document.querySelector('#remapped li') && ` + is("#remap select")})
}

// tabTo presses Tab until the focus is on an element of a kind.
func (b *tab) tabTo(css string) {
	b.t.Helper()
	for range 2 * mostStops {
		b.press("Tab")
		if eval[bool](b, `document.activeElement.matches(`+quote(css)+`)`) {
			return
		}
	}
	b.t.Fatalf("Tab does not come to %s\n%s", css, b.state())
}
