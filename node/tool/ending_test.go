package tool

import (
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/search"
)

// Files that are kept by name only are told at length where nothing was found, and
// in a few words where something was.
func TestFilesThatAreKeptByNameOnlyAreTold(t *testing.T) {
	t.Parallel()
	files := []search.UnsearchedFile{
		{Repo: "example.com/acme/app", Path: "docs/large.txt", Why: "larger than the maximum file size"},
		{Repo: "example.com/acme/app", Path: "asic/mask.h", Why: "larger than the maximum file size"},
	}
	for _, tt := range []struct {
		n     int
		found bool
		want  string
	}{
		{1, true, "Not searched: kept by name only: docs/large.txt."},
		{41, true, "Not searched: 41 files kept by name only, as docs/large.txt."},
		{41, false, "Not searched: kept by name only: docs/large.txt (larger than the maximum file size), asic/mask.h (larger than the maximum file size) and 39 more; " +
			`read_file {"repo":"example.com/acme/app","path":"docs/large.txt"} reads it.`},
	} {
		a := asked("grep", "repo", "example.com/acme/app")
		e := end{found: tt.found}
		e.lacks(a, search.Cut{Unsearched: tt.n, UnsearchedFiles: files[:min(tt.n, len(files))]}, "")
		if got := e.String(); !strings.HasSuffix(got, tt.want) {
			t.Errorf("%d, found %v: %s, want %s", tt.n, tt.found, got, tt.want)
		}
	}
}

// An overview by directory has the first of many, and the call for the next.
func TestAnOverviewHasTheLargestGroups(t *testing.T) {
	t.Parallel()
	r := &search.GrepResponse{}
	for i := range 60 {
		dir := string(rune('a'+i/26)) + string(rune('a'+i%26))
		r.Files = append(r.Files, search.GrepFile{Repo: "example.com/acme/app", Path: dir + "/x/f.go", Matches: 100 - i})
		r.Matches += 100 - i
	}
	for group, want := range map[string]string{
		"directory": "aa/x: 100 in 1\n|20 directories with fewer; continue with grep {",
		"file":      "aa/x/f.go: 100\n|Complete.",
	} {
		a := asked("grep", "repo", "example.com/acme/app", "pattern", "x", "mode", "count", "groupBy", group)
		got := newGrepping(a).text(r)
		for part := range strings.SplitSeq(want, "|") {
			if !strings.Contains(got, part) {
				t.Errorf("by %s: %q is not in\n%s", group, part, got)
			}
		}
	}
}
