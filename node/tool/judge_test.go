package tool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard"
)

func TestWhatALineDoesWithAName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		lang, line string
		want       use
	}{
		{"C", "\tif (!page) goto oom;", labelled},
		{"C", "oom:", labelled},
		{"C", "  case A: oom(b); break;", called},
		{"C", "void oom(struct pool *p);", declared},
		{"C", "static int oom(int a,", declared},
		{"C", "\treturn oom(a);", called},
		{"C", "return oom(a);", called},
		{"C", "x = oom;", used},
		{"C", "int r = oom(a);", called},
		{"Go", "oom:", used},
		{"Go", "v := oom[int](a)", called},
		{"Go", "defer oom (a)", called},
		{"Rust", "let v = oom::<u8>(a);", called},
	} {
		if got := usagesOf("oom").of(tt.lang, []byte(tt.line)); got != tt.want {
			t.Errorf("%s %q: %d, want %d", tt.lang, tt.line, got, tt.want)
		}
	}
}

// All files count that have a use, also those behind the limit of lines, and who
// has asked for the most is not told to ask for it again.
func TestUsesBeyondTheLimitAreCounted(t *testing.T) {
	t.Parallel()
	r := &search.SymbolResponse{}
	for f := range 5 {
		file := search.SymbolFile{Repository: "example.com/acme/app", Path: fmt.Sprintf("f%d.go", f), Language: "Go"}
		for line := range 300 {
			m := search.SymbolMatch{Line: []byte("oom()"), Around: shard.Symbol{Name: "main"}}
			m.Range.Start.Line = uint32(line + 1)
			file.Matches = append(file.Matches, m)
		}
		r.Files = append(r.Files, file)
	}
	row := references(nil, nil)
	row.Params = append(row.Params, maxTokens)
	for limit, want := range map[int]string{200: `1300 references; continue with find_symbol_references {"symbol":"oom","limit":800}`, 1000: "500 references; narrow with repo, path, include"} {
		a, err := row.decode(json.RawMessage(fmt.Sprintf(`{"symbol":"oom","limit":%d}`, limit)))
		if err != nil {
			t.Fatal(err)
		}
		text := (&lookup{Args: a}).references(r)
		if !strings.HasPrefix(text, "1500 references of oom in 5 files") || !strings.Contains(text, want) || !strings.Contains(text, "1 in main: oom()") {
			t.Errorf("limit %d: %s", limit, text)
		}
	}
}

func TestAKindThatIsNotKnownIsNotShown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		m    search.SymbolMatch
		want string
	}{
		{search.SymbolMatch{Kind: "function", ParentKind: "unknown", ParentName: "db.Shard"}, "method of db.Shard"},
		{search.SymbolMatch{Kind: "variable", ParentKind: "unknown", ParentName: "a"}, "variable in a"},
		{search.SymbolMatch{Kind: "method", ParentKind: "struct", ParentName: "a.T"}, "method in struct a.T"},
		{search.SymbolMatch{Kind: "macro"}, "macro"},
	} {
		if got := kindText(&tt.m); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.m, got, tt.want)
		}
	}
}

func TestRepositoriesAreComparedByTheirLastParts(t *testing.T) {
	t.Parallel()
	names := []string{"local/repo", "local/git-history", "github.com/weaviate/weaviate", "github.com/torvalds/linux", "github.com/rqlite/rqlite"}
	for text, want := range map[string]string{
		"wevaiate": "github.com/weaviate/weaviate", "torvalds/linx": "github.com/torvalds/linux", "sqlite": "github.com/rqlite/rqlite", "nothing": "",
	} {
		near := nearRepos(text, names, 1)
		if want == "" && near != nil || want != "" && (len(near) == 0 || near[0] != want) {
			t.Errorf("%q: %q, want %q", text, near, want)
		}
	}
}

func TestTheInnermostDefinitionIsAroundALine(t *testing.T) {
	t.Parallel()
	f := &browse.OutlineFile{Symbols: []browse.OutlineSymbol{
		{Name: "a", Kind: "package", First: 1, Last: 1}, {Name: "T", Kind: "struct", First: 3, Last: 20, ParentName: "a", ParentKind: "package"},
		{Name: "Get", Kind: "method", First: 5, Last: 9, ParentName: "a.T", ParentKind: "struct"}, {Name: "x", Kind: "variable", First: 6, Last: 6},
	}}
	for line, want := range map[int]string{1: "", 4: "T", 5: "T.Get", 6: "T.Get", 9: "T.Get", 10: "T", 21: ""} {
		if got := enclosing(f, line); got != want {
			t.Errorf("line %d: %q, want %q", line, got, want)
		}
	}
	if got := enclosing(nil, 1); got != "" {
		t.Errorf("without an outline: %q", got)
	}
}

func TestWordsOfAQuery(t *testing.T) {
	t.Parallel()
	if got, want := wordsOf(`fix "data race" in  store`), []string{"fix", "data race", "in", "store"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestThePagesOfAPatchAreAllOfIt(t *testing.T) {
	t.Parallel()
	c := &comparison{Args: asked("get_diff", "repo", "r"), r: diffOf(300, "a", "b", "c")}
	for i := range c.r.Files {
		c.files = append(c.files, diffBlock(&c.r.Files[i]))
	}
	lines := 0
	for _, page := range c.pages(2000) {
		if len(page) > 2100 {
			t.Errorf("a page of %d bytes", len(page))
		}
		for _, l := range []byte(page) {
			if l == '\n' {
				lines++
			}
		}
	}
	if lines < 3*602 {
		t.Errorf("%d lines, want at least %d", lines, 3*602)
	}
}
