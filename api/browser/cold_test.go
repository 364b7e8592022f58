package browser

import "testing"

// aFirstPageWaitsForNoStyle: who comes from elsewhere is sent the style with the page, and
// the policy lets it be; the next page names it.
func aFirstPageWaitsForNoStyle(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	asked := `performance.getEntriesByType('resource').some(e => e.name.endsWith('/css/site.css'))`
	styled := `getComputedStyle(document.querySelector('header.top')).position === 'sticky'`

	b.goTo(find("needle"), 200)
	b.expect("the style is in the page, and holds", `document.querySelector('head > style') && !`+asked+` && `+styled)
	b.expect("the policy reports nothing", `reports.length === 0`)

	b.do("follow a link", poll(`location.pathname === '/repos' || document.querySelector('header nav a[href="/repos"]').click()`))
	b.until("the next page", `location.pathname === '/repos' && document.documentElement.dataset.booted`)
	b.expect("it names the style", `!document.querySelector('style') && `+asked+` && `+styled)
}
