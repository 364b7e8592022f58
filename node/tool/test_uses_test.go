package tool

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard"
)

// TestUsesInTests: many uses in tests are told behind those in the product, by their lines
// or, of more than are read, by their number. Who says which tests are wanted, or asks for
// them by path, has each with its text.
func TestUsesInTests(t *testing.T) {
	t.Parallel()
	uses := func(path string, n int) symbols.SymbolFile {
		f := symbols.SymbolFile{Repository: "r", Path: path, Language: "Go"}
		for i := range n {
			m := symbols.SymbolMatch{Line: []byte("oom()"), Around: shard.Symbol{Name: "run"}}
			m.Range.Start.Line = uint32(i + 1)
			f.Matches = append(f.Matches, m)
		}
		return f
	}
	mention := func(path string) symbols.SymbolFile {
		f := uses(path, 1)
		f.Matches[0].OutsideCode = true
		return f
	}

	twice := func(f symbols.SymbolFile) symbols.SymbolFile {
		var matches []symbols.SymbolMatch
		for _, m := range f.Matches {
			matches = append(matches, m, m)
		}
		f.Matches = matches
		return f
	}

	const one = "1 in run: oom()"
	for _, tt := range []struct {
		name, args string
		files      []symbols.SymbolFile
		want       []string // parts of the answer, in their order
		without    string
	}{
		{"by line", ``, []symbols.SymbolFile{uses("a.go", 1), uses("a_test.go", 3), mention("b_test.go"), uses("c_test.go", 8)},
			[]string{"13 references of oom in 4 files", "a.go\n" + one, "In tests, by line:\na_test.go: 1, 2, 3\nb_test.go: 1~\nc_test.go: 1, 2, 3, 4, 5, 6, 7, 8\nComplete."}, "_test.go\n"},
		{"by number", ``, []symbols.SymbolFile{uses("a.go", 1), uses("a_test.go", 30), uses("b_test.go", 31)},
			[]string{one, "In tests, how often in 2 files: b_test.go 31, a_test.go 30\n", `Left out: lines of 61 references in tests; continue with find_symbol_references {"symbol":"oom","repo":"r","tests":"only"}.`}, "_test.go\n"},
		{"few", ``, []symbols.SymbolFile{uses("a.go", 1), uses("a_test.go", 10)}, []string{one, "a_test.go\n" + one, "10 in run: oom()", "Complete."}, "In tests"},
		{"few lines with two each", ``, []symbols.SymbolFile{uses("a.go", 1), twice(uses("a_test.go", 10))}, []string{"11 references", "a_test.go\n" + one, "10 in run: oom()", "Complete."}, "In tests"},
		{"no others", ``, []symbols.SymbolFile{uses("a_test.go", 11), mention("a.go")}, []string{"a_test.go\n" + one, "11 in run: oom()"}, "In tests"},
		{"wanted", `,"tests":"include"`, []symbols.SymbolFile{uses("a.go", 1), uses("a_test.go", 11)}, []string{one, "a_test.go\n" + one}, "In tests"},
		{"a directory of tests", `,"path":"tests"`, []symbols.SymbolFile{uses("tests/a.go", 1), uses("tests/b.go", 11)}, []string{one, "tests/b.go\n" + one}, "In tests"},
		{"beyond the limit", `,"limit":1`, []symbols.SymbolFile{uses("a.go", 2), uses("a_test.go", 11)}, []string{one, "In tests, by line:\na_test.go: 1, 2", "Left out: 1 reference; continue"}, "2 in run"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			row := references(nil, nil)
			row.Params = append(row.Params, maxTokens)
			a, err := row.decode(json.RawMessage(`{"symbol":"oom","repo":"r"` + tt.args + `}`))
			if err != nil {
				t.Fatal(err)
			}

			text := (&lookup{Args: a}).references(&symbols.SymbolResponse{Coverage: whole, Files: tt.files}, nil)
			rest := text
			for _, want := range tt.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("%q is not there, or not in its place:\n%s", want, text)
				}
				rest = after
			}
			if strings.Contains(text, tt.without) {
				t.Errorf("%q is there:\n%s", tt.without, text)
			}
		})
	}
}

// TestUsesInTestsOfAType: what is told by receivers alone is no reason to take the text from
// those of the type.
func TestUsesInTestsOfAType(t *testing.T) {
	t.Parallel()
	use := func(path, line string, n int) symbols.SymbolFile {
		f := symbols.SymbolFile{Repository: "r", Path: path, Language: "Go"}
		for i := range n {
			m := symbols.SymbolMatch{Line: []byte(line), Around: shard.Symbol{Name: "run"}}
			m.Range.Start.Line = uint32(i + 1)
			f.Matches = append(f.Matches, m)
		}
		return f
	}
	r := &symbols.SymbolResponse{Coverage: whole, Files: []symbols.SymbolFile{use("a.go", "f.Close()", 11), use("store_test.go", "store.Close()", 11)}}
	defined := &symbols.SymbolResponse{Coverage: whole, MatchCount: 1, Files: []symbols.SymbolFile{use("store.go", "func (s *Store) Close() error {", 1)}}
	defined.Files[0].Matches[0].Kind, defined.Files[0].Matches[0].ParentKind, defined.Files[0].Matches[0].ParentName = "method", "struct", "Store"

	row := references(nil, nil)
	row.Params = append(row.Params, maxTokens)
	a, err := row.decode(json.RawMessage(`{"symbol":"Store.Close","repo":"r"}`))
	if err != nil {
		t.Fatal(err)
	}
	text := (&lookup{Args: a}).references(r, newOwner("Store", defined))
	if strings.Contains(text, "In tests") || !strings.Contains(text, "store_test.go\n1 in run: store.Close()") {
		t.Errorf("got\n%s", text)
	}
}
