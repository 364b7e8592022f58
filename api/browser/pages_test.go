package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// pageTests is what TestPages_workInChromium consists of, each on one site.
var pageTests = []struct {
	name string
	run  func(*testing.T, *site)
}{
	{"NoBarrier", noBarrier},
	{"ComponentsLookAsDrawn", componentsLookAsDrawn},
	{"NothingOfARepositoryBecomesMarkup", nothingOfARepositoryBecomesMarkup},
	{"HiddenCharactersAreSeen", hiddenCharactersAreSeen},
	{"EveryPageByKeyboard", everyPageByKeyboard},
	{"ADayByKeyboard", aDayByKeyboard},
	{"TheKeyboardKeepsItsPlace", theKeyboardKeepsItsPlace},
	{"LinesHaveAddresses", linesHaveAddresses},
	{"LinesAreEmbedded", linesAreEmbedded},
	{"ALargeFileStaysUsable", aLargeFileStaysUsable},
	{"CodeHasColours", codeHasColours},
	{"ResultsAreAppended", resultsAreAppended},
	{"OneFileDoesNotFlood", oneFileDoesNotFlood},
	{"AnAnswerSaysWhatItIs", anAnswerSaysWhatItIs},
	{"AnyCommitAndAnyDay", anyCommitAndAnyDay},
	{"ThePastIsSearched", thePastIsSearched},
	{"AQueryIsNarrowed", aQueryIsNarrowed},
	{"AMistakeIsShownInItsPlace", aMistakeIsShownInItsPlace},
	{"MarkdownIsADocument", markdownIsADocument},
	{"HistoryTellsWhoAndWhat", historyTellsWhoAndWhat},
	{"AChangeIsReadInTwoWays", aChangeIsReadInTwoWays},
	{"BlanksOfAChangeAreIgnored", blanksOfAChangeAreIgnored},
	{"KeysAreHeldUntilTheyMeanSomething", keysAreHeldUntilTheyMeanSomething},
	{"KeysMayBeOthers", keysMayBeOthers},
	{"LateResultsKeepTheFocus", lateResultsKeepTheFocus},
	{"RevisionsHaveNames", revisionsHaveNames},
	{"UnknownAddressesAreNotFound", unknownAddressesAreNotFound},
	{"ReadableWithoutScripts", readableWithoutScripts},
	{"FitsAPhone", fitsAPhone},
	{"AFirstPageWaitsForNoStyle", aFirstPageWaitsForNoStyle},
	{"TheFirstPageIsAboutThisNode", theFirstPageIsAboutThisNode},
	{"OwnersHaveSettings", ownersHaveSettings},
	{"TheBoxCompletes", theBoxCompletes},
	{"ALongPasteIsCut", aLongPasteIsCut},
	{"SuggestionsAreOfWhatIsTyped", suggestionsAreOfWhatIsTyped},
	{"AllFilesAreCounted", allFilesAreCounted},
	{"AFileIsFoundByItsLetters", aFileIsFoundByItsLetters},
	{"ASymbolIsFoundByItsLetters", aSymbolIsFoundByItsLetters},
	{"ASlowSearchCanBeStopped", aSlowSearchCanBeStopped},
	{"AnAnswerThatBreaksOffIsAskedForAgain", anAnswerThatBreaksOffIsAskedForAgain},
	{"AHeavySearchTellsHowFarItIs", aHeavySearchTellsHowFarItIs},
	{"ANameLeadsToItsPlaces", aNameLeadsToItsPlaces},
	{"LinesAreWrapped", linesAreWrapped},
	{"AnAnswerHasViews", anAnswerHasViews},
	{"SearchesAreSaved", searchesAreSaved},
	{"ThePaletteLeadsAnywhere", thePaletteLeadsAnywhere},
	{"ACardTellsOfAName", aCardTellsOfAName},
	{"WhatStandsBesideAFile", whatStandsBesideAFile},
	{"AFileSaysWhereOneIs", aFileSaysWhereOneIs},
	{"AFeedTellsOfCommits", aFeedTellsOfCommits},
	{"ADirectoryTellsItsLastCommits", aDirectoryTellsItsLastCommits},
	{"SettingsStayFresh", settingsStayFresh},
	{"AnAnswerIsSeenWhileItIsGiven", anAnswerIsSeenWhileItIsGiven},
	{"OneTruthAboutWhatFailed", oneTruthAboutWhatFailed},
	{"RepositoriesHaveAState", repositoriesHaveAState},
	{"BrowsersKnowTheSearch", browsersKnowTheSearch},
}

