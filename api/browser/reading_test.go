package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// click presses the mouse on the first element of a selector.
func (b *tab) click(css string, modifiers ...chromedp.Modifier) {
	b.t.Helper()
	at := eval[[]float64](b, fmt.Sprintf(`(() => { const e = document.querySelector(%s); e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect(); return [r.left + Math.min(r.width / 2, 20), r.top + r.height / 2]; })()`, quote(css)))
	b.do("click "+css, chromedp.MouseClickXY(at[0], at[1], chromedp.ButtonModifiers(modifiers...)))
}

// linesHaveAddresses selects lines by the mouse, the address and the names of
// other products, and pins them to the commit.
func linesHaveAddresses(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	marked := `[...document.querySelectorAll('.nums .on')].map(e => e.textContent).join()`
	file := browse(appRepo, "", "blob", "main.go")
	b.goTo(file, 200)
	b.click("#L3")
	b.until("one line", `location.hash === '#L3' && `+marked+` === '3'`)
	b.click("#L5", chromedp.ModifierShift)
	b.until("a range", `location.hash === '#L3-L5' && `+marked+` === '3,4,5'`)
	b.press("y")
	b.until("a permalink with its lines", `/@[0-9a-f]{40}\//.test(location.pathname) && location.hash === '#L3-L5'`)
	for query, want := range map[string]string{"?highlightRange=5,6": "5,6", "?highlightRange=5:1,7:4": "5,6,7", "#L2": "2", "#L2-L3": "2,3"} {
		b.goTo("/", 200)
		b.goTo(file+query, 200)
		b.expect(query+" marks "+want, marked+` === `+quote(want))
	}
	b.goTo(browse(largeRepo, "", "blob", "long.go")+"#L40000-L40002", 200)
	b.until("the line in sight", `document.documentElement.dataset.line === '40000' && scrollY > 700000`)
	b.expect("the range is marked in a file without an element for each line, and nothing else",
		`[...document.querySelectorAll('.block.on')].map(e => [e.dataset.first, getComputedStyle(e).getPropertyValue('--from'), getComputedStyle(e).getPropertyValue('--tall')].join()).join('; ') === '39801,3980px,20px; 40001,0px,40px'`)

	// What there is to do with the lines is beside them, and the other views keep them.
	b.goTo(file+"#L2", 200)
	b.click("#L6")
	b.until("the menu of the line", `document.querySelector('#lines:popover-open a[href$="lines=6"]')`)
	b.expect("it covers no part of the line", `document.getElementById('lines').getBoundingClientRect().bottom <= document.getElementById('L6').getBoundingClientRect().top`)
	b.press("b")
	b.until("the line in the blame", `location.pathname.includes('/-/blame/') && location.hash === '#L6' && document.querySelector('.row.blame.on > #L6')`)
	b.click("a[data-lines]")
	b.until("the line in the file again", `location.pathname.includes('/-/blob/') && `+marked+` === '6'`)
}

// aLargeFileStaysUsable opens 50,000 lines: few elements, found by the browser's
// own search, and a line of half a megabyte is no burden.
func aLargeFileStaysUsable(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(browse(largeRepo, "", "blob", "long.go"), 200)
	if n := eval[int](b, `document.querySelectorAll('*').length`); n > 6000 {
		t.Errorf("50,000 lines are %d elements, want at most 6,000", n)
	}
	b.expect("no line is lost", fmt.Sprintf(`[...document.querySelectorAll('.text')].reduce((n, e) => n + e.textContent.split('\n').length - 1, 0) === %d`, longLines))
	b.expect("a part has the height of its lines", `[...document.querySelectorAll('.block.full')].every(b => b.getBoundingClientRect().height === 4000)`)
	b.expect("a part far from the window is plain", `!document.querySelector('[data-first="30001"] .text i')`)
	eval[bool](b, `document.querySelector('[data-first="30001"]').scrollIntoView(), true`)
	b.until("its colours when it comes near", `document.querySelector('[data-first="30001"] .text i')`)
	eval[bool](b, `scrollTo(0, 0), true`)
	b.until("and none when it leaves", `!document.querySelector('[data-first="30001"] .text i')`)
	b.expect("the browser finds a word near the end", `window.find('line49990()')`)
	b.goTo(browse(largeRepo, "", "blob", "min.js"), 200)
	if n := eval[int](b, `document.documentElement.outerHTML.length`); n > 68_000 { // that of what is around it, above all
		t.Errorf("a line of 480 kB is %d bytes of page", n)
	}
}

