package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
)

// asked is the arguments of a call of a tool, given as name, value, ...
func asked(tool string, pairs ...any) *Args {
	a := newArgs(&Tool{Name: tool})
	for i := 0; i+1 < len(pairs); i += 2 {
		a.set(pairs[i].(string), pairs[i+1])
	}
	a.asked, a.values["maxTokens"] = a.Text("repo"), 4000
	return a
}

// diffOf makes a difference of some files with some lines each.
func diffOf(lines int, paths ...string) *browse.DiffResponse {
	r := &browse.DiffResponse{HeadCommit: "b"}
	for _, p := range paths {
		r.Files = append(r.Files, browse.DiffFile{OldPath: p, NewPath: p, OldMode: "100644", NewMode: "100644", Hunks: []browse.DiffHunk{{
			OldStart: 1, OldLines: lines, NewStart: 1, NewLines: lines, Body: strings.Repeat("-the old line\n+the new line\n", lines),
		}}})
	}
	return r
}

// differing is a history in which any two revisions differ so.
type differing struct {
	browse.Reader
	r *browse.DiffResponse
}

// Diff counts lines and leaves out hunks where it is asked to.
func (d differing) Diff(_ context.Context, _ catalog.Viewer, req browse.DiffRequest) (*browse.DiffResponse, error) {
	r := *d.r
	r.Files = slices.Clone(r.Files)
	size := 0
	for i := range r.Files {
		f := &r.Files[i]
		if !req.Stat {
			for _, h := range f.Hunks {
				size += len(h.Body)
			}
			if req.MaxBytes > 0 && size > req.MaxBytes {
				f.Hunks = []browse.DiffHunk{{OldStart: 1, OldLines: 1, Body: "-the beginning\n"}}
				f.Cut, r.Cut = true, true
			}
			continue
		}
		for _, h := range f.Hunks {
			f.Added += strings.Count("\n"+h.Body, "\n+")
			f.Removed += strings.Count("\n"+h.Body, "\n-")
		}
		f.Hunks = nil
	}
	return &r, nil
}

// Outline is that of a node without the program that finds symbols.
func (differing) Outline(context.Context, catalog.Viewer, browse.OutlineRequest) (*browse.OutlineResponse, error) {
	return nil, errors.New("this node cannot find symbols")
}

// compared is the text of a comparison in the form that its size asks for.
func compared(a *Args, r *browse.DiffResponse) string {
	a.values["page"], a.values["mode"] = max(a.Number("page"), 1), "auto"
	text, err := runGetDiff(context.Background(), catalog.Viewer{}, differing{r: r}, a)
	if err != nil {
		return err.Error()
	}
	return text
}

// Of a body that nobody asked for those paragraphs are shown that have a word of the
// query, else its beginning, without what says nothing of the change.
func TestCommitBody_isShortenedToRelevantParagraphs(t *testing.T) {
	t.Parallel()
	long := "First line.\nSecond.\n\nThird of Retries.\n\nFourth.\nFifth.\n"
	for _, c := range []struct{ query, body, want string }{
		{"", "", ""},
		{"", "One line.\n\nSigned-off-by: A <a@b>\nCo-authored-by: B <b@c>\n", "    One line.\n"},
		{"", "<!-- a\nb -->\n| x | y |\n![logo](u)\n<details>\n", ""},
		{"", "Fixes: it\n", "    Fixes: it\n"},
		{"", long, "    First line.\n    Second.\n    …\n"},
		{"retries", long, "    Third of Retries.\n    …\n"},
		{"nothing", long, "    First line.\n    Second.\n    …\n"},
		{"second retries", "Retries.\n\nSecond retries.\n\nSecond.\n\nRetries, second.", "    Second retries.\n    Retries, second.\n    …\n"},
		{"second", "First.\r\n\r\nSecond.\r\n\r\nThird line.\r\n", "    Second.\n    …\n"},
		{"", "* Say it twice\n* Mend it\n", "    * Mend it\n"},
		{"", "Say it twice\n", ""},
	} {
		if got := briefBody(asked("list_commits", "repo", "r", "query", c.query), &browse.CommitInfo{Body: c.body, Message: "Say it twice (#12)"}, 1000); got != c.want {
			t.Errorf("%q of %q: %q, want %q", c.query, c.body, got, c.want)
		}
	}
	if got := briefBody(asked("list_commits", "repo", "r", "query", "x"), &browse.CommitInfo{Body: strings.Repeat("x y\n", 1000)}, 1000); len(got) > 3*briefBytes {
		t.Errorf("%d bytes", len(got))
	}
	asks := asked("list_commits", "repo", "r", "body", true)
	if got := briefBody(asks, &browse.CommitInfo{Body: long}, 1000); got != bodyText(long, 1000) {
		t.Errorf("asked for: %q", got)
	}
}