// TestPages_workInChromium looks at every page in a browser.
func TestPages_workInChromium(t *testing.T) {
	s := newSite(t)
	for _, c := range pageTests {
		t.Run(c.name, func(t *testing.T) { c.run(t, s) })
	}
}

// state is a page with what has been done on it.
type state struct {
	name   string
	path   string
	status int64 // 0 is 200
	owner  bool
	act    func(*tab)
}

// open shows the state to whom it is for, and returns their tab.
func (st *state) open(guest, owner *tab) *tab {
	b := guest
	if st.owner {
		b = owner
	}
	b.goTo(st.path, max(st.status, 200))
	if st.act != nil {
		st.act(b)
	}
	return b
}

// untilTyped waits until the results of a query that was typed are drawn, and nothing is on
// its way that would take their place. A phone waits for the query to be sent.
func (b *tab) untilTyped(query string) {
	b.t.Helper()
	if eval[int](b, "innerWidth") >= 800 {
		b.until("the results of what was typed", drawnFor(query))
	}
}

// drawnFor is the condition that all results of a query that was typed are drawn, not those of its first
// letters. While a search runs, Esc stops it.
func drawnFor(query string) string {
	return fmt.Sprintf(`document.title.startsWith(%q) && !document.querySelector('#files[aria-busy]') && (!document.querySelector('#count') || document.documentElement.dataset.counted)`, query+" - ")
}

