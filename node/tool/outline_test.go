package tool

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/browse"
)

// TestOutlineTool_ofALargeFileOmitsParameters: names and lines of a large file are worth more
// than what its functions take, which one of its kinds still tells.
func TestOutlineTool_ofALargeFileOmitsParameters(t *testing.T) {
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

// spans makes symbols of a text with a line each: its indent, a kind, a name. One that has
// deeper ones below it ends with them.
func spans(text string) (symbols []browse.OutlineSymbol) {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	indent := func(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
	for i, line := range lines {
		last := i
		for last+1 < len(lines) && indent(lines[last+1]) > indent(line) {
			last++
		}
		kind, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		symbols = append(symbols, browse.OutlineSymbol{Kind: kind, Name: name, First: i + 1, Last: last + 1})
	}
	return symbols
}

// outlinedAs is the answer to a call of outline for these symbols.
func outlinedAs(lang string, symbols []browse.OutlineSymbol, args ...any) string {
	a := asked("outline", append([]any{"repo", "r", "path", "a"}, args...)...)
	if !a.Has("depth") {
		a.values["depth"] = 2
	}
	f := browse.OutlineFile{Path: "a", Language: lang, Lines: 9, Symbols: symbols}
	return outlineText(a, &browse.OutlineResponse{Commit: "0123456789abcdef", Files: []browse.OutlineFile{f}})
}

const nested = `
namespace A
 namespace B
  module C
   class D
    method e
     variable local
     class F
      method g
       method <lambda>
        class H
`

func TestOutlineTool_countsHiddenDefinitions(t *testing.T) {
	t.Parallel()
	symbols := spans(nested)
	for _, tt := range []struct {
		what      string
		args      []any
		want, not string
	}{
		{"namespaces and modules are no level", nil, "5-10 method e", "class F"},
		{"what is deeper is counted", nil, `Left out: 3 symbols below depth 2; outline {"repo":"r","path":"a","depth":3}.`, "Complete"},
		{"with lambdas and locals", nil, `Left out: lambdas and locals, 2; outline {"repo":"r","path":"a","kinds":["variable","method"]}.`, "Complete"},
		{"and shown with more depth", []any{"depth", 3}, "class F\n", "method g"},
		{"up to the last", []any{"depth", 9}, "class H", "below depth"},
		{"kinds are of all levels", []any{"kinds", []string{"class"}}, "9 lines, 3 symbols", "Left out"},
		{"unless a depth is given", []any{"kinds", []string{"class"}, "depth", 1}, "9 lines, 1 symbol\n", "Complete"},
		{"a kind has lambdas and locals", []any{"kinds", []string{"method"}}, "<lambda>", "Left out"},
		{"a package that is asked for is shown", []any{"kinds", []string{"namespace"}}, "9 lines, 2 symbols", "Left out"},
	} {
		got := outlinedAs("C++", symbols, tt.args...)
		if !strings.Contains(got, tt.want) || strings.Contains(got, tt.not) {
			t.Errorf("%s: want %q, not %q in\n%s", tt.what, tt.want, tt.not, got)
		}
	}
}

// TestOutlineTool_depthReachesEveryDefinition adds up what is shown and what is counted in
// trees of random symbols, at each depth.
func TestOutlineTool_depthReachesEveryDefinition(t *testing.T) {
	t.Parallel()
	kinds := []string{"namespace", "class", "method", "field", "variable", "module", "function"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var text strings.Builder
		depth := 0
		for i := range 1 + random.IntN(30) {
			depth = random.IntN(depth + 2)
			fmt.Fprintf(&text, "%s%s name%d\n", strings.Repeat(" ", depth), kinds[random.IntN(len(kinds))], i)
		}
		symbols := spans(text.String())

		shown := 0
		for most := 1; most <= 31; most++ {
			a := asked("outline", "repo", "r", "path", "a", "depth", most)
			var hidden hiddenSymbols
			rows := outlineRows(a, &browse.OutlineFile{Symbols: symbols}, true, &hidden)
			if len(rows)+hidden.deeper+hidden.locals+hidden.values != len(symbols) || len(rows) < shown {
				t.Fatalf("depth %d: %d shown, %+v hidden of %d in\n%s", most, len(rows), hidden, len(symbols), text.String())
			}
			shown = len(rows)
			if most == 31 && hidden.deeper > 0 {
				t.Fatalf("%d below depth %d in\n%s", hidden.deeper, most, text.String())
			}
		}

		a := asked("outline", "repo", "r", "path", "a", "kinds", kinds)
		a.values["depth"] = 2
		if rows := outlineRows(a, &browse.OutlineFile{Symbols: symbols}, true, &hiddenSymbols{}); len(rows) != len(symbols) {
			t.Fatalf("all kinds: %d of %d in\n%s", len(rows), len(symbols), text.String())
		}
	}
}

// TestTraceTool_onlyTheNewestCommitHasItsBody: of many commits only the newest has its body.
func TestTraceTool_onlyTheNewestCommitHasItsBody(t *testing.T) {
	t.Parallel()
	r := &browse.TraceResponse{}
	for i := range 9 {
		r.Commits = append(r.Commits, browse.CommitInfo{Hash: strings.Repeat(fmt.Sprint(i), 40), Message: fmt.Sprint("change ", i), Body: fmt.Sprintf("reason %d\n", i)})
	}

	text := tracedText(asked("list_commits", "repo", "r", "lines", "a.c:1-9"), r, 0, nil)
	if !strings.Contains(text, "change 0\n    reason 0\n") || strings.Contains(text, "reason 1") {
		t.Errorf("of lines:\n%s", text)
	}
	if text := tracedText(asked("list_commits", "repo", "r", "changes", "x"), r, 0, nil); strings.Contains(text, "reason") {
		t.Errorf("of a text:\n%s", text)
	}
}

// A file that ctags failed on is not shown as one that defines nothing.
func TestOutlineTool_saysIfSymbolsAreUnknown(t *testing.T) {
	t.Parallel()
	unknown := browse.OutlineFile{Path: "b.c", Language: "C", Lines: 9, Unknown: true}
	known := browse.OutlineFile{Path: "a.c", Language: "C", Lines: 9, Symbols: []browse.OutlineSymbol{{Name: "f", Kind: "function", First: 1, Last: 2}}}
	for name, files := range map[string][]browse.OutlineFile{"the file": {unknown}, "a file of the directory": {known, unknown}} {
		a := asked("outline", "repo", "r", "path", "a")
		a.values["depth"] = 2
		text := outlineText(a, &browse.OutlineResponse{Commit: "0123456789abcdef", Files: files})
		if strings.Contains(text, complete) || strings.Contains(text, "0 symbols") || !strings.Contains(text, "Not searched: symbols of 1 file, as b.c") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}
