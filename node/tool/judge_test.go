package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard"
)

func TestLineUse_tellsCallDefinitionAndOtherUses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		lang, line string
		want       string
	}{
		{"C", "\tif (!page) goto oom;", "label"},
		{"C", "oom:", "label"},
		{"C", "  case A: oom(b); break;", "call"},
		{"C", "void oom(struct pool *p);", "prototype"},
		{"C", "static int oom(int a,", "prototype"},
		{"C", "\treturn oom(a);", "call"},
		{"C", "return oom(a);", "call"},
		{"C", "x = oom;", "use"},
		{"C", "int r = oom(a);", "call"},
		{"Go", "oom:", "use"},
		{"Go", "v := oom[int](a)", "call"},
		{"Go", "defer oom (a)", "call"},
		{"Rust", "let v = oom::<u8>(a);", "call"},
	} {
		u, line, got := usagesOf("oom"), []byte(tt.line), "use"
		switch {
		case u.labels(tt.lang, line):
			got = "label"
		case u.declares(tt.lang, line):
			got = "prototype"
		default:
			if called, _ := calls(tt.lang, "oom", line); called {
				got = "call"
			}
		}
		if got != tt.want {
			t.Errorf("%s %q: %s, want %s", tt.lang, tt.line, got, tt.want)
		}
	}
}

// All files count that have a use, also those behind the limit of lines, and who
// has asked for the most is not told to ask for it again.
func TestFindReferences_countsFilesBeyondTheLimit(t *testing.T) {
	t.Parallel()
	r := &symbols.SymbolResponse{Coverage: whole}
	for f := range 5 {
		file := symbols.SymbolFile{Repository: "example.com/acme/app", Path: fmt.Sprintf("f%d.go", f), Language: "Go"}
		for line := range 300 {
			m := symbols.SymbolMatch{Line: []byte("oom()"), Around: shard.Symbol{Name: "main"}}
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
		text := (&lookup{Args: a}).references(r, nil)
		if !strings.HasPrefix(text, "1500 references of oom in 5 files") || !strings.Contains(text, want) || !strings.Contains(text, "1 in main: oom()") {
			t.Errorf("limit %d: %s", limit, text)
		}
	}
}

func TestSymbolKind_unknownOneIsNotShown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		m    symbols.SymbolMatch
		want string
	}{
		{symbols.SymbolMatch{Kind: "function", ParentKind: "unknown", ParentName: "db.Shard"}, "method of db.Shard"},
		{symbols.SymbolMatch{Kind: "variable", ParentKind: "unknown", ParentName: "a"}, "variable in a"},
		{symbols.SymbolMatch{Kind: "method", ParentKind: "struct", ParentName: "a.T"}, "method in struct a.T"},
		{symbols.SymbolMatch{Kind: "macro"}, "macro"},
	} {
		if got := kindText(&tt.m); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.m, got, tt.want)
		}
	}
}