// states are every page in every state that a reader meets.
func (s *site) states() []state {
	blob := func(path string) string { return browse(appRepo, "", "blob", path) }
	head, first := s.app.Git("rev-parse", "HEAD"), s.app.Git("rev-parse", "v1.0")
	return []state{
		{name: "home", path: "/"},
		{name: "results", path: find("needle")},
		{name: "results, all unfolded", path: find("needle"), act: unfold},
		{name: "results of an expression", path: find(`nee+dle`, "isRegexEnabled", "isCaseSensitivityEnabled")},
		{name: "results with filters", path: find("lang:go -file:_test needle")},
		{name: "results that are cut", path: find("straw")},
		{name: "results counted", path: find("count:all straw")},
		{name: "results with all files counted", path: find("straw") + "&facets=all", act: unfold},
		{name: "filters of other searches", path: find("needle language:go")},
		{name: "all matches of one file", path: find(`reposet:local/app file:^many\.txt$ needle`)},
		{name: "no results", path: find("nosuchword lang:go")},
		{name: "changes found", path: find("type:diff needle")},
		{name: "commits found", path: find("type:commit greet") + "&order=best", act: unfold},
		{name: "matches over time", path: find("repo:app needle") + "&trend=month"},
		{name: "changes over time", path: find("type:diff needle") + "&trend=month"},
		{name: "no commits found", path: find("type:commit nosuchword")},
		{name: "a bad query", path: find("foo lang:nothing bar"), status: 400},
		{name: "an unknown context", path: find("context:nowhere x"), status: 404},
		{name: "repositories found", path: find("type:repo needle")},
		{name: "results while typing", path: "/", act: func(b *tab) {
			if eval[int](b, "innerWidth") < 800 {
				return // a phone waits for the query to be sent
			}
			b.press("needle")
			b.untilTyped("needle")
			b.until("results", `document.querySelectorAll('#files .file').length > 3`)
		}},
		{name: "suggestions", path: "/", act: func(b *tab) {
			b.press("re")
			b.until("suggestions", `document.querySelector('#suggest')`)
			b.untilTyped("re")
		}},
		{name: "the finder", path: browse(appRepo, "", "", ""), act: func(b *tab) {
			b.press("t")
			b.until("the finder", `document.querySelectorAll('#finderList li').length > 5`)
		}},
		{name: "a name", path: browse(appRepo, "", "names", "") + "?name=Greeting"},
		{name: "the panel of a name", path: blob("greet/greet.go"), act: func(b *tab) {
			eval[bool](b, `document.querySelector('#symbols details').open = true`) // a phone has it closed
			b.click("aside a[data-name]")
			b.until("the panel", `document.querySelector('#panel[open] .uses')`)
		}},
		{name: "the card of a name", path: blob("main.go"), act: func(b *tab) {
			b.hover("Greeting")
			b.until("the card", `document.documentElement.dataset.card === 'Greeting'`)
		}},
		{name: "a file, all unfolded", path: blob("greet/greet.go"), act: unfold},
		{name: "a commit that is not indexed", path: find("needle rev:" + s.app.Git("rev-list", "--max-parents=0", "HEAD"))},
		{name: "results by repository, with more around", path: find("needle") + "&group=repo&ctx=3", act: unfold},
		{name: "long lines wrapped", path: blob("main.go"), act: func(b *tab) {
			b.press("w")
			b.until("wrapped lines", `document.querySelector('.text .line')`)
			b.press("w")
		}},
		{name: "the palette", path: browse(appRepo, "", "", ""), act: func(b *tab) {
			b.press("Ctrl+k")
			b.until("the palette", `document.querySelectorAll('#paletteList li').length > 3`)
		}},
		{name: "the keys over a page", path: "/repos", act: func(b *tab) {
			b.press("?")
			b.until("the keys", `document.querySelector('#sheet[open] kbd')`)
		}},
		{name: "files found", path: browse(appRepo, "", "find", "") + "?query=go"},
		{name: "symbols found", path: browse(appRepo, "", "symbols", "") + "?query=greet"},
		{name: "no symbol found", path: browse(appRepo, "", "symbols", "") + "?query=Greeing"},
		{name: "letters of a symbol", path: browse(appRepo, "", "symbols", "")},
		{name: "repositories", path: "/repos"},
		{name: "no repositories", path: "/repos?query=nosuch"},
		{name: "a directory", path: browse(appRepo, "", "", "")},
		{name: "a deeper directory", path: browse(appRepo, "", "tree", "greet")},
		{name: "a file", path: blob("greet/greet.go")},
		{name: "a document", path: blob("docs/guide.md"), act: unfold},
		{name: "the source of a document", path: blob("docs/guide.md") + "?plain=1"},
		{name: "a directory with a document", path: browse(appRepo, "", "", "")},
		{name: "a hostile document", path: browse(hostileRepo, "", "blob", "README.md")},
		{name: "lines of a file", path: blob("main.go") + "#L6-L8"},
		{name: "a file of a branch", path: browse(appRepo, "feature/x@y", "blob", "greet/greet.go")},
		{name: "a large file", path: browse(largeRepo, "", "blob", "long.go")},
		{name: "a long line", path: browse(largeRepo, "", "blob", "min.js")},
		{name: "a binary file", path: blob("data.bin")},
		{name: "an image", path: blob("logo.png")},
		{name: "a pointer of LFS", path: blob("model.bin")},
		{name: "blame", path: browse(appRepo, "", "blame", "main.go")},
		{name: "history", path: browse(appRepo, "", "commits", "")},
		{name: "history of a file", path: browse(appRepo, "", "commits", "main.go")},
		{name: "a commit", path: browse(appRepo, "", "commit", first)},
		{name: "a merge", path: browse(appRepo, "", "commit", head)},
		{name: "a commit side by side", path: browse(appRepo, "", "commit", s.app.Git("rev-parse", "HEAD^1")) + "?view=split", act: unfold},
		{name: "keys of one's own", path: "/help/keys", act: func(b *tab) {
			eval[bool](b, `localStorage.setItem('keys', '{"j":"d"}'), location.reload(), true`)
			b.until("the keys", `document.readyState === 'complete' && document.documentElement.dataset.booted && document.querySelector('#remapped li')`)
			eval[bool](b, `localStorage.removeItem('keys'), true`)
		}},
		{name: "two revisions to compare", path: browse(appRepo, "v1.0", "compare", "")},
		{name: "commits of lines", path: browse(appRepo, "", "commits", "main.go") + "?lines=6-8"},
		{name: "a path that is not there", path: blob("greet/greets.go"), status: 404},
		{name: "a comparison", path: browse(appRepo, "", "compare", "v1.0...main")},
		{name: "a comparison without blanks", path: browse(appRepo, "", "compare", "main..main") + "?w=1"},
		{name: "branches", path: browse(appRepo, "", "branches", "")},
		{name: "tags", path: browse(appRepo, "", "tags", "")},
		{name: "dependencies", path: browse(appRepo, "", "dependencies", "")},
		{name: "hidden characters", path: browse(hostileRepo, "", "blob", "bidi.go")},
		{name: "hostile names", path: browse(hostileRepo, "", "", "")},
		{name: "hostile results", path: find("needle reposet:\"" + strings.ReplaceAll(hostileRepo, `"`, `\"`) + "\"")},
		{name: "overview", path: "/settings"},
		{name: "overview for an owner", path: "/settings", owner: true},
		{name: "nodes", path: "/settings/nodes", owner: true},
		{name: "asked before a removal", path: "/settings/do/remove?subject=" + s.node.ID(), owner: true},
		{name: "repositories by state", path: "/settings/repos?sort=size", owner: true},
		{name: "connections", path: "/settings/connections", owner: true, act: unfold},
		{name: "jobs", path: "/settings/jobs?state=done", owner: true, act: unfold},
		{name: "placement", path: "/settings/placement", owner: true},
		{name: "events", path: "/settings/events", owner: true},
		{name: "audit", path: "/settings/audit", owner: true},
		{name: "configuration", path: "/settings/config", owner: true},
		{name: "search contexts", path: "/settings/contexts"},
		{name: "agents", path: "/settings/agents"},
		{name: "keys", path: "/settings/keys", owner: true},
		{name: "people", path: "/settings/people", owner: true, act: unfold},
		{name: "rights", path: "/settings/rights", owner: true},
		{name: "the rights of somebody", path: "/settings/rights?user=ann@example.com&repo=" + appRepo, owner: true},
		{name: "the account of a key", path: "/settings/account", owner: true},
		{name: "watches", path: "/watches", owner: true},
		{name: "a search to watch", path: "/watches?query=type:diff+added:needle", owner: true},
		{name: "a watch", path: "/watches/" + s.watch, owner: true},
		{name: "programs with access", path: "/settings/access", owner: true},
		{name: "questions", path: "/chat"},
		{name: "a password to choose", path: "/join?link=" + s.invited},
		{name: "a link that is good no more", path: "/join?link=0", status: 404},
		{name: "sign in", path: "/login"},
		{name: "help", path: "/help/syntax"},
		{name: "looks", path: "/help/looks", act: unfold},
		{name: "no such page", path: "/nowhere", status: 404},
		{name: "no such file", path: blob("nosuch.go"), status: 404},
		{name: "no such repository", path: browse("local/nosuch", "", "", ""), status: 404},
	}
}

