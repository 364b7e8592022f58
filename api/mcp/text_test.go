package mcp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node"
)

// asked is the arguments of a call, given as name, value, ...
func asked(pairs ...any) *args {
	a := &args{values: map[string]any{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		a.set(pairs[i].(string), pairs[i+1])
	}
	a.asked = a.text("repo")
	return a
}

// diffOf makes a difference of some files with some lines each.
func diffOf(lines int, paths ...string) *node.DiffResponse {
	r := &node.DiffResponse{}
	for _, p := range paths {
		r.Files = append(r.Files, node.DiffFile{OldPath: p, NewPath: p, OldMode: "100644", NewMode: "100644", Hunks: []node.DiffHunk{{
			OldStart: 1, OldLines: lines, NewStart: 1, NewLines: lines, Body: strings.Repeat("-the old line\n+the new line\n", lines),
		}}})
	}
	return r
}

func paths(n int, format string) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(format, i%20, i))
	}
	return all
}

func TestADifferenceOfAnySizeIsOfUse(t *testing.T) {
	t.Parallel()
	a := asked("repo", "r", "base", "a", "head", "b")
	for _, tt := range []struct {
		name  string
		r     *node.DiffResponse
		wants []string
	}{
		{"small", diffOf(2, "x/y.go"), []string{"M x/y.go +2 -2\n@@ -1,2 +1,2 @@\n-the old line\n", "\nComplete."}},
		{"one large file", diffOf(5000, "x/y.go"), []string{"M x/y.go +5000 -5000\n", "-the old line", "lines of the difference; read the file itself"}},
		{"many files", diffOf(200, paths(200, "d%d/f%d.go")...), []string{"M d0/f0.go +200 -200\n", "M d19/f199.go +200 -200\n", "-the old line", "the lines of ", `"path":`}},
		{"more files than a list holds", diffOf(3, paths(5000, "top/d%d/f%d.go")...), []string{"5000 files changed", "top/d0/: 250 files, +750 -750\n", `"path":"top/d0"`}},
	} {
		text := diffText(a, tt.r)
		for _, want := range tt.wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%.2000s", tt.name, want, text)
			}
		}
		if len(text) > budget {
			t.Errorf("%s: %d bytes", tt.name, len(text))
		}
	}
	r := diffOf(1, "new name")
	r.Files[0].OldPath = "old"
	r.Files = append(r.Files, node.DiffFile{NewPath: "added", NewMode: "100644"}, node.DiffFile{OldPath: "gone", OldMode: "100644", Binary: true})
	if text := diffText(a, r); !strings.Contains(text, "R old -> new name\n") || !strings.Contains(text, "A added\n") || !strings.Contains(text, "D gone\nBinary files differ\n") {
		t.Error(text)
	}
}

func TestPathsOfADirectoryNameItOnce(t *testing.T) {
	t.Parallel()
	got := strings.Join(byDirectory([]string{"Makefile", "a/one.go", "a/b/only.go", "a/two.go", "z/x.go"}), "")
	if want := "Makefile\na/\n one.go\n two.go\na/b/only.go\nz/x.go\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheEndOfAPageSaysHowToGoOn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		page, shown, total int
		atLeast            bool
		want               string
	}{
		{1, 50, 50, false, "Complete."},
		{1, 50, 120, false, `Left out: 70 more; continue with list_commits {"repo":"r","page":2}.`},
		{3, 20, 120, false, "Complete."},
		{9, 0, 120, false, `There is no page 9; the last is list_commits {"repo":"r","page":3}.`},
		{1, 50, 50, true, `Left out: what is older; continue with list_commits {"repo":"r","page":2}.`},
		{1, 7, 7, true, "took too long"},
		{1, 0, 0, false, "Complete."},
	} {
		a := asked("repo", "r")
		a.values["page"], a.values["perPage"] = tt.page, 50
		if got := pages(a, "list_commits", tt.shown, tt.total, tt.atLeast); !strings.Contains(got, tt.want) {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

func TestALateListOfCommitsSaysWhereItStopped(t *testing.T) {
	t.Parallel()
	a := asked("repo", "r", "query", "word", "page", 2)
	got := commitsText(a, &node.CommitsResponse{Total: 1, AtLeast: true, Reached: time.Unix(1_700_000_000, 0), Commits: []node.CommitInfo{{Hash: "abc", Message: "a word"}}})
	if want := `continue with list_commits {"repo":"r","query":"word","until":"2023-11-14T22:13:20Z"}, or`; !strings.Contains(got, want) {
		t.Errorf("%q", got)
	}
}

func TestNothingFoundSaysWhatToTry(t *testing.T) {
	t.Parallel()
	none := &node.CommitsResponse{}
	for _, tt := range []struct{ got, want string }{
		{commitsText(asked("repo", "r", "path", "a/b.go"), none), `glob {"pattern":"**/b.go","repo":"r"}`},
		{commitsText(asked("repo", "r", "path", "a", "since", "2020"), none), `At any time: list_commits {"repo":"r","path":"a"}.`},
		{diffText(asked("repo", "r", "base", "a", "head", "b", "path", "no/such"), &node.DiffResponse{}), `All that differs: get_diff {"repo":"r","base":"a","head":"b"}.`},
	} {
		if !strings.Contains(tt.got, tt.want) || !strings.HasSuffix(tt.got, "\n"+complete) {
			t.Errorf("%q has no %q", tt.got, tt.want)
		}
	}
}

func TestALimitIsRaisedOnlyWhereThatHelps(t *testing.T) {
	t.Parallel()
	files := []node.GrepFile{{Repo: "r", Path: "a", Lines: []node.GrepLine{{Number: 1, Text: []byte("x")}}}}
	over := grepText(asked("pattern", "x", "repo", "r"), &node.GrepResponse{Files: files, Matches: 1, Cut: true, CutWhy: "More files match than the limit of 1 shows.", Over: true}, 1)
	if !strings.HasSuffix(over, `More files match than the limit of 1 shows; continue with grep {"pattern":"x","repo":"r","limit":4}, or narrow with repo, path or include.`) {
		t.Error(over)
	}
	silent := grepText(asked("pattern", "x", "repo", "r"), &node.GrepResponse{Files: files, Matches: 1, Cut: true, CutWhy: "1 of 3 parts of the index did not answer."}, 1)
	if !strings.HasSuffix(silent, "Left out: 1 of 3 parts of the index did not answer.") {
		t.Error(silent)
	}
}