// codeHasColours in files and in results, and marks lie over them in place.
func codeHasColours(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(browse(appRepo, "", "blob", "main.go"), 200)
	b.expect("keywords have a colour of their own", `getComputedStyle(document.querySelector('.text .k')).color !== getComputedStyle(document.querySelector('.text')).color`)
	b.goTo(find("needle lang:go"), 200)
	b.expect("comments in results too", `[...document.querySelectorAll('.line .c')].some(e => e.querySelector('mark') || e.closest('.line').querySelector('mark'))`)
	b.goTo(find("needle file:latin1"), 200)
	b.expect("a mark in another encoding", `document.querySelector('.line mark').textContent === 'needle'`)
}

// resultsOnTheWay streams, appends and never redraws what is read already.
func resultsAreAppended(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(find("straw"), 200)
	before := eval[int](b, `(window.first = document.querySelector('#files .file'), scrollTo(0, 1e6), document.querySelectorAll('#files .file').length)`)
	at := eval[float64](b, `scrollY`)
	b.click("#next")
	b.until("more files", fmt.Sprintf(`document.querySelectorAll('#files .file').length > %d`, before))
	b.expect("the first file is the same element", `window.first.isConnected && window.first === document.querySelector('#files .file')`)
	b.expect("the page stays where it was", fmt.Sprintf(`Math.abs(scrollY - %f) < 300`, at))
	// As many as no test has matches for: the page has them after a dozen of clicks.
	eval[bool](b, `(scrollTo(0, 0), [...Array(300)].forEach(() => document.getElementById('files').append(first.cloneNode(true))), true)`)
	laidOut := func(which string) string {
		return fmt.Sprintf(`[...document.querySelectorAll('#files .file')].at(%s).querySelector('a').checkVisibility({contentVisibilityAuto: true})`, which)
	}
	b.until("of more than 300 files those out of sight are not laid out", laidOut("299")+" && !"+laidOut("-1"))
	eval[bool](b, `(scrollTo(0, 1e6), true)`)
	b.until("they are where somebody looks", laidOut("-1"))
	eval[bool](b, `([...document.querySelectorAll('#files .file')].slice(-300).forEach(e => e.remove()), true)`)
	b.expect("no file twice", `(l => new Set(l).size === l.length)([...document.querySelectorAll('#files .file .path')].map(a => a.href))`)
}

// oneFileDoesNotFlood shows three chunks of a file and folds the others; what the
// fold leads to has all of them, also without scripts.
func oneFileDoesNotFlood(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(find("needle file:many.txt|main.go"), 200)
	chunks := `[...[...document.querySelectorAll('.file')].find(f => f.textContent.includes('many.txt')).querySelectorAll('.chunk')].filter(e => e.checkVisibility()).length`
	b.expect("three chunks", chunks+` === 3`)
	b.click("details.more > summary")
	b.until("all that is folded", chunks+` > 3`)
	b.goTo(eval[string](b, `(a => a.pathname + a.search)(document.querySelector('details.more p a'))`), 200)
	b.expect("all of them", chunks+` === 60 && document.querySelector('.summary').textContent === '60 matches in 1 file' && !document.querySelector('.more')`)
	b.goTo("/", 200)
	b.press("needle")
	b.until("many files while typing", `document.querySelectorAll('#files .file').length > 3`)
}

