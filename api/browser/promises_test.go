package browser

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// defects is what readers of the first pages met, and the tests that each would
// fail again. P/ stands for TestPages_workInChromium/.
var defects = []struct {
	defect string
	tests  []string
}{
	{"marks shift in files that are no UTF-8", []string{"TestMatchMarks_standAroundMatchesInFilesThatAreNotUTF8", "P/CodeHasColours"}},
	{"names and code are forged by characters that turn the direction", []string{"TestText_showsInvisibleCharacters", "P/HiddenCharactersAreSeen"}},
	{"type:repo says that nothing was found", []string{"TestSearchPage_listsRepositories", "P/AnAnswerSaysWhatItIs"}},
	{"others than owners are shown connections and errors", []string{"TestSettingsPages_showDetailsAndChangesOnlyToOwners", "TestStatus_showsJobErrorsOnlyToOwners", "P/OneTruthAboutWhatFailed"}},
	{"50,000 lines, or a line of half a megabyte, hold the tab", []string{"TestFilePage_ofALargeFileHasFewElements", "P/ALargeFileStaysUsable"}},
	{"code has no colours", []string{"TestHighlighter_coloursEachLanguage", "P/CodeHasColours"}},
	{"no way from a name to its definition", []string{"P/ANameLeadsToItsPlaces", "P/ACardTellsOfAName"}},
	{"no tree beside a file, no finder, no outline, no README", []string{"P/WhatStandsBesideAFile", "P/AFileIsFoundByItsLetters", "P/ANameLeadsToItsPlaces", "P/ReadableWithoutScripts"}},
	{"no branches and tags to choose from, HEAD has no name", []string{"P/RevisionsHaveNames", "P/WhatStandsBesideAFile"}},
	{"the next results redraw the page", []string{"P/ResultsAreAppended"}},
	{"nothing is completed, no query is kept", []string{"P/TheBoxCompletes", "P/SearchesAreSaved", "P/TheFirstPageIsAboutThisNode"}},
	{"facets count what was returned, and only include", []string{"P/AQueryIsNarrowed", "P/AnAnswerSaysWhatItIs", "TestRevisionFacet_countsAFileForEachOfItsRevisions"}},
	{"one file floods the results", []string{"TestSearchPage_foldsTheManyMatchesOfOneFile", "P/OneFileDoesNotFlood"}},
	{"a mistake in a query has no place", []string{"TestQueryMistake_isMarkedAtItsPosition", "P/AMistakeIsShownInItsPlace"}},
	{"an answer does not say what it lacks", []string{"P/AnAnswerSaysWhatItIs", "TestSearchPage_showsExactCountsAsExact", "TestSearchPage_losesNoResultWhenANodeIsKilled", "TestSearchPage_saysWhatIsMissingAfterNodesAreKilled"}},
	{"links to single lines only, none to this very commit", []string{"P/LinesHaveAddresses"}},
	{"blame cuts authors and has no message, no age, no commit before", []string{"P/HistoryTellsWhoAndWhat", "TestBlame_coloursLinesByTheOrderOfCommits"}},
	{"a commit has no counts, no list of files, no sides, no words, one parent", []string{"P/HistoryTellsWhoAndWhat", "P/AChangeIsReadInTwoWays", "TestDiff_marksChangedWordsOfSimilarLines"}},
	{"a key is kept where scripts read it, nobody can sign out", []string{"P/OwnersHaveSettings", "TestSignIn_withAKeySetsASessionCookie", "TestPasswordSignIn_worksInChromiumWithoutScripts"}},
	{"no pages of settings", []string{"P/OwnersHaveSettings", "TestSettingsPages_areAccessibleAndKeepTheirPolicy", "TestSettingsChange_needsAConfirmedFormOfAnOwner"}},
	{"the status counts other failures than it lists, and is never fresh", []string{"P/OneTruthAboutWhatFailed", "P/SettingsStayFresh"}},
	{"the list of repositories has no filter, no state and no error", []string{"P/TheFirstPageIsAboutThisNode", "P/RepositoriesHaveAState"}},
	{"a phone has columns that are lost and headers that stay", []string{"P/FitsAPhone", "P/NoBarrier"}},
	{"barriers: headings, targets, contrast, whole files read aloud", []string{"P/NoBarrier", "P/EveryPageByKeyboard", "TestColours_haveEnoughContrast"}},
	{"unknown addresses are the first page, or JSON", []string{"P/UnknownAddressesAreNotFound"}},
	{"nothing without scripts", []string{"P/ReadableWithoutScripts"}},
	{"the first page is a table of help with examples that find nothing", []string{"P/TheFirstPageIsAboutThisNode"}},
	{"no whole words, lines around, copies, raw files, feed, search engine of the browser", []string{"TestWordOption_matchesOnlyWholeWords", "P/ADayByKeyboard", "P/AnAnswerHasViews", "P/AnAnswerSaysWhatItIs", "P/NothingOfARepositoryBecomesMarkup", "P/AFeedTellsOfCommits", "P/BrowsersKnowTheSearch"}},
}

// Every defect has a test, and every test that the documents name is there.
func TestPromises_eachHasAnExistingTest(t *testing.T) {
	t.Parallel()
	there := testsBelow(t, "../..")
	for _, c := range pageTests {
		there["P/"+c.name] = true
	}

	for i, d := range defects {
		if len(d.tests) == 0 {
			t.Errorf("defect %d has no test: %s", i+1, d.defect)
		}
		for _, name := range d.tests {
			if !there[name] {
				t.Errorf("defect %d: there is no test %s", i+1, name)
			}
		}
	}

	text, err := os.ReadFile("promises.md")
	if err != nil {
		t.Fatal(err)
	}
	promised := regexp.MustCompile("`((?:P/|Test|Fuzz)[A-Z]\\w*)`").FindAllStringSubmatch(string(text), -1)
	if len(promised) < 50 {
		t.Errorf("promises.md names %d tests only: it is no longer read rightly", len(promised))
	}
	for _, m := range promised {
		if !there[m[1]] {
			t.Errorf("promises.md names the test %s, which is not there", m[1])
		}
	}
}

// besideTheOthers matches a row of the table that compares the pages with other services.
var besideTheOthers = regexp.MustCompile(`(?m)^\| ([0-9]+) \|[^|]*\| (ahead|level|behind)(: [^|]*)? \|(.*)\|$`)

// Of forty things most are claimed to be ahead of the best of the others, and each claim has a test. What
// nobody has needs none.
func TestPromises_eachComparisonHasATest(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("promises.md")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for i, row := range besideTheOthers.FindAllStringSubmatch(string(text), -1) {
		count[row[2]]++
		if row[1] != strconv.Itoa(i+1) {
			t.Errorf("row %d has the number %s", i+1, row[1])
		}
		if claimed := row[2] == "ahead" || row[3] != ": none has it" && row[2] == "level"; claimed && !strings.Contains(row[4], "`") {
			t.Errorf("no test holds that the pages are %s: %s", row[2], row[0])
		}
	}
	if all := count["ahead"] + count["level"] + count["behind"]; all != 40 || count["ahead"] < 25 || count["behind"] > 4 {
		t.Errorf("%d rows: %v, want 40, at least 25 ahead and at most 4 behind", all, count)
	}
}

// testsBelow is the names of the tests of the packages that pages are made of.
func testsBelow(t *testing.T, root string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, dir := range []string{"api", "node", "shard", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range declared.FindAllSubmatch(text, -1) {
				names[string(m[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}
