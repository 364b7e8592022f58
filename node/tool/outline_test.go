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
	f.Symbols = append(f.Symbols, browse.OutlineSymbol{Name: "Pool", Kind: "struct", First: 1995, Last: 1999}, browse.OutlineSymbol{Name: "size", Kind: "member", First: 1996, Last: 1996})
	for i := range 100 {
		f.Symbols = append(f.Symbols, browse.OutlineSymbol{Name: fmt.Sprint("Err", i), Kind: "variable", First: 2000 + i, Last: 2000 + i})
	}
	for i, name := range []string{"Get", "Put"} {
		f.Symbols = append(f.Symbols, browse.OutlineSymbol{Name: name, Kind: "method", ParentName: "Pool", ParentKind: "struct", First: 2200 + 10*i, Last: 2205 + 10*i})
	}
	r := &browse.OutlineResponse{Commit: "0123456789abcdef", Files: []browse.OutlineFile{f}}

	a := asked("outline", "repo", "r", "path", "a.go")
	a.values["depth"] = 2
	text := outlineText(a, r)
	for _, want := range []string{"9000 lines, 303 symbols", "1995-1999 struct Pool\n", " Call198", "2000-2099 variable: 100, Err0 to Err99\n", "2200-2205 method Pool.Get, 2210-2215 .Put\n", "Without parameters and fields"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "ctx") || strings.Contains(text, "1996 ") || len(text) > 7000 {
		t.Errorf("%d bytes:\n%s", len(text), text)
	}

	// What is asked for alone has room.
	a.set("kinds", []string{"variable"})
	if text := outlineText(a, r); strings.Contains(text, "Without parameters") || !strings.Contains(text, ", 100 symbols") || !strings.Contains(text, "2000 variable Err0, 2001 Err1,") {
		t.Errorf("one kind:\n%s", text)
	}
}

// TestTheLastChangeOfLinesTellsWhy: of many commits only the newest has its body.
func TestTheLastChangeOfLinesTellsWhy(t *testing.T) {
	t.Parallel()
	r := &browse.TraceResponse{}
	for i := range 9 {
		r.Commits = append(r.Commits, browse.CommitInfo{Hash: strings.Repeat(fmt.Sprint(i), 40), Message: fmt.Sprint("change ", i), Body: fmt.Sprintf("reason %d\n", i)})
	}

	text := tracedText(asked("list_commits", "repo", "r", "lines", "a.c:1-9"), r)
	if !strings.Contains(text, "change 0\n    reason 0\n") || strings.Contains(text, "reason 1") {
		t.Errorf("of lines:\n%s", text)
	}
	if text := tracedText(asked("list_commits", "repo", "r", "changes", "x"), r); strings.Contains(text, "reason") {
		t.Errorf("of a text:\n%s", text)
	}
}