// anAnswerSaysWhatItIs: whether it is complete, what it stands on, why it is cut,
// and which counts are lower bounds.
func anAnswerSaysWhatItIs(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	text := func(css string) string { return eval[string](b, `document.querySelector(`+quote(css)+`).textContent`) }
	b.goTo(find("Greeting"), 200)
	if got := text("#proof"); !strings.Contains(got, "complete: ") || !strings.Contains(got, "nothing cut") {
		t.Errorf("a complete answer says %q", got)
	}
	b.expect("the same for programs, terminals and agents", `['curl ', 'shoal search', '"search"'].every((w, i) => document.querySelectorAll('.menu .copy')[i].textContent.includes(w))`)
	b.expect("exact counts", `!document.querySelector('aside').textContent.includes('≥')`)
	b.goTo(find("straw"), 200)
	if got := text("#proof"); !strings.Contains(got, "lower bounds") && !strings.Contains(got, "counted exactly") {
		t.Errorf("a cut answer says %q", got)
	}
	b.until("all files are counted by themselves", `document.documentElement.dataset.counted === '1'`)
	b.expect("a proof that agrees with them", `/^✓ counted exactly/.test(document.getElementById('proof').textContent)`)
	b.expect("exact counts beside a cut answer", `!document.querySelector('aside').textContent.includes('≥') && document.querySelector('aside li .dim')`)
	b.goTo(find("type:repo needle"), 200)
	if got := text(".summary"); got != "3 repositories" {
		t.Errorf("an answer of repositories says %q", got)
	}
	b.expect("each with a search in it", `[...document.querySelectorAll('.repos li')].some(e => e.querySelector('a.repo').textContent === 'local/app' && /reposet.*needle/.test(e.querySelectorAll('a')[1].search))`)
	b.goTo(find("count:all straw"), 200)
	if got := text(".summary"); !strings.Contains(got, "20,000 matches in 1,000 files") {
		t.Errorf("a counted answer says %q", got)
	}
}

// aQueryIsNarrowed by including and excluding a value, and widened again.
func aQueryIsNarrowed(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(find("needle"), 200)
	all := eval[int](b, `document.querySelectorAll('#files .file').length`)
	b.do("include", chromedp.Navigate(b.base+eval[string](b, `[...document.querySelectorAll('aside a')].find(a => a.textContent === 'Go').getAttribute('href')`)))
	b.until("fewer files", fmt.Sprintf(`document.documentElement.dataset.booted && document.querySelectorAll('#files .file').length < %d && location.search.includes('lang')`, all))
	b.expect("a chip", `document.querySelector('.chips').textContent.includes('lang:Go')`)
	b.click(".chips a")
	b.until("all again", fmt.Sprintf(`document.documentElement.dataset.booted && document.querySelectorAll('#files .file').length === %d`, all))
	b.do("exclude", chromedp.Navigate(b.base+eval[string](b, `[...document.querySelectorAll('aside a.not')].find(a => a.getAttribute('aria-label') === 'without Go').getAttribute('href')`)))
	b.until("no Go", `document.documentElement.dataset.booted && document.querySelector('#files .file') && ![...document.querySelectorAll('#files .file h2')].some(e => / Go/.test(e.textContent))`)
}

// aMistakeIsShownInItsPlace while the reader goes on typing.
func aMistakeIsShownInItsPlace(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(find("foo lang:nothing bar"), 400)
	b.expect("the box says so", `document.getElementById('query').getAttribute('aria-invalid') === 'true' && document.getElementById(document.getElementById('query').getAttribute('aria-describedby'))`)
	b.expect("the place", `document.querySelector('.caret').textContent.startsWith('lang:nothing') || document.querySelector('.caret').textContent.startsWith('nothing')`)
	b.goTo("/", 200)
	b.press("foo lang:nothing", "Escape", "Enter")
	b.until("the message", `document.querySelector('#trouble')`)
	b.goTo(find("foo lang:nothing"), 400)
	b.expect("a way on", `[...document.querySelectorAll('#trouble a')].some(a => a.textContent.includes('as a text'))`)
	b.goTo(find("nosuchword lang:go"), 200)
	b.expect("why nothing is found", `document.querySelector('.empty').textContent.includes('Nothing found')`)
	b.goTo(find("Greeting lang:javascript"), 200)
	b.expect("near misses with counts", `[...document.querySelectorAll('.empty li')].some(e => e.textContent.includes('without lang:javascript') && /\d/.test(e.textContent))`)

	// A name with letters wrong leads to the name, beside whatever else is searched for.
	b.goTo(find("Greetign name"), 200)
	b.until("the name that was meant", `(e => e && e.textContent.startsWith('Greeting in place of Greetign') && /\d/.test(e.textContent))(document.querySelector('.empty li'))`)
	b.click(".empty li a")
	b.until("its results", `document.getElementById('query').value === 'Greeting name' && document.querySelector('#files mark')`)
	b.goTo(find("Grting"), 200)
	b.expect("no other name", `!/in place of/.test(document.querySelector('.empty').textContent)`)
}

