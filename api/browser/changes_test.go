package browser

import "testing"

// aChangeIsReadInTwoWays: old lines above new ones or beside them, with the words
// that changed, in colours, and a key for the next place.
func aChangeIsReadInTwoWays(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	page := browse(appRepo, "", "commit", s.app.Git("rev-parse", "feature/x@y"))

	b.goTo(page, 200)
	b.expect("the words that changed", `document.querySelector('.row.del mark').textContent === 'hello' && document.querySelector('.row.add mark').textContent === 'HELLO'`)
	b.expect("colours on both sides", `document.querySelector('.row.del i.s') && document.querySelector('.row.add i.s')`)
	b.expect("a word has a ground of its own", `(c => c(document.querySelector('.add mark')) !== c(document.querySelector('.row.add')))(e => getComputedStyle(e).backgroundColor)`)
	b.press("n")
	b.until("the first place", `document.documentElement.dataset.change === '0' && document.querySelector('.row.on').matches('.row.del')`)
	b.press("j")
	b.until("the first file", `document.querySelector('article.file.on') && document.activeElement.matches('a.path')`)

	eval[bool](b, `[...document.querySelectorAll('.seg a')].find(a => a.textContent === 'side by side').click(), true`)
	b.until("the other view", `location.search === '?view=split' && document.documentElement.dataset.booted && document.querySelector('.pair')`)
	b.expect("old on the left, new on the right", `(p => { const l = p.querySelector('.del').getBoundingClientRect(), r = p.querySelector('.add').getBoundingClientRect(); return l.right <= r.left && l.top === r.top; })([...document.querySelectorAll('.pair')].find(p => p.querySelector('.del mark') && p.querySelector('.add mark')))`)
	b.expect("which view it is", `document.querySelector('.seg [aria-current]').textContent === 'side by side'`)

	b.wear(looks[1])
	b.expect("below each other on a phone", `(p => p.querySelector('.del').getBoundingClientRect().bottom <= p.querySelector('.add').getBoundingClientRect().top)([...document.querySelectorAll('.pair')].find(p => p.querySelector('.del mark') && p.querySelector('.add mark')))`)
	b.expect("what is the same stands once", `[...document.querySelectorAll('.pair.same')].every(p => [...p.querySelectorAll('code')].filter(e => e.checkVisibility()).length === 1)`)

	b.goTo(page+"?context=50", 200)
	b.expect("more lines around", `document.querySelectorAll('.row:not(.hunk)').length > 8`)
}

// blanksOfAChangeAreIgnored: w counts blanks or not, which is in the address beside
// how else the change is looked at, and a change of which nothing is left says so.
func blanksOfAChangeAreIgnored(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	page := browse(appRepo, "", "commit", s.app.Git("rev-parse", "feature/x@y"))
	is := func(choice string) string {
		return `document.documentElement.dataset.booted && document.querySelector('[aria-label="Blanks"] [aria-current]').textContent === '` + choice + `'`
	}

	b.goTo(page+"?view=split", 200)
	b.expect("blanks count", is("blanks count"))
	b.press("w")
	b.until("blanks are ignored", `location.search === '?view=split&w=1' && `+is("blanks ignored"))
	b.expect("what is more than blanks is still there", `document.querySelector('.add mark').textContent === 'HELLO'`)
	b.press("w")
	b.until("blanks count again", `location.search === '?view=split' && `+is("blanks count"))

	b.goTo(browse(appRepo, "", "compare", "main...main")+"?w=1", 200)
	b.expect("that nothing is left", `document.querySelector('main').textContent.includes('Nothing is left of this change once blanks are ignored.')`)
	b.goTo("/help/keys", 200)
	b.expect("the key is told of", `[...document.querySelectorAll('tr')].some(r => r.querySelector('kbd')?.textContent === 'w' && r.textContent.includes('blanks'))`)
}
