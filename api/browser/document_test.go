package browser

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// markdownIsADocument reads one: its links lead to files of the same revision, its
// source is one link away, and addresses of lines lead there.
func markdownIsADocument(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	blob := func(path string) string { return browse(appRepo, "v1.0", "blob", path) }
	b.goTo(blob("docs/guide.md"), 200)
	b.expect("headings with sizes of their own", `document.querySelector('#md-guide.size1').tagName === 'H2' && document.querySelector('#md-tasks.size3').tagName === 'H3'`)
	b.expect("a list of them", `[...document.querySelectorAll('aside li a')].map(a => a.getAttribute('href')).join() === '#md-guide,#md-tasks,#md-options--more'`)
	b.expect("boxes with names", `[...document.querySelectorAll('.markdown input')].map(e => e.ariaLabel + e.checked + e.disabled).join() === 'donetruetrue,to dofalsetrue'`)
	b.expect("colours", `document.querySelector('.markdown pre i.k').textContent === 'func'`)
	b.expect("an image of the same revision", `document.querySelector('.markdown img').naturalWidth === 1 && document.querySelector('.markdown img').src.includes('@v1.0/-/raw/logo.png')`)
	b.expect("a link for one of another site", `[...document.querySelectorAll('.markdown a')].some(a => a.textContent === 'build' && a.href === 'https://ci.example.com/badge.svg' && a.rel === 'nofollow noreferrer noopener')`)
	b.expect("links to the same revision", `[...document.querySelectorAll('.markdown a')].slice(0, 4).map(a => a.getAttribute('href')).join(' ') ===
		`+quote(blob("main.go")+"#L6-L8 "+blob("greet")+" "+blob("README.md")+"#md-app #md-options--more"))
	b.size(390, 800)
	b.expect("what is wide is wide in its own box", `['.markdown .wide', '.markdown pre'].every(s => { const e = document.querySelector(s); return e.scrollWidth > e.clientWidth; }) && document.documentElement.scrollWidth <= innerWidth`)
	b.goTo(browse(appRepo, "", "tree", "docs"), 200)
	b.expect("no line of its code is broken", `getComputedStyle(document.querySelector('pre')).whiteSpace === 'pre'`)
	b.size(1280, 900)
	b.goTo(blob("docs/guide.md"), 200)

	// A directory is led to by the name of one.
	b.click(`.markdown a[href$="/greet"]`)
	b.until("the directory", `location.pathname.endsWith('/-/tree/greet') && document.querySelector('table.tree')`)

	// The source, by a key and by addresses of lines.
	b.goTo(blob("docs/guide.md"), 200)
	b.press("m")
	b.until("the source", `location.search === '?plain=1' && document.querySelector('#code .text')?.textContent.startsWith('<p align=')`)
	b.until("keys", `document.documentElement.dataset.booted`)
	b.press("m")
	b.until("the document", `location.search === '' && document.querySelector('#document')`)
	b.do("open lines", chromedp.Navigate(b.base+blob("docs/guide.md")+"#L3"))
	b.until("the lines", `location.search === '?plain=1' && location.hash === '#L3' && document.querySelector('.nums .on')?.textContent === '3'`)
	b.goTo(blob("docs/guide.md")+"?highlightRange=3,4", 200)
	b.expect("the source by the address of others", `document.querySelectorAll('.nums .on').length === 2`)
	b.goTo(find("barn file:guide"), 200)
	b.expect("results lead to lines of the source", `[...document.querySelectorAll('.line > a')].every(a => /guide\.md\?plain=1#L\d+$/.test(a.href))`)

	// What is built to be too much is shown as its source, and says so.
	b.goTo(browse(hostileRepo, "", "blob", "nested.md"), 200)
	b.expect("a sentence about depth", `document.querySelector('[role=note]').textContent.includes('so its source is shown') && document.querySelector('#code')`)
	b.goTo(browse(hostileRepo, "", "blob", "huge.md"), 200)
	b.expect("a sentence about size", `document.querySelector('[role=note]').textContent.includes('512 KB') && document.querySelector('#code')`)

	// Without scripts, below a directory and alone.
	b.must(call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	b.do("open a directory", chromedp.Navigate(b.base+browse(appRepo, "", "", "")))
	b.expect("its README is drawn", `document.querySelector('.readme .markdown #md-app').textContent === 'App'`)
	b.do("open the document", chromedp.Navigate(b.base+blob("docs/guide.md")))
	b.do("its source", chromedp.Click(`.bar a[href$="?plain=1"]`))
	b.until("the source", `document.querySelector('#code .text')?.textContent.startsWith('<p align=')`)
}
