package tool

import (
	"context"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
)

// linesReader reads lines of one file.
type linesReader struct {
	browse.Reader
	lines []string
}

func (r linesReader) ReadFile(_ context.Context, _ catalog.Viewer, req browse.ReadFileRequest) (*browse.ReadFileResponse, error) {
	return &browse.ReadFileResponse{First: req.Offset, Total: len(r.lines), Lines: [][]byte{[]byte(r.lines[req.Offset-1])}}, nil
}

// A read definition comes with the constants of the file that it uses, if they are few.
func TestReadDefinition_showsTheConstantsThatItUses(t *testing.T) {
	t.Parallel()
	lines := []string{
		"#define MOST 1024",
		"static thread_t pool[4];",
		"static unsigned count;",
		"#define OTHER 7",
		"const char *name = \"x\";",
		"void f() {",
		"  int MOST2 = 3;",
		"  use(MOST, pool, count, name, MOST2);",
		"}",
	}
	var outline []browse.OutlineSymbol
	for i, s := range []struct{ name, kind string }{{"MOST", "macro"}, {"pool", "variable"}, {"count", "variable"}, {"OTHER", "macro"}, {"name", "variable"}, {"f", "function"}, {"MOST2", "variable"}} {
		outline = append(outline, browse.OutlineSymbol{Name: s.name, Kind: s.kind, First: i + 1, Last: i + 1})
	}
	outline[5].Last = 9
	read := func() string {
		r := &reading{Args: asked("read_file", "repo", "r", "path", "a.c", "symbol", "f"), ctx: t.Context(), browse: linesReader{lines: lines}, symbols: outline}
		return r.constants(strings.Join(lines[5:], "\n"), []lineRange{{6, 9}})
	}
	if got, want := read(), "-- uses\n1: #define MOST 1024\n2: static thread_t pool[4];\n5: const char *name = \"x\";\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}

	// Many say nothing.
	for i := range mostConstants {
		name := "MORE" + strings.Repeat("X", i)
		lines = append(lines, "#define "+name+" 1")
		lines[7] += name + ","
		outline = append(outline, browse.OutlineSymbol{Name: name, Kind: "macro", First: len(lines), Last: len(lines)})
	}
	if got := read(); got != "" {
		t.Errorf("%q", got)
	}
}