func TestRepositoryNames_areOrderedByTheirLastParts(t *testing.T) {
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

func TestEnclosingDefinition_isTheInnermostAroundALine(t *testing.T) {
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

func TestQueryWords_areTakenFromTheText(t *testing.T) {
	t.Parallel()
	if got, want := wordsOf(`fix "data race" in  store`), []string{"fix", "data race", "in", "store"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPatchPages_togetherHaveTheWholePatch(t *testing.T) {
	t.Parallel()
	c := &comparison{Args: asked("get_diff", "repo", "r"), r: diffOf(300, "a", "b", "c")}
	for i := range c.r.Files {
		c.files = append(c.files, diffBlock(&c.r.Files[i]))
	}
	lines := 0
	for i, page := range c.pages(2000, 500) {
		if len(page) > 2100 || i == 0 && len(page) > 1600 {
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

func TestReceiverName_isMatchedToItsType(t *testing.T) {
	t.Parallel()
	for variable, like := range map[string]bool{
		"s": true, "str": true, "s0": true, "store": true, "Store": true, "myStore": true, "NewStore": true,
		"rootStr": true, "root_str": true, "fStr": true, "fS": false,
		"f": false, "resp": false, "body": false, "src": false, "": false, "0": false,
	} {
		if got := namedLike(variable, "Store"); got != like {
			t.Errorf("%q: %v, want %v", variable, got, like)
		}
	}

	// Each word of a type may give the name.
	for variable, like := range map[string]bool{
		"ctx": true, "c": true, "actx": true, "app": true, "appContext": true, "x": false, "queue": false,
	} {
		for _, typ := range []string{"AppContext", "app_context", "APPContext"} {
			if got := namedLike(variable, typ); got != like {
				t.Errorf("%q of %s: %v, want %v", variable, typ, got, like)
			}
		}
	}
}

// Who calls Store.Close is told by the lines with a receiver that may be a
// Store; of the others only where they are.
func TestFindReferences_otherReceiversAreShownByLineNumber(t *testing.T) {
	t.Parallel()
	file := symbols.SymbolFile{Repository: "example.com/acme/app", Path: "f.go", Language: "Go"}
	add := func(text string, around shard.Symbol) {
		m := symbols.SymbolMatch{Line: []byte(text), Around: around}
		m.Range.Start.Line = uint32(len(file.Matches) + 1)
		file.Matches = append(file.Matches, m)
	}
	run := shard.Symbol{Name: "run"}
	add("defer str.Close()", run)
	add("self.Close()", shard.Symbol{Name: "drop", ParentName: "app.Store", ParentKind: "class"})
	add("self.Close()", shard.Symbol{Name: "drop", ParentName: "app.File", ParentKind: "class"})
	add("open(a, b).Close()", run)
	for range fewOthers {
		add("f.Close() // and some text that costs much to read", run)
	}

	row := references(nil, nil)
	row.Params = append(row.Params, maxTokens)
	for symbol, want := range map[string]string{
		"Store.Close": "14 references of Close in 1 file; Close of any type: the receiver is not resolved, those named like Store come first\n" +
			"f.go\n1 in run: defer str.Close()\n2 in Store.drop: self.Close()\n" +
			"Receivers of other names, by line:\nf.go: 3 self, 4 open, 5 f, 6 f, 7 f, 8 f, 9 f, 10 f, 11 f, 12 f, 13 f, 14 f\n" + complete,
		"Close":       "some text that costs",
		"Cache.Close": "some text that costs", // no receiver is named like it
	} {
		a, err := row.decode(json.RawMessage(fmt.Sprintf(`{"symbol":%q,"repo":"example.com/acme/app"}`, symbol)))
		if err != nil {
			t.Fatal(err)
		}
		r := &symbols.SymbolResponse{Coverage: whole, Files: []symbols.SymbolFile{file}}
		if got := (&lookup{Args: a}).references(r, ownerOf(symbol)); !strings.Contains(got, want) {
			t.Errorf("%s: %s", symbol, got)
		}
	}
}

// A function of Go is used by the name of its package, or without one in its own directory.
func TestFindReferences_aFunctionOfGoIsUsedByTheNameOfItsPackage(t *testing.T) {
	t.Parallel()
	use := func(path, text string) *symbols.SymbolFile {
		return &symbols.SymbolFile{Repository: "example.com/acme/app", Path: path, Language: "Go", Matches: []symbols.SymbolMatch{{Line: []byte(text)}}}
	}
	function := definedPlace{repo: "example.com/acme/app", path: "db/wal/open.go", lang: "Go", parent: "wal", parentKind: "package"}
	root := definedPlace{repo: "example.com/acme/app", path: "app.go", lang: "Go", parent: "app", parentKind: "package"}
	method := definedPlace{repo: "example.com/acme/app", path: "db/wal/log.go", lang: "Go", parent: "wal.Log", parentKind: "struct"}
	for _, row := range []struct {
		defined    []definedPlace
		owner      string
		path, text string
		fits       bool
	}{
		{[]definedPlace{function}, "wal", "cmd/main.go", "w := wal.Open(path)", true},
		{[]definedPlace{function}, "wal", "db/wal/open_test.go", "w := Open(path)", true},
		{[]definedPlace{function}, "wal", "db/wal/writer.go", "return Open(w.path)", true},
		{[]definedPlace{function}, "wal", "cmd/main.go", "w := Open(path)", false},
		{[]definedPlace{function}, "wal", "cmd/main.go", "w := gzip.Open(path)", false},
		{[]definedPlace{function}, "wal", "cmd/main.go", "w := w.Open(path)", false},
		{[]definedPlace{root}, "app", "cmd/main.go", "app.Open(path)", true},
		{[]definedPlace{root}, "app", "app_test.go", "Open(path)", true},
		{[]definedPlace{root}, "app", "cmd/main.go", "Open(path)", false},
		{[]definedPlace{method}, "Log", "cmd/main.go", "walLog.Open(path)", true},
		{[]definedPlace{function, method}, "wal", "cmd/main.go", "w.Open(path)", true}, // which of the two is not known
	} {
		references := references(nil, nil)
		a, err := references.decode(json.RawMessage(`{"symbol":"Open"}`))
		if err != nil {
			t.Fatal(err)
		}
		f := use(row.path, row.text)
		by := (&lookup{Args: a}).receivers(&owner{name: row.owner, packages: packagesOf(row.defined)})
		if got := by.fits(f, &f.Matches[0]); got != row.fits {
			t.Errorf("%s of %+v in %s: %v", row.text, row.defined, row.path, got)
		}
	}
}

// What lacks letters, or joins its words in another way, is found by the letters
// that it has.
func TestLetterGlob_findsNamesThatLackLetters(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"oomkill.c": "*[oO]*[oO]*[mM]*[kK]*[iI]*[lL]*[lL]*[cC]*", "v2-a": "*[vV]*2*[aA]*", "§[]{}*?": "*",
	} {
		if got := lettersGlob(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A name with as many wrong letters as are allowed matches the glob by which
// such names are looked for.
func TestSimilarGlob_findsNamesWithWrongLetters(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a": "*{a}*", "main.go": "*{ma,in,.go}*", "keyrng.go": "*{k,ey,rn,g.,go}*",
	} {
		if got := nearGlob(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestMissingWords_areThoseThatNoFileHas(t *testing.T) {
	t.Parallel()
	r := &search.RankedResponse{Coverage: whole, Files: make([]search.RankedFile, 2), Whole: 2, Missing: []string{"zebra", "not a terminal"}}
	head := rankedHead(r) + "; no file has " + quotedWords(r.Missing)
	if want := `2 files with all other words, best first; no file has zebra, "not a terminal"`; head != want {
		t.Errorf("%s, want %s", head, want)
	}
}

// ownerOf is the type that a symbol is asked for with, which nothing defines; nil for
// none.
func ownerOf(symbol string) *owner {
	scope, _ := symbols.Qualified(symbol)
	if scope == "" {
		return nil
	}
	return &owner{name: scope, defined: &symbols.SymbolResponse{Coverage: whole}}
}

// Where receivers of other names are many, their names tell enough, and the call
// that shows their lines is named.
func TestFindReferences_manyOtherReceiversAreCounted(t *testing.T) {
	t.Parallel()
	file := symbols.SymbolFile{Repository: "example.com/acme/app", Path: "f.go", Language: "Go"}
	for i := range mostByLine + 5 {
		text := "conn.Close()"
		switch {
		case i == 0:
			text = "store.Close()"
		case i < 4:
			text = "f.Close()"
		}
		m := symbols.SymbolMatch{Line: []byte(text), Around: shard.Symbol{Name: "run"}}
		m.Range.Start.Line = uint32(i + 1)
		file.Matches = append(file.Matches, m)
	}

	row := references(nil, nil)
	row.Params = append(row.Params, maxTokens)
	a, err := row.decode(json.RawMessage(`{"symbol":"Store.Close","calls":true,"repo":"example.com/acme/app"}`))
	if err != nil {
		t.Fatal(err)
	}
	got := (&lookup{Args: a}).references(&symbols.SymbolResponse{Coverage: whole, Files: []symbols.SymbolFile{file}}, ownerOf("Store.Close"))
	want := `65 calls of Close in 1 file; Close of any type: the receiver is not resolved, those named like Store come first
f.go
1 in run: store.Close()
Receivers of other names, how often in 1 file: conn 61, f 3
Left out: lines of 64 calls by receivers of other names; continue with find_symbol_references {"symbol":"Close","repo":"example.com/acme/app","calls":true}.`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// naming is a searcher of names that are each defined once.
type naming struct {
	symbols.Searcher
	asked []string
}

// Definitions implements Searcher.
func (n *naming) Definitions(_ context.Context, _ catalog.Viewer, req symbols.SymbolRequest) (*symbols.SymbolResponse, error) {
	n.asked = append(n.asked, req.Symbol)
	m := symbols.SymbolMatch{Line: []byte("func " + req.Symbol + "()"), Kind: "function", Name: req.Symbol}
	m.Range.Start.Line = 3
	return &symbols.SymbolResponse{Coverage: whole, Files: []symbols.SymbolFile{{Repository: "example.com/acme/app", Path: "f.go", Language: "Go", Matches: []symbols.SymbolMatch{m}}}, MatchCount: 1}, nil
}

// Several names in one call have an answer each, within the room of the call.
func TestFindSymbols_answersSeveralNamesInOneCall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args  string
		asked string
		want  string // in the answer
	}{
		{`{"symbol":"dbSyncDelete, dbAsyncDelete"}`, "dbSyncDelete dbAsyncDelete", "func dbSyncDelete()\nComplete.\n1 definition of dbAsyncDelete"},
		{`{"symbol":"a,b,a"}`, "a b", "func b()"},
		{`{"symbol":"Store.Close,db::Open"}`, "Store.Close db::Open", "func db::Open()"},
		{`{"symbol":"one"}`, "one", "func one()\nComplete."},
		{`{"symbol":"one,"}`, "one,", "func one,()"},         // no list
		{`{"symbol":"map<K, V>"}`, "map<K, V>", "map<K, V>"}, // one name
		{`{"symbol":"operator()"}`, "operator()", "operator()"},
		{`{"symbol":"a,b,c","maxTokens":1000}`, "a b", `Left out: c; continue with find_symbol_definitions {"symbol":"c","maxTokens":1000}.`},
		{`{"symbol":"a,b,c,d,e,f,g,h,i,j"}`, "a b c d e f g h", `Left out: i, j; continue with find_symbol_definitions {"symbol":"i,j"}.`},
	} {
		n := &naming{}
		row := definitions(n, nil)
		row.Params = append(row.Params, maxTokens)
		a, err := row.decode(json.RawMessage(tt.args))
		if err != nil {
			t.Fatal(err)
		}
		got, err := row.Run(t.Context(), catalog.Operator(), a)
		if err != nil {
			t.Fatal(err)
		}
		if asked := strings.Join(n.asked, " "); asked != tt.asked {
			t.Errorf("%s: asked for %s, want %s", tt.args, asked, tt.asked)
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: want %q in\n%s", tt.args, tt.want, got)
		}
	}
}
