package tool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
)

// complete is the word of an answer that lacks nothing.
const complete = "Complete."

// whole is what such an answer covers.
var whole = coverage.Of(coverage.Parts, 1, 1)

// Files that are kept by name only are told at length where nothing was found, and
// in a few words where something was.
func TestToolAnswer_tellsOfFilesIndexedOnlyByName(t *testing.T) {
	t.Parallel()
	files := []coverage.File{
		{Repo: "example.com/acme/app", Path: "docs/large.txt", Why: "larger than the maximum file size"},
		{Repo: "example.com/acme/app", Path: "drivers/mask.h", Why: "larger than the maximum file size"},
	}
	for _, tt := range []struct {
		n     int
		found bool
		want  string
	}{
		{1, true, "Not searched: kept by name only: docs/large.txt."},
		{41, true, "Not searched: 41 files kept by name only, as docs/large.txt."},
		{41, false, "Not searched: kept by name only: docs/large.txt (larger than the maximum file size), drivers/mask.h (larger than the maximum file size) and 39 more; " +
			`read_file {"repo":"example.com/acme/app","path":"docs/large.txt"} reads it.`},
	} {
		a := asked("grep", "repo", "example.com/acme/app")
		e := end{found: tt.found}
		e.lacks(a, whole.With(coverage.Gap{Kind: coverage.NameOnly, Count: tt.n, Files: files[:min(tt.n, len(files))]}), "")
		if got := e.String(); !strings.HasSuffix(got, tt.want) {
			t.Errorf("%d, found %v: %s, want %s", tt.n, tt.found, got, tt.want)
		}
	}
}

// An overview has as many groups as there is room for, those with most first, and
// the call for the others.
func TestGrepOverview_showsTheLargestGroups(t *testing.T) {
	t.Parallel()
	r := &search.GrepResponse{Coverage: whole}
	for i := range 120 {
		dir := string(rune('a'+i/26)) + string(rune('a'+i%26))
		r.Files = append(r.Files, search.GrepFile{Repo: "example.com/acme/app", Path: dir + "/x/f.go", Matches: 200 - i})
		r.Matches += 200 - i
	}
	for _, tt := range []struct {
		group  string
		tokens int
		first  string
		end    string
	}{
		{"directory", 4000, "aa/x: 200 in 1\n", "ep/x: 81 in 1\nComplete."},
		{"file", 4000, "aa/x/f.go: 200\n", "ep/x/f.go: 81\nComplete."},
		{"directory", 500, "aa/x: 200 in 1\n", `directories with fewer; continue with grep {"repo":"example.com/acme/app","pattern":"x","mode":"count","groupBy":"directory","offset":103}.`},
	} {
		a := asked("grep", "repo", "example.com/acme/app", "pattern", "x", "mode", "count", "groupBy", tt.group)
		a.values["maxTokens"] = tt.tokens
		got := newGrepping(a).text(r)
		if !strings.Contains(got, tt.first) || !strings.HasSuffix(got, tt.end) || len(got) > tt.tokens*tokenBytes {
			t.Errorf("by %s in %d tokens: no %q, or not ending in %q:\n%s", tt.group, tt.tokens, tt.first, tt.end, got)
		}
	}
}

// What matches on a part of a line that was cut away is in no group, and is told.
func TestGrepOverview_countsMatchesOnCutLines(t *testing.T) {
	t.Parallel()
	for ranges, want := range map[int]string{2: complete, 7: "5 matches, on lines that are cut or too many"} {
		file := search.GrepFile{Repo: "r", Path: "a.js", Matches: 1, Ranges: ranges, Lines: []browse.Line{{Number: 1, Text: []byte("x x…")}}}
		got := newGrepping(asked("grep", "repo", "r", "pattern", "x", "groupBy", "match")).text(&search.GrepResponse{Files: []search.GrepFile{file}, Matches: 1, Coverage: whole})
		if !strings.HasPrefix(got, "2 matches in 1 file") || !strings.Contains(got, want) || ranges > 2 && strings.Contains(got, complete) {
			t.Errorf("%d matches: %q, want %q", ranges, got, want)
		}
	}
}

// Files come by rank, and those of a repository below one heading; what has no room
// is left to the call for the rest, each file once.
func TestGrepAnswer_namesEachRepositoryOnce(t *testing.T) {
	t.Parallel()
	r := &search.GrepResponse{Coverage: whole}
	for i := range 60 {
		r.Files = append(r.Files, search.GrepFile{Repo: string(rune('x' + i%3)), Path: fmt.Sprintf("f%02d.go", i), Matches: 1, Lines: []browse.Line{{Number: 1, Text: []byte(strings.Repeat("w", 150))}}})
		r.Matches++
	}

	a := asked("grep", "pattern", "w", "limit", 100)
	a.values["maxTokens"] = 500
	got := newGrepping(a).text(r)
	for _, repo := range []string{"[x]\n", "[y]\n", "[z]\n"} {
		if n := strings.Count(got, repo); n != 1 {
			t.Errorf("%q stands %d times in\n%s", repo, n, got)
		}
	}

	// The first files by rank, and no others.
	shown := strings.Count(got, ".go\n")
	for i := range r.Files {
		if strings.Contains(got, r.Files[i].Path) != (i < shown) {
			t.Errorf("%d files are shown; %s among them: %v", shown, r.Files[i].Path, i >= shown)
		}
	}
	if next := fmt.Sprintf(`"offset":%d}`, shown); !strings.Contains(got, next) {
		t.Errorf("no %s in\n%s", next, got)
	}
}
