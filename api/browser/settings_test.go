package browser

import (
	"testing"
)

// oneTruthAboutWhatFailed: an owner is shown as many failures as are counted, and
// a guest neither the names of connections nor an error.
func oneTruthAboutWhatFailed(t *testing.T, s *site) {
	t.Parallel()
	owner, guest := s.open(t, s.owner), s.open(t, "")
	owner.goTo("/settings/connections", 200)
	owner.expect("the names of connections for an owner", `['gone', 'work'].every(n => [...document.querySelectorAll('main h2')].some(h => h.textContent.startsWith(n)))`)
	owner.goTo("/settings", 200)
	owner.until("the failure of a connection", `document.querySelector('[aria-label="Failed jobs"] tbody tr')`)
	owner.expect("as many failures as there are rows of them", `(n => n === document.querySelectorAll('[aria-label="Failed jobs"] tbody tr').length)([...document.querySelectorAll('.tiles a')].filter(a => a.textContent.includes('Given up')).map(a => a.querySelector('strong').textContent.split(', ').map(Number).reduce((x, y) => x + y))[0])`)
	guest.goTo("/settings", 200)
	guest.expect("no connection and no failed job for a guest", `!/\bgone\b|\bwork\b|Given up/.test(document.querySelector('main').innerText) && !document.querySelector('[aria-label="Failed jobs"]')`)
	guest.goTo("/settings/connections", 403)

	// How its last listings ended stands on a page of its own, for owners alone.
	owner.goTo("/settings/connections/gone", 200)
	owner.expect("the listing that failed, and why", `(rows => rows.length > 0 && rows.every(r => /failed.*nosuch/s.test(r.innerText)))([...document.querySelectorAll('[aria-label="Last listings"] tbody tr')])`)
	owner.goTo("/settings/connections/nowhere", 404)
	guest.goTo("/settings/connections/gone", 403)
	guest.goTo("/settings/connections/nowhere", 403)
}

// settingsStayFresh: a page of the settings is refreshed where it stands. What
// the reader has opened stays open, the focus stays, nothing jumps.
func settingsStayFresh(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, s.owner)
	// One row: a job that ends meanwhile would stand above the others, and move them.
	b.goTo("/settings/jobs?state=done&kind=index&query=local/app", 200)
	eval[bool](b, `window.row = document.querySelector('tr[data-key]'), window.row.querySelector('.button').focus(), window.top0 = window.row.getBoundingClientRect().top,
		window.row.querySelector('td').append('stale'), window.row.querySelector('td[data-label=Attempt]').setAttribute('class', 'stale'), true`)
	b.until("two refreshes", `Number(document.documentElement.dataset.live) >= 2`)
	b.expect("what was wrong is right", `!row.textContent.includes('stale') && !row.querySelector('.stale')`)
	b.expect("the row is the same element", `row === document.querySelector('tr[data-key="' + CSS.escape(row.dataset.key) + '"]') && row.isConnected`)
	b.expect("the focus is where it was", `document.activeElement === row.querySelector('.button')`)
	b.expect("nothing has moved", `Math.abs(row.getBoundingClientRect().top - top0) < 1`)
	b.expect("it is not called old", `document.getElementById('age').textContent === ''`)
}
