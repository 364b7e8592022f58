package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/input"
)

// hover moves the mouse onto a text of the page's code.
func (b *tab) hover(text string) {
	b.t.Helper()
	at := eval[[]float64](b, fmt.Sprintf(`(() => {
  const walk = document.createTreeWalker(document.getElementById('code'), NodeFilter.SHOW_TEXT), wanted = %s;
  for (let n; (n = walk.nextNode());) {
    const i = n.data.indexOf(wanted);
    if (i < 0) continue;
    const range = document.createRange();
    range.setStart(n, i);
    range.setEnd(n, i + wanted.length);
    const r = range.getBoundingClientRect();
    return [r.left + r.width / 2, r.top + r.height / 2];
  }
  return [];
})()`, quote(text)))
	if len(at) != 2 {
		b.t.Fatalf("the code has no %q", text)
	}
	b.moveTo(at[0], at[1])
}

func (b *tab) moveTo(x, y float64) {
	b.t.Helper()
	b.must(call(b.ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: x, Y: y}))
}

// aCardTellsOfAName that the pointer rests on: its definition, how often it
// stands, that this is by name; the pointer may go to it, and Esc takes it away.
func aCardTellsOfAName(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(browse(appRepo, "", "blob", "main.go"), 200)
	card, is := `document.getElementById('card')`, `document.documentElement.dataset.card`

	b.hover("Greeting")
	b.until("the card", is+` === 'Greeting'`)
	for what, js := range map[string]string{
		"its definition":       card + `.querySelector('h3').textContent === 'greet/greet.go' && ` + card + `.querySelector('.uses a').textContent.startsWith('4')`,
		"the kind":             card + `.querySelector('.uses').textContent.includes('func')`,
		"how often":            `/1 definition, \d+ references/.test(` + card + `.textContent)`,
		"how it is known":      card + `.textContent.includes('by name, not by compiler')`,
		"the focus stays":      `document.activeElement === document.body`,
		"beside its name":      `(() => { const r = ` + card + `.getBoundingClientRect(); return r.width > 100 && r.top > 0 && r.bottom < innerHeight && r.right < innerWidth; })()`,
		"seen":                 card + `.checkVisibility()`,
		"what it is, by voice": card + `.getAttribute('aria-label') === 'About Greeting'`,
	} {
		b.expect(what, js)
	}

	// From the card to the panel of all places.
	b.click("#card [data-name]")
	b.until("the panel", `document.querySelector('#panel[open] .uses') && !`+is+` && !`+card+`.checkVisibility()`)
	b.press("Escape")

	b.hover("Greeting")
	b.until("the card again", is+` === 'Greeting'`)
	b.press("Escape")
	b.until("the card to be gone", `!`+is+` && !`+card+`.checkVisibility()`)

	b.hover("Println") // which this repository uses, and does not define
	b.until("a card without a definition", is+` === 'Println' && /0 definitions/.test(`+card+`.textContent)`)
	b.hover("hello") // in a comment
	b.until("no card", `!`+is+` && !`+card+`.checkVisibility()`)

	b.goTo("/help/keys", 200)
	b.click("#cardOff")
	b.expect("it is kept", `localStorage.getItem('cardOff') === '1'`)
}