// A body is set in, and what is cut of it is counted; nothing of it reads like a line
// of the answer.
func TestCommitBody_isIndentedBelowItsSubject(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body string
		most int
		want string
	}{
		{"", 100, ""},
		{" \n\n", 100, ""},
		{"why", 0, ""},
		{"\nwhy\r\n\nComplete.\n\n", 100, "    why\n\n    Complete.\n"},
		{"one\u202etwo\x1b[1m", 100, "    one\\u202etwo\\u001b[1m\n"},
		{"ééé", 3, "    é\n    … 4 bytes more\n"},
		{"first\nsecond", 5, "    first\n    … 7 bytes more\n"},
		{"a long first line of a message\nsecond\nlast\n", 32, "    a long first line of a messa\n    … 10 bytes more\n    last\n"},
	} {
		if got := bodyText(tt.body, tt.most); got != tt.want {
			t.Errorf("%q in %d: %q, want %q", tt.body, tt.most, got, tt.want)
		}
	}
}

// Bodies that were asked for take the room that there is: the rest is on further pages,
// or, where there are none, told to be missing.
func TestCommitBodies_continueOnFurtherPages(t *testing.T) {
	t.Parallel()
	commits := make([]browse.CommitInfo, 50)
	for i := range commits {
		commits[i] = browse.CommitInfo{Hash: strings.Repeat("a", 40), Message: "Mend it", Body: strings.Repeat("because of this\n", 200)}
	}
	a := asked("list_commits", "repo", "r", "body", true)
	a.values["page"], a.values["perPage"] = 1, 50
	paged := commitsText(a, &browse.CommitsResponse{Commits: commits, Total: 50}, nil)
	traced := tracedText(a, &browse.TraceResponse{Commits: commits}, 0, nil)
	if want := "Left out: 39 commits of this page, for lack of room; continue with"; !strings.Contains(paged, want) || !strings.Contains(paged, "    … 2199 bytes more\n") {
		t.Errorf("want %q in\n%s", want, paged)
	}
	if want := "Left out: lines or bodies below 39 commits, for lack of room;"; !strings.Contains(traced, want) || strings.Count(traced, "Mend it") != 50 {
		t.Errorf("want %q in\n%s", want, traced)
	}
	for _, text := range []string{paged, traced} {
		if len(text) > 4000*tokenBytes {
			t.Errorf("an answer of %d bytes", len(text))
		}
	}

	// Who asks for those of few commits gets them whole.
	asking := asked("list_commits", "repo", "r", "body", true)
	short := commits[0]
	short.Body = strings.Repeat("because of this\n", 120)
	if text := commitsText(asking, &browse.CommitsResponse{Commits: []browse.CommitInfo{short, short}, Total: 2}, nil); strings.Count(text, "because of this") != 240 {
		t.Errorf("%s", text)
	}

	// Of few commits their beginnings come unasked, and not where they are not wanted.
	few := &browse.CommitsResponse{Commits: commits[:3], Total: 3}
	if text := commitsText(asked("list_commits", "repo", "r"), few, nil); strings.Count(text, "because of this") != 3*briefLines {
		t.Errorf("%s", text)
	}
	for _, text := range []string{
		commitsText(asked("list_commits", "repo", "r", "body", false), few, nil),
		commitsText(asked("list_commits", "repo", "r"), &browse.CommitsResponse{Commits: commits[:4], Total: 4}, nil),
	} {
		if strings.Contains(text, "because") || strings.Contains(text, "more") {
			t.Errorf("%s", text)
		}
	}
}

