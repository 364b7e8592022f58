package tool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/browse"
)

// TestALongOutlineHasNoParameters: names and lines of a large file are worth more
// than what its functions take, which one of its kinds still tells.
func TestALongOutlineHasNoParameters(t *testing.T) {
	t.Parallel()
	f := browse.OutlineFile{Path: "a.go", Language: "Go", Lines: 9000}
	for i := range 200 {
		f.Symbols = append(f.Symbols, browse.OutlineSymbol{Name: fmt.Sprint("Call", i), Kind: "function", First: i * 10, Last: i*10 + 8, Signature: "(ctx context.Context, req Request)"})
	}
	for i := range 100 {
		f.Symbols = append(f.Symbols, browse.OutlineSymbol{Name: fmt.Sprint("Err", i), Kind: "variable", First: 2000 + i, Last: 2000 + i})
	}
	r := &browse.OutlineResponse{Commit: "0123456789abcdef", Files: []browse.OutlineFile{f}}

	a := asked("outline", "repo", "r", "path", "a.go")
	a.values["depth"] = 2
	text := outlineText(a, r)
	for _, want := range []string{"9000 lines, 300 symbols", " Call198", "2000 variable Err0, 2001 Err1,", "Without parameters"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "ctx") || len(text) > 7000 {
		t.Errorf("%d bytes:\n%s", len(text), text)
	}

	// What is asked for alone has room.
	a.set("kinds", []string{"variable"})
	if text := outlineText(a, r); strings.Contains(text, "Without parameters") || !strings.Contains(text, ", 100 symbols") {
		t.Errorf("one kind:\n%s", text)
	}
}
