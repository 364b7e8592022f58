package tool

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard"
)

// Where a method is defined stands above its uses.
func TestFindReferences_showsTheDefinitionFirst(t *testing.T) {
	t.Parallel()
	use := func(path, text string, outside bool) symbols.SymbolFile {
		m := symbols.SymbolMatch{Line: []byte(text), OutsideCode: outside, Around: shard.Symbol{Name: "run"}}
		m.Range.Start.Line = 7
		return symbols.SymbolFile{Repository: "example.com/acme/app", Path: path, Language: "Go", Matches: []symbols.SymbolMatch{m}}
	}
	r := &symbols.SymbolResponse{Coverage: whole, Files: []symbols.SymbolFile{
		use("a.go", "boltStore.Close()", false),
		use("b.go", "f.Close()", false),
		use("c.go", "mainStore.Close()", false),
		use("d.go", "s.Close()", false),
		use("e.go", "// store.Close", true),
	}}

	defined := use("store.go", "func (s *Store) Close() error {", false)
	defined.Matches[0].Kind, defined.Matches[0].ParentKind, defined.Matches[0].ParentName = "method", "struct", "store.Store"
	many := &symbols.SymbolResponse{Coverage: whole, MatchCount: 7}
	for range 7 {
		many.Files = append(many.Files, defined)
	}

	row := references(nil, nil)
	row.Params = append(row.Params, maxTokens)
	a, err := row.decode(json.RawMessage(`{"symbol":"Store.Close","repo":"example.com/acme/app"}`))
	if err != nil {
		t.Fatal(err)
	}
	line := "Defined at store.go:7 [method in struct store.Store]: func (s *Store) Close() error {\n"
	want := strings.Repeat(line, mostOwned) + `Defined at 2 more places: see find_symbol_definitions
4 references of Close in 4 files (1 in comments and prose not shown); Close of any type: the receiver is not resolved
a.go
7 in run: boltStore.Close()
b.go
7 in run: f.Close()
c.go
7 in run: mainStore.Close()
d.go
7 in run: s.Close()
Complete.`
	if got := (&lookup{Args: a}).references(r, &owner{name: "Store", defined: many}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
