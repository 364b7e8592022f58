package browser

import "testing"

// settingsStayFresh: a page of the settings is refreshed where it stands. What
// the reader has opened stays open, the focus stays, nothing jumps.
func settingsStayFresh(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, s.owner)
	b.goTo("/settings/jobs?state=done", 200)
	eval[bool](b, `window.row = document.querySelector('tr[data-key]'), window.row.querySelector('.button').focus(), window.top0 = window.row.getBoundingClientRect().top,
		window.row.querySelector('td').append('stale'), window.row.querySelector('td[data-label=Attempt]').setAttribute('class', 'stale'), true`)
	b.until("two refreshes", `Number(document.documentElement.dataset.live) >= 2`)
	b.expect("what was wrong is right", `!row.textContent.includes('stale') && !row.querySelector('.stale')`)
	b.expect("the row is the same element", `row === document.querySelector('tr[data-key="' + CSS.escape(row.dataset.key) + '"]') && row.isConnected`)
	b.expect("the focus is where it was", `document.activeElement === row.querySelector('.button')`)
	b.expect("nothing has moved", `Math.abs(row.getBoundingClientRect().top - top0) < 1`)
	b.expect("it is not called old", `document.getElementById('age').textContent === ''`)
}
