package browser

import (
	"encoding/xml"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// theBoxCompletes filters, values, repositories, revisions, symbols and files,
// by keyboard alone.
func theBoxCompletes(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo("/", 200)
	value := `document.getElementById('query').value`
	list := `[...document.querySelectorAll('#suggest li')].map(e => e.firstElementChild.textContent)`
	for i, st := range []step{
		{[]string{"re"}, list + `.includes('repo:')`},
		{[]string{"Down", "Tab"}, value + ` === 'repo:'`},
		{nil, list + `.includes('local/app')`},
		{[]string{"app"}, list + `.join() === 'local/app'`},
		{nil, `document.getElementById('query').getAttribute('aria-expanded') === 'true'`},
		{[]string{"Down"}, `document.getElementById(document.getElementById('query').getAttribute('aria-activedescendant')).getAttribute('aria-selected') === 'true'`},
		{[]string{"Enter"}, value + ` === 'repo:^local/app$ ' && !document.querySelector('#suggest')`},
		{[]string{"rev:fea"}, list + `.includes('feature/x@y')`},
		{[]string{"Down", "Tab"}, value + ` === 'repo:^local/app$ rev:feature/x@y '`},
		{[]string{"Greet"}, list + `.includes('Greeting')`},
		{[]string{"Escape"}, `!document.querySelector('#suggest') && ` + value + `.endsWith('Greet')`},
		{[]string{"Enter"}, `location.pathname === '/search' && document.documentElement.dataset.booted && document.querySelector('.file h2').textContent.includes('feature/x@y')`},
	} {
		b.steps(i, st)
	}
	b.goTo("/", 200)
	for i, st := range []step{
		{[]string{"lang:"}, list + `.includes('Go') && !` + list + `.includes('GraphQL')`},
		{[]string{"mar"}, list + `.join() === 'Markdown'`},
		{[]string{" ca"}, list + `.includes('case:')`},
		{[]string{"se:"}, list + `.join() === 'yes,no,auto'`},
		{[]string{" file:app"}, list + `.includes('web/app.js')`},
		{[]string{" \"re"}, `!document.querySelector('#suggest')`},
	} {
		b.steps(20+i, st)
	}
}

// suggestionsAreOfWhatIsTyped: answers may take their time, and what is pressed
// meanwhile is for the list of what stands in the box, not for the one in sight.
func suggestionsAreOfWhatIsTyped(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	// As where drawing takes long: the focus that the browser moves by itself comes after the scripts.
	b.must(call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `(real => {
  let asked = false;
  HTMLElement.prototype.focus = function (...how) { asked = true; real.apply(this, how); asked = false; };
  document.addEventListener('focusin', e => { if (!asked && !document.documentElement.dataset.booted) e.target.blur(); });
})(HTMLElement.prototype.focus)`}))
	b.goTo("/", 200)
	value, list := `document.getElementById('query').value`, `[...document.querySelectorAll('#suggest li')].map(e => e.firstElementChild.textContent)`
	b.press("repo:local/app rev:")
	b.until("all revisions", list+`.includes('feature/x@y') && !`+list+`[0].includes('feature')`)

	// Answers stay away until they are let through.
	eval[bool](b, `(() => {
  const real = window.fetch, gate = new Promise(open => { window.letThrough = open; });
  window.fetch = async (...args) => { if (String(args[0]).startsWith('/suggest')) await gate; return real(...args); };
  return true;
})()`)
	b.press("fea", "Down", "Tab")
	b.expect("nothing is taken of the list before", value+` === 'repo:local/app rev:fea' && document.activeElement.id === 'query'`)
	eval[bool](b, `letThrough(), true`)
	b.until("the revision", value+` === 'repo:local/app rev:feature/x@y '`)

	// A list of which each entry has the letters typed since stays: nothing is asked for.
	b.goTo("/", 200)
	b.press("sym:Gre")
	b.until("names", list+`.includes('Greeting')`)
	eval[bool](b, `(real => { window.fetch = (...args) => String(args[0]).startsWith('/suggest') ? new Promise(() => {}) : real(...args); return true; })(window.fetch)`)
	b.press("et", "Down", "Tab")
	b.expect("one of them is taken", value+`.startsWith('sym:^Greet')`)
	b.goTo("/", 200)

	// Where nothing can be suggested Enter searches.
	b.press("nothingofthatname", "Down", "Enter")
	b.until("the results", `location.pathname === '/search' && new URLSearchParams(location.search).get('query').endsWith('nothingofthatname')`)
}