func manyPaths(n int, format string) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(format, i%20, i))
	}
	return all
}

func TestDiffTool_answersUsefullyForAnySize(t *testing.T) {
	t.Parallel()
	a := func() *Args { return asked("get_diff", "repo", "r", "base", "a", "head", "b") }
	for _, tt := range []struct {
		name  string
		r     *browse.DiffResponse
		wants []string
	}{
		{"small", diffOf(2, "x/y.go"), []string{"M x/y.go +2 -2\n@@ -1,2 +1,2 @@\n-the old line\n", "\nComplete."}},
		{"one large file", diffOf(5000, "x/y.go"), []string{"1 file, +5000 -5000\nM x/y.go +5000 -5000\n", "-the old line", `continue with get_diff {"repo":"r","base":"a","head":"b","mode":"patch","page":2}.`}},
		{"one file of megabytes", diffOf(50_000, "x/y.go"), []string{"1 file, +50000 -50000\nM x/y.go +50000 -50000\n", "-the old line", `"mode":"patch","page":2}.`}},
		{"files of megabytes", diffOf(50_000, "x/y.go", "z.go"), []string{"2 files, +100000 -100000\nM x/y.go +50000 -50000\n", `"mode":"patch"`}},
		{"many files", diffOf(200, manyPaths(200, "d%d/f%d.go")...), []string{"M d0/f0.go +200 -200\n", "M d19/f199.go +200 -200\n", `"mode":"patch"`}},
		{"more files than a list holds", diffOf(3, manyPaths(5000, "top/d%d/f%d.go")...), []string{"5000 files, ", "top/d0/: 250 files, +750 -750\n", `"path":"top/d0"`}},
	} {
		text := compared(a(), tt.r)
		for _, want := range tt.wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%.2000s", tt.name, want, text)
			}
		}
		if len(text) > 4000*tokenBytes {
			t.Errorf("%s: %d bytes", tt.name, len(text))
		}
	}
	r := diffOf(1, "new name")
	r.Files[0].OldPath = "old"
	r.Files = append(r.Files, browse.DiffFile{NewPath: "added", NewMode: "100644"}, browse.DiffFile{OldPath: "gone", OldMode: "100644", Binary: true})
	if text := compared(a(), r); !strings.Contains(text, "R old -> new name +1 -1\n") || !strings.Contains(text, "A added +0 -0\n") || !strings.Contains(text, "D gone +0 -0\nBinary files differ\n") {
		t.Error(text)
	}
}

// Two releases differ by megabytes, which are not written to find out that they do not
// fit. Of a single file they are: its patch is shown in pages.
func TestDiffTool_doesNotRenderPatchesThatDoNotFit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mode string
		r    *browse.DiffResponse
		want int // files that are written
	}{
		{"auto", diffOf(5000, manyPaths(200, "d%d/f%d.go")...), 2},
		{"patch", diffOf(5000, manyPaths(200, "d%d/f%d.go")...), 200},
		{"auto", diffOf(50_000, "one.go"), 1},
		{"auto", diffOf(2, manyPaths(20, "d%d/f%d.go")...), 20},
	} {
		c := &comparison{Args: asked("get_diff", "repo", "r", "base", "a", "head", "b"), mode: tt.mode}
		if err := c.ask(t.Context(), catalog.Viewer{}, differing{r: tt.r}, false); err != nil || len(c.files) != tt.want {
			t.Errorf("%s of %d files: %d written, want %d, %v", tt.mode, len(tt.r.Files), len(c.files), tt.want, err)
		}
	}
}

