package symbols

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/lex"
)

func TestUses_inCommentsAndLiteralsAreNoCode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		lang, text string // the name is NAME
		want       bool
	}{
		{"Go", `	NAME(x)`, false},
		{"Go", `	// calls NAME`, true},
		{"Go", `	x() // calls NAME`, true},
		{"Go", `	s := "NAME"`, true},
		{"Go", `	s := "a\"b" + NAME`, false},
		{"Go", "	s := `//` + NAME", false},
		{"Go", `	u := "https://x" + NAME()`, false},
		{"C", "/*\n * NAME is", true},
		{"C", "/*\nNAME(x);", true},
		{"C", "/* x */\n* NAME = 1;", false},
		{"C", `*NAME = 1;`, false},
		{"Python", "def f():\n    \"\"\"Calls\n    NAME(x)", true},
		{"Python", "x = \"\"\"a\n\"\"\"\nNAME(x)", false},
		{"Go", "s := `\nNAME(x)", true},
		{"HTML", "<!--\n<a href=NAME>", true},
		{"Lua", "--[[\nNAME()", true},
		{"Ruby", "=begin\nNAME\n=end\n", true},
		{"Ruby", "=begin\n=end\nNAME\n", false},
		{"C", `/* a */ NAME(); /* b */`, false},
		{"C", `/* NAME */ x();`, true},
		{"C", `if (c == '"') NAME();`, false},
		{"C", `if (c == '\'') NAME("x");`, false},
		{"C", `#define NAME 1`, false},
		{"Rust", `fn f<'a>(x: &'a NAME) {}`, false},
		{"Python", `x = 'it' # NAME`, true},
		{"Python", `x = 'NAME'`, true},
		{"Python", `NAME("#")`, false},
		{"TypeScript", "`a ${NAME} b`", false},
		{"TypeScript", "`a ${x} NAME`", true},
		{"Shell", `echo ${#NAME}`, false},
		{"Shell", `run # NAME`, true},
		{"SQL", `select 1 -- NAME`, true},
		{"Unix Assembly", `#define NAME 1`, false},
		{"Markdown", `call NAME`, true},
		{"Brainfuck", `// NAME`, false},
	} {
		at := strings.Index(tt.text, "NAME")
		start := strings.LastIndex(tt.text[:at], "\n") + 1
		line, _, _ := strings.Cut(tt.text[start:], "\n")
		open := lex.For(tt.lang).After([]byte(tt.text[:start]), 0)
		if got := OutsideCode(tt.lang, []byte(line), open, at-start); got != tt.want {
			t.Errorf("%s %q: %v", tt.lang, tt.text, got)
		}
	}
}

func TestReferences_leaveOutDefinitionsAndPutCodeFirst(t *testing.T) {
	t.Parallel()
	// A line of a file: its number, text and the kind of what it defines.
	file := func(repo uint32, path, lang string, lines ...string) search.File {
		f := search.File{RepoID: repo, Path: path, Language: lang}
		for i, l := range lines {
			kind, text, _ := strings.Cut(l, "|")
			at := uint32(strings.Index(text, "run"))
			start := shard.Position{Line: uint32(i + 1), Offset: at}
			c := shard.Chunk{Content: []byte(text), Start: shard.Position{Line: uint32(i + 1)}, Ranges: []shard.Range{{Start: start, End: start}}}
			if kind != "" {
				c.Symbols = []shard.Symbol{{Name: "run", Kind: kind, ParentName: "Server", ParentKind: "class"}}
			}
			f.Chunks = append(f.Chunks, c)
		}
		return f
	}
	answer := &search.Response{Coverage: coverage.Of(coverage.Parts, 1, 1), Repositories: []browse.RepoInfo{{ID: 1}, {ID: 2}}, Files: []search.File{
		file(1, "doc.go", "Go", `|// run runs`),
		file(1, "main.go", "Go", `|// see run`, `function|func run() {}`, `|run()`),
		file(2, "def.go", "Go", `function|func run() {}`),
	}}
	for _, include := range []bool{false, true} {
		out := symbolResponse(answer, &SymbolRequest{})
		arrangeReferences(out, SymbolRequest{IncludeDefinitions: include})
		var got []string
		for _, f := range out.Files {
			for _, m := range f.Matches {
				got = append(got, fmt.Sprintf("%s:%d%s", f.Path, m.Range.Start.Line, m.ParentName))
			}
		}
		want := "main.go:3 main.go:1 doc.go:1"
		if include {
			want = "main.go:2Server main.go:3 main.go:1 def.go:1Server doc.go:1"
		}
		if s := strings.Join(got, " "); s != want || out.MatchCount != len(got) || len(out.Repositories) != map[bool]int{false: 1, true: 2}[include] {
			t.Errorf("include %v: %s (%d), want %s", include, s, out.MatchCount, want)
		}
	}
}