// allFilesAreCounted by themselves where that is quick, without a redraw of the page, and
// for whoever asks. Until then a row has no count: what stands on the page is none.
func allFilesAreCounted(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	row := `[...document.querySelectorAll('#facets li')].find(e => e.textContent.includes('hay/')).textContent`
	b.goTo(find("straw")+"&from=500", 200)
	b.until("the count", `document.documentElement.dataset.counted === '1' && `+row+`.includes('1,000')`)
	b.expect("the heading says the same", `document.querySelector('.summary').textContent.endsWith('in 1,000 files')`)
	b.expect("nothing took the focus", `document.activeElement.id !== 'counted'`)
	b.expect("what was folded is folded, so that nothing moves", `!document.querySelector('#facets details').open`)

	b.must(call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	b.do("open without scripts", chromedp.Navigate(b.base+find("straw")))
	b.until("rows without counts", `document.querySelector('#count') && !/[≥0-9]/.test(`+row+`.replace('hay/', ''))`)
}

// aFileIsFoundByItsLetters, in a dialog, from any page of the repository, and on
// a page of its own without scripts.
func aFileIsFoundByItsLetters(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(browse(appRepo, "v1.0", "blob", "main.go"), 200)
	for i, st := range []step{
		{[]string{"t"}, `document.activeElement.closest('dialog#finder') && document.querySelectorAll('#finderList li').length > 5`},
		{[]string{"grtest"}, `document.querySelector('#finder').dataset.query === 'grtest' && document.querySelector('#finderList [aria-selected=true]').textContent === 'greet/greet_test.go'`},
		{[]string{"Escape"}, `!document.querySelector('#finder').open`},
		{[]string{"t", "run:2"}, `document.querySelector('#finder').dataset.query === 'run:2'`}, // a line of the file
		{[]string{"Enter"}, `location.pathname.endsWith('@v1.0/-/blob/tools/deep/down/run.sh') && location.hash === '#L2' && document.documentElement.dataset.booted`},
	} {
		b.steps(i, st)
	}

	// Enter right behind the letters is about what they find, not what was found before.
	b.press("t", "grtest", "Enter")
	b.until("the file of the letters", `location.pathname.endsWith('@v1.0/-/blob/greet/greet_test.go')`)
	b.goTo(browse(appRepo, "", "find", "")+"?query=grtest", 200)
	b.expect("the page without a script", `document.querySelector('.finds a').textContent === 'greet/greet_test.go'`)
	b.innocent(browse(hostileRepo, "", "find", ""), 200)
}

// aSymbolIsFoundByItsLetters, in a dialog and on a page of its own, where the index
// has the revision.
func aSymbolIsFoundByItsLetters(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(browse(appRepo, "", "blob", "main.go"), 200)
	for i, st := range []step{
		{[]string{"T"}, `document.activeElement.closest('dialog#symbolFinder') && !document.querySelector('#symbolFinderList li')`},
		{[]string{"grtng"}, `document.querySelector('#symbolFinder').dataset.query === 'grtng' && document.querySelector('#symbolFinderList [aria-selected=true]').textContent === 'Greeting function in greet · greet/greet.go:4'`},
		{[]string{"Enter"}, `location.pathname.endsWith('/-/blob/greet/greet.go') && location.hash === '#L4' && document.documentElement.dataset.booted`},
	} {
		b.steps(i, st)
	}

	page := browse(appRepo, "", "symbols", "")
	b.goTo(page+"?query=Greeitng", 200)
	b.expect("the name that is meant", `document.querySelector('#found a[href*="query=Greeting"]').textContent === 'Greeting' && document.querySelector('[role=status]').textContent === '0 symbols'`)
	b.goTo(page+"?query="+strings.Repeat("x", 300), 200)
	b.expect("what a name may have", `document.querySelector('[role=status]').textContent === 'A name has at most 256 bytes here.'`)
	b.goTo(browse(appRepo, "v1.0~0", "symbols", "")+"?query=main", 200)
	b.expect("no symbols of what is not indexed", `document.querySelector('[role=status]').textContent.startsWith('The index does not have this revision')`)
	b.innocent(browse(hostileRepo, "", "symbols", "")+"?query=i", 200)
}

// aNameLeadsToItsPlaces: its definitions and references, by name and not by
// compiler, in a panel over the file and on a page of its own.
func aNameLeadsToItsPlaces(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(browse(appRepo, "", "blob", "greet/greet_test.go"), 200)
	eval[bool](b, `(() => { const walk = document.createTreeWalker(document.querySelector('.text'), NodeFilter.SHOW_TEXT); for (let n; (n = walk.nextNode());) { const at = n.data.indexOf(' Greeting(') + 1; if (at > 0) { getSelection().setBaseAndExtent(n, at, n, at + 8); return true; } } return false; })()`)
	panel := `document.querySelector('#panel[open]')`
	for i, st := range []step{
		{[]string{"r"}, panel + ` && ` + panel + `.textContent.includes('by name, not by compiler')`},
		{nil, `[...document.querySelectorAll('#panel h2')].map(e => e.textContent)[0] === '1 definition' && document.querySelector('#panel h3').textContent === 'greet/greet.go'`},
		{nil, `document.activeElement.closest('#panel')`},
		{[]string{"Escape"}, `!` + panel},
		{[]string{"l"}, `document.activeElement.closest('#goto')`},
		{[]string{"5-6", "Enter"}, `location.hash === '#L5-L6' && document.querySelectorAll('.nums .on').length === 2`},
	} {
		b.steps(i, st)
	}
	b.goTo(browse(appRepo, "", "blob", "greet/greet_test.go"), 200)
	b.until("the page", `document.documentElement.dataset.booted`)
	nameAt := `(() => { const walk = document.createTreeWalker(document.querySelector('.text'), NodeFilter.SHOW_TEXT); for (let n; (n = walk.nextNode());) { const at = n.data.indexOf(' Greeting(') + 1; if (at > 0) { const r = document.createRange(); r.setStart(n, at); r.setEnd(n, at + 8); const box = r.getBoundingClientRect(); return [box.left + 9, box.top + 9]; } } return []; })()`
	at := eval[[]float64](b, nameAt)
	b.do("click the name", chromedp.MouseClickXY(at[0], at[1]))
	b.until("its definition", `location.pathname.endsWith('/greet.go') && location.hash.startsWith('#L') && document.documentElement.dataset.booted`)
	at = eval[[]float64](b, nameAt)
	b.do("click the name where it is defined", chromedp.MouseClickXY(at[0], at[1]))
	b.until("its references", panel+` && `+panel+`.textContent.includes('greet/greet_test.go')`)
	b.goTo(browse(appRepo, "v1.0", "blob", "greet/greet.go"), 200)
	b.expect("an outline", `[...document.querySelectorAll('aside li')].some(e => e.textContent.includes('Greeter'))`)
	b.click("#outline")
	b.press("greeter")
	b.until("fewer symbols", `[...document.querySelectorAll('aside li')].filter(e => e.checkVisibility()).every(e => e.textContent.includes('Greeter')) && !document.querySelector('aside').textContent.includes('Greeting')`)
	b.innocent(browse(hostileRepo, "", "names", "")+"?name=%3Cscript%3Epwned()", 200)
	b.goTo(browse(appRepo, "", "names", "")+"?name=", 400)

	// Where a page stands is said: the branch that HEAD is, and whether the index has it.
	b.goTo(browse(appRepo, "", "", ""), 200)
	b.expect("the branch", `/main indexed/.test(document.querySelector('.crumbs nav').textContent)`)
	b.goTo(browse(appRepo, s.app.Git("rev-parse", "HEAD^1^"), "", ""), 200)
	b.expect("a commit that the index has as a tag or not", `/indexed|scanned/.test(document.querySelector('.crumbs nav').textContent)`)
}

// aFeedTellsOfCommits in a form that readers of feeds know.
func aFeedTellsOfCommits(t *testing.T, s *site) {
	t.Parallel()
	r, err := http.Get(s.url + browse(appRepo, "", "commits.atom", "") + "?path=main.go")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var feed struct {
		XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
		Entries []struct {
			Title string `xml:"title"`
			ID    string `xml:"id"`
		} `xml:"entry"`
	}
	if err := xml.NewDecoder(r.Body).Decode(&feed); err != nil {
		t.Fatal(err)
	}
	if len(feed.Entries) != 2 || feed.Entries[0].Title != "say it twice" || !strings.Contains(feed.Entries[0].ID, "/-/commit/") {
		t.Errorf("feed %+v", feed)
	}
}

// aSlowSearchCanBeStopped by a button that comes when it takes a while, or Esc; the
// query stays.
func aSlowSearchCanBeStopped(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo("/", 200)
	// A node that does not answer until the reader leaves.
	eval[bool](b, `window.fetch = (url, options) => new Promise((_, fail) => options.signal.addEventListener('abort', () => fail(new DOMException('left', 'AbortError')))), true`)
	seen := `document.getElementById('stop').checkVisibility()`
	stopped := `!` + seen + ` && document.getElementById('status').textContent === 'Stopped.'`
	for i, st := range []step{
		{[]string{"needle"}, seen},
		{[]string{"Escape"}, stopped + ` && document.getElementById('query').value === 'needle'`},
		{[]string{"s"}, seen},
	} {
		b.steps(i, st)
	}
	b.click("#stop")
	b.until("the search to be stopped", stopped)
}

// anAnswerThatBreaksOffIsAskedForAgain once, and said where that does not help.
func anAnswerThatBreaksOffIsAskedForAgain(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(find("straw count:1"), 200)
	eval[bool](b, `(() => {
  const real = window.fetch;
  window.asked = 0;
  window.broken = 1;
  window.fetch = (...args) => String(args[0]).startsWith('/search') && asked++ < broken ? Promise.reject(new TypeError('network error')) : real(...args);
  return true;
})()`)
	eval[bool](b, `(q => { q.value = 'needle'; document.querySelector('#search').requestSubmit(); })(document.getElementById('query')), true`)
	b.until("the results of the second request", `asked === 2 && document.querySelectorAll('#files .file').length > 3 && !document.getElementById('working').checkVisibility()`)

	eval[bool](b, `asked = 0, broken = 9, document.querySelector('#search').requestSubmit(), true`)
	b.until("that it failed", `asked === 2 && document.getElementById('working').checkVisibility() && document.getElementById('working').textContent.includes('No answer came.')`)
	b.expect("the results before stay", `document.querySelectorAll('#files .file').length > 3`)
}

// aHeavySearchTellsHowFarItIs in words that the node sends while it searches, and
// that are gone when results are there.
func aHeavySearchTellsHowFarItIs(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo(find("needle"), 200)
	eval[bool](b, `(() => {
  const encode = s => new TextEncoder().encode(s);
  window.fetch = async () => new Response(new ReadableStream({ start(c) {
    window.tell = line => c.enqueue(encode('<p class="doing">' + line + '</p>\n'));
    window.end = () => { c.enqueue(encode('<div id="results"><h1 class="summary">3 matches in 1 file</h1></div>')); c.close(); };
  } }));
  return true;
})()`)
	eval[bool](b, `document.querySelector('#search').requestSubmit(), true`)
	told := `document.getElementById('working').checkVisibility() && document.getElementById('working').firstChild.textContent`
	b.until("the search to be at work", told+` === 'Searching'`)
	eval[bool](b, `tell('Searching for 0.6 s · 1 of 9 files'), true`)
	b.until("how far it is", told+` === 'Searching for 0.6 s · 1 of 9 files'`)
	eval[bool](b, `tell('Searching for 0.9 s · 5 of 9 files'), true`)
	b.until("how far it is now", told+` === 'Searching for 0.9 s · 5 of 9 files'`)
	b.expect("the results before stay", `document.querySelector('.file')`)
	eval[bool](b, `end(), true`)
	b.until("the results", `document.querySelector('.summary').textContent.startsWith('3 matches') && !document.getElementById('working').checkVisibility()`)
	b.expect("no trace of the words", `!document.querySelector('.doing') && document.querySelectorAll('#results').length === 1`)
}

// aLongPasteIsCut where an address ends that hosts take: what is left is searched for.
func aLongPasteIsCut(t *testing.T, s *site) {
	t.Parallel()
	b := s.open(t, "")
	b.goTo("/", 200)
	b.until("the page", `document.documentElement.dataset.booted`)
	eval[bool](b, `(() => { const q = document.getElementById('query'); q.value = 'at a.b("c/d.js":1:2) '.repeat(600); q.dispatchEvent(new Event('input', {bubbles: true})); q.form.requestSubmit(); return true; })()`)
	b.until("the results", `location.pathname === '/search' && document.querySelector('.summary')`)
	b.expect("the beginning of the text", `document.getElementById('query').value.length > 3000`)
}
