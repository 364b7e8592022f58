package browser

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// whatStandsBesideAFile: the tree, the revisions to choose from, the way to an
// editor.
func whatStandsBesideAFile(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.size(1400, 900)
	file := browse(appRepo, "", "blob", "greet/greet_test.go")
	b.goTo(file, 200)

	// The tree is open to the file, and goes by a key.
	b.expect("the file in its tree", `document.querySelector('#beside[open] [aria-current]').textContent === 'greet_test.go'`)
	b.expect("what is beside it and above", `['main.go', 'greet.go', 'tools/'].every(n => [...document.querySelectorAll('#beside a')].some(a => a.textContent === n))`)
	b.press("[")
	b.until("the tree has gone", `!document.querySelector('#beside[open]')`)
	b.goTo(file, 200)
	b.expect("and stays away", `!document.querySelector('#beside[open]')`)

	// The same file in another revision, by a link and by a word.
	b.click(".picker summary")
	b.until("revisions with where they are searched", `/v1\.0\s*indexed/.test(document.querySelector('.picker[open] ul').innerText)`)
	b.click(`.picker a[href*="@v1.0/"]`)
	b.until("the file of the tag", `location.pathname.includes('@v1.0/-/blob/greet/greet_test.go') && document.documentElement.dataset.booted`)
	first := s.app.Git("rev-list", "--max-parents=0", "HEAD")
	b.goTo(browse(appRepo, "", "blob", "README.md")+"?ref="+first, 200)
	b.expect("a commit that is not indexed says so", `/scanned/.test(document.querySelector('.picker summary').textContent)`)

	// An editor is linked where the reader has said how, and by no other scheme.
	b.expect("no editor at first", `document.getElementById('editor').hidden`)
	eval[bool](b, `localStorage.setItem('editor', 'javascript://x/{path}'), true`)
	b.goTo(file, 200)
	b.expect("none by a script", `document.getElementById('editor').hidden`)
	eval[bool](b, `localStorage.setItem('editor', 'vscode://file/src/{repo}/{path}:{line}'), true`)
	b.goTo("/", 200)
	b.goTo(file+"#L5", 200)
	b.expect("the line in the editor", `document.getElementById('editor').href === 'vscode://file/src/local/app/greet/greet_test.go:5' && document.getElementById('editor').checkVisibility()`)
	b.press("f")
	b.until("a search in this file", `document.activeElement.id === 'query' && document.activeElement.value.includes('reposet:"local/app" file:')`)

	// Without scripts the tree and the revisions are links and a form.
	plain := s.open(t, "")
	plain.must(call(plain.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	plain.do("open", chromedp.Navigate(plain.base+file))
	if !eval[bool](plain, `document.querySelectorAll('#beside a[href]').length > 5 && document.querySelector('.picker form[action]') !== null`) {
		t.Error("without scripts there is no tree or no form")
	}
}

// aFileSaysWhereOneIs: what the first line in sight is in stands above the text and
// is told apart among the symbols, of which the filter finds all.
func aFileSaysWhereOneIs(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.size(1400, 900)
	file := browse(largeRepo, "", "blob", "parts.py")
	b.goTo(file, 200)
	b.expect("nothing above the first lines", `document.getElementById('where').hidden`)
	b.expect("what there is", `document.getElementById('moreSymbols').textContent === 'The first 250 of 400.' && document.querySelectorAll('#symbols li').length === 250`)

	// Line 504 is of method 100. It was picked, so it counts and not the line above it at the bar.
	b.goTo("/", 200)
	b.goTo(file+"#L504", 200)
	where := `[...document.querySelectorAll('#where a')].map(a => a.textContent).join(' ')`
	b.until("the class and the method", where+` === 'Whole part100'`)
	b.expect("the path", `document.querySelector('#where .dim').textContent === 'parts.py' && document.querySelector('#where').checkVisibility()`)
	b.expect("the method among the symbols, in sight", `(() => {
		const here = document.querySelectorAll('#symbols [aria-current]'), list = document.getElementById('symbols').getBoundingClientRect();
		return here.length === 1 && here[0].textContent === document.querySelector('#where a:last-child').textContent && here[0].getBoundingClientRect().top > list.top && here[0].getBoundingClientRect().bottom < list.bottom;
	})()`)

	// It follows, over the lines too that were wrapped.
	b.press("w")
	eval[bool](b, `(document.querySelector('.block:last-child').scrollIntoView(), true)`)
	b.until("the methods of the last lines", `/^Whole part3[5-9]\d$/.test(`+where+`)`)
	b.press("w")
	b.until("the method that is seen then", `!document.querySelector('.line') && /^Whole part3\d\d$/.test(`+where+`)`)
	eval[bool](b, `(document.querySelector('#where a:last-child').click(), true)`)
	b.until("its first line is marked", `location.hash !== '#L504' && document.querySelectorAll('.nums .on').length === 1`)

	// The filter looks through all of them.
	b.click("#outline")
	b.press("part398")
	b.until("one of them", `[...document.querySelectorAll('#symbols li')].map(e => e.querySelector('a').textContent).join() === 'part398' && document.getElementById('moreSymbols').textContent === ''`)
	b.press("x")
	b.until("none of them", `!document.querySelector('#symbols li') && document.getElementById('moreSymbols').textContent === 'None.'`)
}