// unfold opens everything that stands in the flow of a page. A menu lies over the page,
// and a reader opens one at a time: eachMenu does.
func unfold(b *tab) {
	eval[bool](b, `document.querySelectorAll('details:not(.drop)').forEach(d => d.open = true), true`)
}

// menusHaveNoBarrier opens the menus of a page one after another, and looks at each
// alone: what a menu half covers is out of reach until it is closed. It skips the
// menus in checked, and adds to it those that it has looked at.
func (b *tab) menusHaveNoBarrier(name string, checked map[string]bool, axe string) {
	const menus = `[...document.querySelectorAll('details.drop')].filter(d => d.checkVisibility())`
	for i := range eval[int](b, menus+`.length`) {
		menu := eval[string](b, fmt.Sprintf(`(() => {
			document.querySelectorAll('details.drop').forEach(d => d.open = false);
			const menu = %s[%d];
			menu.open = true;
			return menu.outerHTML;
		})()`, menus, i))
		if !checked[menu] {
			checked[menu] = true
			b.hasNoBarrier(fmt.Sprintf("%s, menu %d", name, i+1), "details.drop[open]", axe)
		}
	}
}

// noBarrier holds each page in each state and each look to WCAG 2.2 AA; the
// short form holds each state to it in one of two looks.
func noBarrier(t *testing.T, s *site) {
	t.Parallel()
	axe := axeCore(t)
	used := looks
	if testing.Short() {
		used = looks[:2]
	}
	for at, l := range used {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			guest, owner := s.open(t, ""), s.open(t, s.owner)
			guest.wear(l)
			owner.wear(l)
			checked := make(map[string]bool)
			for i, st := range s.states() {
				if testing.Short() && i%len(used) != at {
					continue
				}
				b := st.open(guest, owner)
				b.reports(st.name)
				b.hasNoBarrier(st.name+", "+l.name, "html", axe)
				b.menusHaveNoBarrier(st.name+", "+l.name, checked, axe)
			}
		})
	}
}

