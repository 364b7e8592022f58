package tool

import (
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/search"
)

// Lines around a match have no indentation in common, no empty lines at their ends, and one number.
func TestGrepContext_isShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 500)
	a := asked("grep", "pattern", "hit", "repo", "r", "context", 2)
	g := newGrepping(a)
	f := &search.GrepFile{Path: "a.go"}
	for i, text := range []string{"", "\tfunc f() {", "\t\thit()", "", "\t}", "gap", "", "\t\t" + long, "\t\thit", "\t\t\t9: hit"} {
		if text != "gap" {
			around := !strings.Contains(text, "hit")
			f.Lines = append(f.Lines, browse.Line{Number: 10 + i, Text: []byte(text), Around: around})
		}
	}
	want := "11- func f() {\n12: \thit()\n\n }\n--\n17- " + long[:160] + "…\n18: hit\n19: \t9: hit\n"
	for range 2 { // blocks are made twice
		if got := strings.Join(g.fileLines(f, nil), ""); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
