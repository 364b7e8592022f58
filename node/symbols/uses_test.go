package symbols

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

func TestRepositoryNearness_dependsOnTheirNames(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int{
		"src/server.c": placeSource, "include/linux/slab.h": placeSource, "src/util/log.c": placeSource, "tools.go": placeSource,
		"docs/x.md":     placeDocs,
		"src/a_test.go": placeTests, "tests/main.c": placeTests, "examples/x/main.go": placeTests, "system_test/helpers.go": placeTests,
		"vendor/x/main.c": placeDeps, "deps/linenoise/example.c": placeDeps, "deps/jemalloc/test/unit/hpa.c": placeDeps,
		"tools/lib/slab.c": placeTools, "utils/lru/lfu-simulation.c": placeTools, "tools/testing/radix-tree/linux.c": placeTools,
		"internal/testutil/main.go": placeTests, "demo/main.go": placeTools,
		"api/api.pb.go": placeGenerated,
	} {
		if got := placeRank(path); got != want {
			t.Errorf("%s: place %d, want %d", path, got, want)
		}
	}
}

// Of programs the one comes first that its repository is named after, then its server,
// before all that helps to make it. Other names keep their order.
func TestDefinitionOrder_theRepositorysOwnProgramComesFirst(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ repo, name, paths, want string }{
		{"github.com/rqlite/rqlite", "main", "cmd/rqbench/main.go cmd/rqlited/main.go tools/rqlite/main.go cmd/rqlite/main.go", "cmd/rqlite/main.go cmd/rqlited/main.go cmd/rqbench/main.go tools/rqlite/main.go"},
		{"github.com/redis/redis", "main", "src/redis-benchmark.c src/redis-cli.c src/server.c deps/linenoise/redis.c", "src/server.c src/redis-benchmark.c src/redis-cli.c deps/linenoise/redis.c"},
		{"github.com/weaviate/weaviate", "main", "cmd/backup/main.go test/helper/main.go examples/weaviate/main.go cmd/weaviate-server/main.go", "cmd/weaviate-server/main.go cmd/backup/main.go examples/weaviate/main.go test/helper/main.go"},
		{"github.com/junegunn/fzf", "main", "src/gen/main.go main.go", "main.go src/gen/main.go"},
		{"github.com/acme/app", "Main", "Lib/Gen/Program.cs App/Program.cs", "App/Program.cs Lib/Gen/Program.cs"},
		{"github.com/acme/tool", "main", "build.rs src/main.rs", "src/main.rs build.rs"},
		{"github.com/acme/app", "run", "lib/x.go tools/run.go app/app.go", "lib/x.go app/app.go tools/run.go"},
	} {
		out := &SymbolResponse{}
		for p := range strings.FieldsSeq(tt.paths) {
			out.Files = append(out.Files, SymbolFile{Repository: tt.repo, Path: p, Matches: []SymbolMatch{{Kind: "function", Name: tt.name}}})
		}

		// No name of which uses would have to be looked for.
		(&Finder{}).arrangeDefinitions(t.Context(), catalog.Operator(), SymbolRequest{Prefix: true}, tt.name, out)
		var got []string
		for _, f := range out.Files {
			got = append(got, f.Path)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s of %s: %s, want %s", tt.name, tt.repo, got, tt.want)
		}
	}
}

// Uses in the product come before those in its tests and in what others wrote, and
// of these the files with the most uses; what is only spoken of comes last.
func TestReferenceOrder_productCodeComesBeforeTestsAndVendoredCode(t *testing.T) {
	t.Parallel()
	use, mention := SymbolMatch{Line: []byte("x()")}, SymbolMatch{Line: []byte("// x"), OutsideCode: true}
	file := func(path string, matches ...SymbolMatch) SymbolFile {
		return SymbolFile{Path: path, Language: "Go", Matches: matches}
	}
	out := &SymbolResponse{Files: []SymbolFile{
		file("tools/gen.go", use), file("a_test.go", use, use, use), file("z.go", mention), file("vendor/d.go", use), file("b.go", mention, use), file("a.go", use, use, use),
	}}
	arrangeReferences(out, SymbolRequest{})

	var got []string
	for _, f := range out.Files {
		got = append(got, f.Path)
	}
	if want := "a.go b.go a_test.go vendor/d.go tools/gen.go z.go"; strings.Join(got, " ") != want {
		t.Errorf("%s, want %s", strings.Join(got, " "), want)
	}
}

// Of definitions that are alike in all else the one comes first that is used more.
func TestDefinitionOrder_theMoreUsedComesFirst(t *testing.T) {
	t.Parallel()
	file := func(path, lang, parent string, lines ...string) SymbolFile {
		f := SymbolFile{Repository: "r", Path: path, Language: lang}
		for _, line := range lines {
			m := SymbolMatch{Line: []byte(line), ParentName: parent, at: strings.Index(line, "Open")}
			m.OutsideCode = OutsideCode(lang, m.Line, 0, m.at)
			f.Matches = append(f.Matches, m)
		}
		return f
	}
	def := func(path, lang, parent, line string) SymbolFile {
		f := file(path, lang, parent, line)
		f.Matches[0].Kind = "function"
		return f
	}
	for what, tt := range map[string]struct {
		defs, uses []SymbolFile
		want       string
	}{
		"in its own file": {
			[]SymbolFile{def("a/a.go", "Go", "a", "func Open() {"), def("a/b.go", "Go", "a", "func (b *B) Open() {")},
			[]SymbolFile{file("a/b.go", "Go", "", "x := Open()", "// Open is no use")}, "0 1",
		},
		"by its package": {
			[]SymbolFile{def("store/open.go", "Go", "store", "func Open() {"), def("cache/open.go", "Go", "cache", "func Open() {")},
			[]SymbolFile{file("cmd/main.go", "Go", "", "cache.Open()", "x.cache.Open()", "store.Open()", "f().Open()")}, "1 2",
		},
		"by its type": {
			[]SymbolFile{def("a.cc", "C++", "db::Shard", "void Shard::Open() {"), def("b.cc", "C++", "db::Index", "void Index::Open() {")},
			[]SymbolFile{file("c.cc", "C++", "", "Shard::Open();", "shard->Open();", "index->Open();")}, "2 1",
		},
		"beside it": {
			[]SymbolFile{def("a/x.py", "Python", "", "def Open():"), def("b/x.py", "Python", "", "def Open():")},
			[]SymbolFile{file("b/y.py", "Python", "", "Open()"), file("c/y.py", "Python", "", "Open()")}, "1 2",
		},
		"where others see it": {
			[]SymbolFile{def("a/x.c", "C", "", "static int Open(void)"), def("b/x.c", "C", "", "int Open(void)")},
			[]SymbolFile{file("c/y.c", "C", "", "Open();"), file("c/y.py", "Python", "", "Open()")}, "0 1",
		},
	} {
		used := countUses(tt.defs, tt.uses)
		if got := fmt.Sprint(used[keyOf(&tt.defs[0])], used[keyOf(&tt.defs[1])]); got != tt.want {
			t.Errorf("%s: %s, want %s", what, got, tt.want)
		}
	}
}