// axeCore is the script that looks for barriers; without it the test is skipped.
func axeCore(t *testing.T) string {
	t.Helper()
	axe, err := os.ReadFile(os.Getenv("SHOAL_TEST_AXE"))
	if err != nil {
		t.Skipf("NOT RUN: axe-core is not there: %v", err)
	}
	return string(axe)
}

// hasNoBarrier fails the test where the part of the page that a selector names bars
// somebody, or where the page is wider than the window.
func (b *tab) hasNoBarrier(name, part, axe string) {
	b.t.Helper()
	for _, v := range violations(b, part, axe) {
		b.t.Errorf("%s: %s", name, v)
	}
	if over := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		b.t.Errorf("%s: the page is %d px wider than the window", name, over)
	}
}

// reports fails the test where the policy of a page was broken.
func (b *tab) reports(name string) {
	b.t.Helper()
	for _, r := range eval[[]string](b, `window.reports`) {
		b.t.Errorf("%s: the policy reports %s", name, r)
	}
}

// violations is what axe has to say of the part of a page that a selector names.
func violations(b *tab, part, axe string) []string {
	b.t.Helper()
	if !eval[bool](b, `typeof window.axe === 'object'`) {
		eval[bool](b, axe+"; true")
	}
	type node struct {
		HTML    string `json:"html"`
		Target  []any  `json:"target"`
		Summary string `json:"failureSummary"`
	}
	type violation struct {
		ID    string `json:"id"`
		Nodes []node `json:"nodes"`
	}
	// Of the largest pages that takes longer than a page may take.
	ctx, cancel := context.WithTimeout(b.ctx, 5*patience)
	defer cancel()
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]violation](fmt.Sprintf(`axe.run(%q, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], resultTypes: ['violations']}).then(r => r.violations)`, part), chromedp.EvalAwaitPromise))
	b.must(err)
	var out []string
	for _, v := range found {
		for _, n := range v.Nodes[:min(len(v.Nodes), 2)] {
			out = append(out, fmt.Sprintf("%s (%d×): %v %.200s\n%s", v.ID, len(v.Nodes), n.Target, n.HTML, n.Summary))
		}
	}
	return out
}

// quote is a text as the page writes it.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("BUG: a string is always JSON: " + err.Error())
	}
	return string(b)
}