func TestPathList_namesADirectoryOnce(t *testing.T) {
	t.Parallel()
	got := strings.Join(byDirectory([]string{"Makefile", "a/one.go", "a/b/only.go", "a/two.go", "z/x.go"}), "")
	if want := "Makefile\na/\n one.go\n two.go\na/b/only.go\nz/x.go\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestToolPage_endsWithTheCallForTheNext(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		page, shown, total int
		want               string
	}{
		{1, 50, 50, "Complete."},
		{1, 50, 120, `Left out: 70 more; continue with list_commits {"repo":"r","page":2}.`},
		{3, 20, 120, "Complete."},
		{9, 0, 120, `Left out: everything: there is no page 9, the last is list_commits {"repo":"r","page":3}.`},
		{1, 0, 0, "Complete."},
	} {
		a := asked("list_commits", "repo", "r")
		a.values["page"], a.values["perPage"] = tt.page, 50
		e := end{coverage: whole}
		e.pages(a, tt.shown, tt.total)
		if got := e.String(); !strings.Contains(got, tt.want) {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

func TestListCommits_saysWhereItRanOutOfTime(t *testing.T) {
	t.Parallel()
	a := asked("list_commits", "repo", "r", "query", "word", "page", 2)
	a.values["perPage"] = 1
	for want, r := range map[string]browse.CommitsResponse{
		`continue with list_commits {"repo":"r","query":"word","until":"2023-11-14T22:13:20Z"}, or`:                {Reached: time.Unix(1_700_000_000, 0), Commits: []browse.CommitInfo{{Hash: "abc"}}},
		`Not searched: what is older; continue with list_commits {"repo":"r","query":"word","page":3}.`:            {Commits: []browse.CommitInfo{{Hash: "abc"}}},
		`Not searched: what is older: looking through the history took too long; narrow with since, until or path`: {},
	} {
		r.Total, r.AtLeast, r.Per = 1, true, 1
		if got := commitsText(a, &r, nil); !strings.Contains(got, want) {
			t.Errorf("%q", got)
		}
	}
}

func TestToolAnswer_withoutResultsSaysWhatToTry(t *testing.T) {
	t.Parallel()
	none := &browse.CommitsResponse{Per: 50}
	for _, tt := range []struct{ got, want string }{
		{commitsText(asked("list_commits", "repo", "r", "path", "a/b.go"), none, nil), `glob {"pattern":"b.go","repo":"r"}`},
		{commitsText(asked("list_commits", "repo", "r", "path", "a", "since", "2020"), none, nil), `At any time: list_commits {"repo":"r","path":"a"}.`},
		{compared(asked("get_diff", "repo", "r", "base", "a", "head", "b", "path", "no/such"), &browse.DiffResponse{HeadCommit: "b"}), `All that differs: get_diff {"repo":"r","base":"a","head":"b"}.`},
	} {
		if !strings.Contains(tt.got, tt.want) || !strings.HasSuffix(tt.got, "\n"+complete) {
			t.Errorf("%q has no %q", tt.got, tt.want)
		}
	}
}

func TestToolAdvice_raisesALimitOnlyWhereThatHelps(t *testing.T) {
	t.Parallel()
	files := []search.GrepFile{{Repo: "r", Path: "a", Matches: 1, Lines: []browse.Line{{Number: 1, Text: []byte("x")}}}}
	grepText := func(gap coverage.Gap) string {
		a := asked("grep", "pattern", "x", "repo", "r")
		a.tool.Params = []Param{anyRepoParam, pathParam, includeParam}
		return newGrepping(a).text(&search.GrepResponse{Files: files, Matches: 1, Coverage: whole.With(gap)})
	}
	over := grepText(coverage.Gap{Kind: coverage.Limit})
	if !strings.HasSuffix(over, `more files match than these; continue with grep {"pattern":"x","repo":"r","offset":1}, or narrow with repo, path, include.`) {
		t.Error(over)
	}
	silent := grepText(coverage.Gap{Kind: coverage.Lost, Count: 1, Of: 3})
	if !strings.HasSuffix(silent, "Not searched: 1 of 3 parts of the index did not answer; try again in a few seconds.") {
		t.Error(silent)
	}
	failed := grepText(coverage.Gap{Kind: coverage.Failed, Count: 2})
	if !strings.HasSuffix(failed, "\nComplete but for 2 repositories that could not be indexed; list_repos tells why.") {
		t.Error(failed)
	}
}

// since, until and the order of commits go by when they were committed, and so
// does the date that stands there.
func TestListCommits_showsTheCommitDate(t *testing.T) {
	t.Parallel()
	day := func(year int) time.Time { return time.Date(year, 2, 27, 0, 0, 0, 0, time.UTC) }
	for want, c := range map[string]browse.CommitInfo{
		"528ea98bd3 2020-02-27 Ann: Mend it": {Hash: "528ea98bd322aa", AuthorName: "Ann", Message: "Mend it", Date: day(2019), Committed: day(2020)},
		"528ea98bd3 2019-02-27 Ann: Mend it": {Hash: "528ea98bd322aa", AuthorName: "Ann", Message: "Mend it", Date: day(2019)},
	} {
		if got := commitLine(&c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A search of a tool that ran out of time says after how much, and what to do.
func TestToolAnswer_saysThatTheSearchRanOutOfTime(t *testing.T) {
	t.Parallel()
	a := asked("grep", "pattern", ".*")
	a.tool.Params = []Param{anyRepoParam, pathParam}
	got := newGrepping(a).text(&search.GrepResponse{Coverage: whole.With(coverage.Gap{Kind: coverage.Late})})
	want := fmt.Sprintf("what was not reached within %d seconds; narrow with repo, path", browse.ScanTime/time.Second)
	if !strings.Contains(got, want) || strings.Contains(got, complete) {
		t.Errorf("%q, want %q and no proof", got, want)
	}
}

// Where a part alone was searched, nothing is denied of the rest, nor are other words advised.
func TestToolAnswer_deniesNothingThatWasNotSearched(t *testing.T) {
	t.Parallel()
	for _, why := range []coverage.Kind{"", coverage.Limit, coverage.Late, coverage.Lost, coverage.Pending, coverage.Unknown} {
		part := why != "" && why != coverage.Limit
		c := whole
		if why != "" {
			c = c.With(coverage.Gap{Kind: why, Count: 1, Of: 3})
		}
		grep, words := asked("grep", "pattern", "x", "tests", "include"), asked("search", "query", "x y")
		for tool, got := range map[string]string{
			"grep":   newGrepping(grep).text(&search.GrepResponse{Coverage: c}),
			"glob":   noFile(asked("glob", "pattern", "x"), &search.GlobResponse{Coverage: c}, nil),
			"symbol": (&lookup{Args: asked("find_symbol_definitions", "symbol", "x")}).none("definition", &symbols.SymbolResponse{Coverage: c}),
			"search": (&lookup{Args: words}).noWords(&search.RankedResponse{Coverage: c, Words: []string{"x", "y"}}),
		} {
			first, _, _ := strings.Cut(got, "\n")
			if strings.Contains(first, " in what was searched.") != part {
				t.Errorf("%s, cut by %q: %s", tool, why, first)
			}
			if tool == "search" && strings.Contains(first, "fewer") == part {
				t.Errorf("cut by %q: %s", why, first)
			}
		}
	}
}

// What does not show in a call that is advised is escaped, and means the same.
func TestToolAdvice_escapesInvisibleCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"a/b.go":        `glob {"pattern":"a/b.go"}`,
		"größe <x>":     `glob {"pattern":"größe <x>"}`,
		"a\u202eog.b":   `glob {"pattern":"a\u202eog.b"}`,
		"a\u200bb\x7f":  `glob {"pattern":"a\u200bb\u007f"}`,
		"\U000e0041":    `glob {"pattern":"\udb40\udc41"}`,
		"a b \u2066c\t": `glob {"pattern":"a b \u2066c\t"}`,
	} {
		if name := label(text); strings.ContainsAny(name, "\u202e\u200b\u2066\x7f\U000e0041") {
			t.Errorf("%q is said as %q", text, name)
		}
		got := callOf("glob", "pattern", text)
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
		var back struct{ Pattern string }
		if err := json.Unmarshal([]byte(strings.TrimPrefix(got, "glob ")), &back); err != nil || back.Pattern != text {
			t.Errorf("%s means %q, %v", got, back.Pattern, err)
		}
	}
}

func TestReadFiles_continuesOneFileWithAValidCall(t *testing.T) {
	t.Parallel()
	a := asked("read_file", "repo", "r", "paths", manyPaths(10, "d%d/f%d.go"), "maxTokens", 500)
	one := (&reading{Args: a}).alone("a.go", 200)

	want := `read_file {"repo":"r","maxTokens":500,"path":"a.go","offset":3}`
	if got := one.with("offset", 3); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if one.Number("maxTokens") != 200 {
		t.Errorf("%d tokens for one file, want 200", one.Number("maxTokens"))
	}
}

// walk answers the call that each answer advises, from the first page on, until
// nothing is left out, and returns all answers.
func walk(t *testing.T, a *Args, answer func(a *Args) string) string {
	t.Helper()
	var all strings.Builder
	for range 200 {
		text := answer(a)
		if most := a.Number("maxTokens") * tokenBytes; len(text) > most {
			t.Fatalf("an answer of %d bytes, at most %d were asked for", len(text), most)
		}
		all.WriteString(text)

		_, next, goesOn := strings.Cut(text, "continue with "+a.tool.Name+" ")
		if !goesOn {
			return all.String()
		}
		var args struct{ Page, PerPage int }
		if err := json.Unmarshal([]byte(strings.TrimSuffix(next, ".")), &args); err != nil {
			t.Fatalf("%s: %v", next, err)
		}
		a.set("page", args.Page)
		if args.PerPage > 0 {
			a.set("perPage", args.PerPage)
		}
	}
	t.Fatal("the pages have no end")
	return ""
}

// pageFrom is the entries of a page of a list.
func pageFrom[T any](a *Args, list []T) []T {
	from := min((a.Number("page")-1)*a.Number("perPage"), len(list))
	return list[from:min(from+a.Number("perPage"), len(list))]
}

func TestToolLists_fitTheirBudgetAndOmitNothing(t *testing.T) {
	t.Parallel()
	var repos []browse.RepoInfo
	var branches, tags []browse.RefInfo
	for i := range 130 {
		repos = append(repos, browse.RepoInfo{Name: fmt.Sprintf("github.com/acme/service-%03d", i), Error: strings.Repeat("it fails ", i)})
		branches = append(branches, browse.RefInfo{Name: fmt.Sprintf("feature/branch-%03d", i), Commit: "c0ffee"})
		tags = append(tags, browse.RefInfo{Name: fmt.Sprintf("v%03d", i), Commit: "c0ffee"})
	}
	small := func(tool, kind string) *Args {
		a := asked(tool, "repo", "r", "page", 1, "perPage", 100, "kind", kind, "maxTokens", 500)
		a.values["maxTokens"] = 500
		return a
	}

	listed := walk(t, small("list_repos", ""), func(a *Args) string {
		return reposText(a, &browse.ReposResponse{Total: len(repos), Repos: pageFrom(a, repos)})
	})
	refs := walk(t, small("list_branches", "all"), func(a *Args) string {
		return refsText(a,
			&browse.RefsResponse{Repo: "r", Total: len(branches), Refs: pageFrom(a, branches)},
			&browse.RefsResponse{Repo: "r", Total: len(tags), Refs: pageFrom(a, tags)})
	})

	for i := range repos {
		if !strings.Contains(listed, repos[i].Name+" ") {
			t.Errorf("%s is on no page", repos[i].Name)
		}
		for _, name := range []string{branches[i].Name, tags[i].Name} {
			if !strings.Contains(refs, name+" ") {
				t.Errorf("%s is on no page", name)
			}
		}
	}
}