// historyTellsWhoAndWhat: blame with whole names and the commit before, commits
// with their parents, counts and files, comparisons both ways.
func historyTellsWhoAndWhat(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(browse(appRepo, "", "blame", "main.go"), 200)
	b.expect("whole names", `document.querySelector('.who').textContent.includes('Ada Lovelace')`)
	b.expect("what each commit says", `[...document.querySelectorAll('.who .what')].some(e => e.textContent === 'say it twice')`)
	b.expect("how old a line is, by colour", `(c => c(document.querySelector('.row.age0')) !== c(document.querySelector('.row.age9')))(e => getComputedStyle(e).borderLeftColor)`)
	b.expect("and in words", `[...document.querySelectorAll('.row.blame.first .who')].every(e => / ago$|^(now|yesterday)/m.test(e.innerText) || /\d{4}/.test(e.innerText))`)
	b.click(".who a[href*='/-/blame/']")
	b.until("what was before", `/@[0-9a-f]{40}\/-\/blame\/main\.go/.test(location.pathname)`)
	b.goTo(browse(appRepo, "", "commit", s.app.Git("rev-parse", "HEAD")), 200)
	b.expect("both parents of a merge", `document.querySelectorAll('main p a[href*="/-/commit/"]').length === 2`)
	b.goTo(browse(appRepo, "", "commit", s.app.Git("rev-parse", "old")), 200)
	b.goTo(browse(appRepo, "", "commit", s.app.Git("rev-parse", "HEAD^1")), 200)
	b.expect("counts", `/\+2\b/.test(document.querySelector('main').textContent) && document.querySelectorAll('.row.add').length === 2 && document.querySelectorAll('.row.del').length === 1`)
	b.expect("a list of files", `document.querySelector('#changed ul').textContent.includes('main.go')`)
	b.goTo(browse(appRepo, "", "compare", "v1.0...main"), 200)
	b.expect("the other way round", `[...document.querySelectorAll('a')].some(a => a.getAttribute('href').endsWith('/-/compare/main...v1.0'))`)
}

// revisionsHaveNames: the branch that HEAD means, whether others are indexed.
func revisionsHaveNames(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(find("needle file:main.go"), 200)
	b.expect("no choice of one revision", `![...document.querySelectorAll('aside h2')].some(e => e.textContent === 'Revisions')`)
	b.expect("the name of the branch", `document.querySelector('.file h2').textContent.includes('main ') && !document.querySelector('.file h2').textContent.includes('HEAD')`)
	b.goTo(find("needle rev:*"), 200)
	b.do("narrow to a tag", chromedp.Navigate(b.base+eval[string](b, `[...document.querySelectorAll('aside a')].find(a => a.textContent === 'v1.0').getAttribute('href')`)))
	b.until("files of the tag", `document.documentElement.dataset.booted && document.querySelector('.chips').textContent.includes('rev:v1.0') && document.querySelector('#files .file')`)
	b.goTo(browse(appRepo, "", "branches", ""), 200)
	b.expect("which are indexed", `[...document.querySelectorAll('main tr')].some(e => e.textContent.includes('main') && e.textContent.includes('indexed'))`)
	b.goTo(browse(appRepo, s.app.Git("rev-parse", "v1.0"), "blob", "main.go"), 200)
}

