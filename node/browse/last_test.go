package browse

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/node/call"
)

// Each entry of a directory has the commit that last changed it, and each commit is listed once.
func TestLastCommits_areThoseOfEachDirectoryEntry(t *testing.T) {
	t.Parallel()
	s := testSite(t)
	for path, want := range map[string]string{
		"":           "src Change Bob, README.md Begin Ann",
		"src":        "server Change Bob, util.go Change Bob",
		"src/server": "main.go Change Bob",
	} {
		r, err := ask(t, s, lastCommitsOperation, LastCommitsRequest{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		named := map[string]bool{}
		for _, e := range r.Entries {
			c := r.Commits[e.Hash]
			got, named[e.Hash] = append(got, strings.Join([]string{e.Name, c.Message, c.AuthorName}, " ")), true
			if e.From != "" || c.Hash != e.Hash || c.Date.IsZero() {
				t.Errorf("%q: %+v is of %+v", path, e, c)
			}
		}
		if s := strings.Join(got, ", "); s != want || r.Cut || len(r.Commit) != 40 || len(named) != len(r.Commits) {
			t.Errorf("%q: %s of %d commits, want %s", path, s, len(r.Commits), want)
		}
	}

	r, err := ask(t, s, lastCommitsOperation, LastCommitsRequest{Ref: "main~1", Path: "src"})
	if err != nil || len(r.Entries) != 1 || r.Commits[r.Entries[0].Hash].Message != "Begin" {
		t.Errorf("before: %+v, %v", r, err)
	}
	for _, req := range []LastCommitsRequest{{Path: "none"}, {Path: "README.md"}, {Path: "../x"}} {
		if _, err := ask(t, s, lastCommitsOperation, req); !errors.Is(err, call.ErrFileNotFound) {
			t.Errorf("%+v: %v", req, err)
		}
	}
	if _, err := ask(t, s, lastCommitsOperation, LastCommitsRequest{Ref: "mian"}); !errors.Is(err, call.ErrRef) {
		t.Errorf("a ref that is not there: %v", err)
	}
}

func TestCutText_endsAtACharacter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "",
		"0123456789":               "0123456789",
		"0123456789x":              "0123456…",
		"012345 789x":              "012345…",
		"012345äöü":                "012345…",
		"\xff\xff\xff\xff345678":   "\xff\xff\xff\xff345678",
		strings.Repeat("\x80", 11): strings.Repeat("\x80", 3) + "…",
	} {
		if got := Beginning(text, 10); got != want || len(got) > 10 || utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("%q begins with %q, want %q", text, got, want)
		}
	}
}