// unknownAddressesAreNotFound, by status too, with a way on.
func unknownAddressesAreNotFound(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	for _, path := range []string{"/nowhere", "/browse/x", "/browse/", "/help/nothing", browse(appRepo, "", "blob", "no"), browse(appRepo, "nosuchref", "", ""), browse(appRepo, "", "nosuchkind", "")} {
		b.goTo(path, 404)
		b.expect(path+" is a page with a box", `document.querySelector('#query') && document.querySelector('main h1') && document.querySelector('main a')`)
	}
	b.goTo(browse(appRepo, "", "blob", "greets.go"), 404)
	b.expect("the nearest file", `document.querySelector('.finds a').textContent === 'greet/greet.go'`)
	b.goTo(browse(appRepo, "", "tree", "docks"), 404)
	b.expect("the nearest directory", `document.querySelector('.finds a').getAttribute('href').endsWith('/-/tree/docs')`)
}

// readableWithoutScripts: searching, reading, turning pages.
func readableWithoutScripts(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.must(call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	for path, want := range map[string]string{
		"/": appRepo, find("needle"): "greet_test.go", find("straw"): "Next results", browse(appRepo, "", "", ""): "A needle in a haystack",
		browse(appRepo, "", "blob", "main.go"): "says hello", browse(appRepo, "", "blame", "main.go"): "Ada Lovelace", browse(appRepo, "", "commits", ""): "say it twice", "/repos": appRepo, "/cluster": "node",
	} {
		b.do("open "+path, chromedp.Navigate(b.base+path))
		if text := eval[string](b, `document.body.innerText`); !strings.Contains(text, want) {
			t.Errorf("%s without scripts has no %q: %.300s", path, want, text)
		}
	}
}

// fitsAPhone: one row of header that does not stay, results before what narrows
// them, and buttons that a thumb meets.
func fitsAPhone(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.wear(looks[1])
	b.goTo(find("needle"), 200)
	b.expect("a low header", `document.querySelector('header.top').getBoundingClientRect().height <= 100`)
	b.expect("results in the first view", `document.querySelector('#files .file').getBoundingClientRect().top < innerHeight`)
	b.expect("what narrows a search is folded", `!document.querySelector('.facets li').checkVisibility()`)
	b.click(".facets > summary")
	b.until("it unfolds", `document.querySelector('.facets li').checkVisibility()`)
	b.size(1280, 900)
	b.goTo(find("needle"), 200)
	b.expect("on a wide window it stands beside the results", `document.querySelector('.facets li').checkVisibility() && !document.querySelector('.facets > summary').checkVisibility()`)
	b.wear(looks[1])
	b.goTo(browse(appRepo, "", "blob", "main.go"), 200)
	b.expect("text in the first view", `document.querySelector('.text').getBoundingClientRect().top < innerHeight / 2`)
	b.expect("symbols, which come after the text, move nothing", `(top => (symbols.hidden = true, top === code.getBoundingClientRect().top))(code.getBoundingClientRect().top)`)
}

// theFirstPageIsAboutThisNode: the box has the focus, repositories of this node,
// recent queries, the state of the cluster in words.
func theFirstPageIsAboutThisNode(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(find("Greeting"), 200)
	b.goTo("/", 200)
	b.expect("the focus in the box", `document.activeElement.id === 'query'`)
	b.expect("real repositories", `document.querySelector('main').textContent.includes('local/large')`)
	b.expect("recent queries", `document.querySelector('#recent').textContent.includes('Greeting')`)
	b.expect("no help table", `!document.querySelector('main table')`)
	b.goTo("/repos?query=app", 200)
	b.expect("repositories are filtered", `document.querySelectorAll('.repo-row').length === 1`)
	b.goTo("/cluster", 200)
	b.expect("what may fail", `document.querySelector('main').textContent.includes('One node: it must not fail.')`)
	b.expect("main is not read aloud whole", `!document.querySelector('main[aria-live]')`)
	b.goTo("/settings/keys", 403)
}

// signingInAndOut keeps the key where no script finds it.
func ownersHaveSettings(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, s.owner)
	b.goTo("/settings/keys", 200)
	b.expect("the owner's key in the list", `document.querySelector('main').textContent.includes('owner')`)
	b.expect("who is signed in", `document.querySelector('header nav').textContent.includes('owner')`)
	b.expect("nothing that a script can read", `document.cookie === '' && sessionStorage.length === 0`)
}
