package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/shoalsearch/shoal"

// rows are the layers of the import graph, the lowest first. A package only imports packages of
// lower rows. docs/explanation/architecture.md has the same picture.
var rows = [][]string{
	{"clock", "version", "docs", "glob", "glob/globtest", "api/reply", "cluster/catalog/codec", "cluster/catalog/tree", "cluster/disk", "cluster/gauge", "cluster/origin", "shard/manifest", "node/coverage", "node/heap", "node/host/giteatest", "node/host/hosttest", "node/lru", "node/mail", "node/paste", "node/seal", "node/trace"},
	{"cluster/config", "cluster/wire", "cluster/gossip", "trigram", "shard/query", "shard/git/pack", "shard/git/pack/packtest", "shard/match", "shard/lz", "shard/symbol", "shard/file", "shard/lex", "shard/charset", "node/place"},
	{"shard/git/run"},
	{"cluster/catalog", "shard/symbols", "shard/git", "node/environ", "node/model"},
	{"cluster", "node/host", "shard"},
	{"node/call", "shard/change"},
	{"node/account", "node/paths", "cluster/clustertest", "node/model/modeltest"},
	{"node/browse", "node/chronicle", "node/configure", "node/history", "node/hold", "node/oauth", "node/signin", "node/thread"},
	{"node/search", "node/job"},
	{"node/symbols", "node/watch"},
	{"node/suggest"},
	{"node/tool", "node/operate"},
	{"node/ask"},
	{"node", "api/layout", "api/web/markdown"},
	{"api/auth", "api/mcp", "api/people", "api/settings", "api/web", "node/nodetest"},
	{"api"},
	{"bench", "cmd/shoal"},
	{"cmd/shoal-bench"},
}

// only lists libraries that few packages may import (tests aside), with the reason.
var only = []struct {
	library string
	in      []string
	why     string
}{
	{"github.com/valyala/fasthttp", []string{"api", "cluster/wire"}, "its request objects are reused after a handler returns: they end at the door"},
	{"github.com/go-json-experiment/json", []string{"api", "api/reply"}, "one set of options says how answers are written and read"},
	{"github.com/modelcontextprotocol/go-sdk", []string{"api/mcp", "cmd/shoal"}, "tools are rows of node/tool; the protocol is one package's business"},
	{"github.com/hashicorp/raft", []string{"cluster"}, "the catalog is a pure value; only cluster knows how it is agreed"},
	{"github.com/hashicorp/memberlist", []string{"cluster/gossip"}, "gossip tells who is alive and decides nothing"},
	{"github.com/openai/openai-go", []string{"node/model"}, "models are called in one place, which gives the libraries no secret"},
	{"github.com/anthropics/anthropic-sdk-go", []string{"node/model"}, "as above"},
	{"google.golang.org/genai", []string{"node/model"}, "as above"},
	{"github.com/aws/aws-sdk-go-v2", []string{"node/model", "node/model/modeltest"}, "as above"},
	{"github.com/coreos/go-oidc", []string{"node/signin"}, "who somebody is at a provider is found out in one place"},
	{"golang.org/x/oauth2", []string{"node/signin", "node/environ"}, "people sign in at a provider, and a node at Google, each in one place"},
	{"github.com/yuin/goldmark", []string{"api/web/markdown"}, "what a document says is hostile: one package draws it, and nothing passes it by"},
	{"github.com/microcosm-cc/bluemonday", []string{"api/web/markdown"}, "as above"},
	{"github.com/wneessen/go-mail", []string{"node/mail"}, "the password of a mail server is read in one place"},
	{"go.opentelemetry.io/otel", []string{"node/trace"}, "traces have no words of a query: one package sees to that"},
	{"os/exec", []string{"shard/git/run", "shard/symbol", "node/nodetest", "node/host/giteatest", "node/host/hosttest", "bench", "cmd/shoal"}, "processes have limits on time and output, kept in one place for each program"},
	{"testing", []string{"node/nodetest", "node/host/giteatest", "node/host/hosttest", "cluster/clustertest", "node/model/modeltest"}, "no behaviour of the product depends on being tested"},
}

const (
	maxFunction = 80  // lines
	maxFile     = 600 // lines
)

// pkg is the part of `go list`'s output that these tests use.
type pkg struct {
	ImportPath string
	Dir        string
	Imports    []string
}

func (p pkg) name() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,Imports", module+"/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestPackages_importOnlyLowerLayers(t *testing.T) {
	t.Parallel()
	row := map[string]int{}
	for i, names := range rows {
		for _, name := range names {
			row[name] = i
		}
	}
	for _, p := range packages(t) {
		from, ok := row[p.name()]
		if !ok {
			if !onlyTests(p) {
				t.Errorf("%s stands in no row: add it to rows here and to the picture in README", p.name())
			}
			continue
		}
		for _, imp := range p.Imports {
			to := strings.TrimPrefix(imp, module+"/")
			if to == imp {
				continue
			}
			if row[to] >= from {
				t.Errorf("%s (row %d) imports %s (row %d): imports go strictly down", p.name(), from, to, row[to])
			}
			if strings.HasPrefix(p.name(), "shard") && strings.HasPrefix(to, "cluster") || strings.HasPrefix(p.name(), "cluster") && strings.HasPrefix(to, "shard") {
				t.Errorf("%s imports %s: the shard side and the cluster side are strangers; only node knows both", p.name(), to)
			}
			if to == "bench" && p.name() != "cmd/shoal-bench" {
				t.Errorf("%s imports bench: operators do not carry what measures", p.name())
			}
		}
	}
}

// onlyTests reports whether a package consists of tests.
func onlyTests(p pkg) bool {
	files, _ := filepath.Glob(filepath.Join(p.Dir, "*.go"))
	for _, f := range files {
		if !strings.HasSuffix(f, "_test.go") && filepath.Base(f) != "doc.go" {
			return false
		}
	}
	return true
}

// The page about the architecture has the same rows, without packages that only tests import.
func TestArchitecturePage_hasTheLayersOfTheCode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "explanation", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, picture, _ := strings.Cut(string(page), "Packages, in rows")
	picture, _, _ = strings.Cut(picture, "DESIGN.md")
	drawn := strings.FieldsFunc(picture, func(r rune) bool { return r == ' ' || r == '\n' || r == ',' })
	for _, row := range rows {
		for _, name := range row {
			if !strings.HasSuffix(name, "modeltest") && !strings.HasSuffix(name, "packtest") && !slices.Contains(drawn, name) {
				t.Errorf("docs/explanation/architecture.md lacks %s", name)
			}
		}
	}
}

func TestLibraries_areImportedOnlyByTheirPackages(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			for _, rule := range only {
				if imp != rule.library && !strings.HasPrefix(imp, rule.library+"/") {
					continue
				}
				allowed := false
				for _, in := range rule.in {
					allowed = allowed || p.name() == in
				}
				if !allowed {
					t.Errorf("%s imports %s, which only %s may: %s", p.name(), imp, strings.Join(rule.in, ", "), rule.why)
				}
			}
		}
	}
}

// source is a parsed Go file of the module.
type source struct {
	path string
	set  *token.FileSet
	file *ast.File
}

func (s source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.path, s.set.Position(n.Pos()).Line)
}

// isTest reports whether a file is a test, or only part of a mutation test's build.
func (s source) isTest() bool {
	return strings.HasSuffix(s.path, "_test.go") || strings.HasSuffix(s.path, "_mutant.go")
}

func (s source) lines(n ast.Node) int {
	return s.set.Position(n.End()).Line - s.set.Position(n.Pos()).Line + 1
}

func sources(t *testing.T) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	var all []source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "data" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		all = append(all, source{name, set, file})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestPackages_eachHasOnePackageComment(t *testing.T) {
	t.Parallel()
	documented := map[string]int{}
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		dir := filepath.Dir(s.path)
		documented[dir] += 0
		if s.file.Doc != nil {
			documented[dir]++
		}
	}
	for dir, n := range documented {
		if n != 1 {
			t.Errorf("%s: %d package comments, want one", dir, n)
		}
	}
}

func TestExportedNames_haveComments(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		for _, decl := range s.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) && !obvious(d) {
					t.Errorf("%s: %s has no comment", s.at(d), d.Name.Name)
				}
			case *ast.GenDecl:
				undocumented(t, s, d)
			}
		}
	}
}

func undocumented(t *testing.T, s source, d *ast.GenDecl) {
	t.Helper()
	for _, spec := range d.Specs {
		switch n := spec.(type) {
		case *ast.TypeSpec:
			if n.Name.IsExported() && d.Doc == nil && n.Doc == nil {
				t.Errorf("%s: type %s has no comment", s.at(n), n.Name.Name)
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				if name.IsExported() && d.Doc == nil && n.Doc == nil && n.Comment == nil {
					t.Errorf("%s: %s has no comment", s.at(n), name.Name)
				}
			}
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if index, ok := typ.(*ast.IndexExpr); ok {
		typ = index.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}

// obvious reports whether a method's meaning is given by the language or its library.
func obvious(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return false
	}
	switch d.Name.Name {
	case "String", "Error", "Unwrap", "Is", "Len", "Less", "Swap", "Close", "MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "LogValue":
		return true
	}
	return false
}

func TestFunctionsAndFiles_areShort(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.isTest() || generated(s.file) {
			continue
		}
		if n := s.set.File(s.file.Pos()).LineCount(); n > maxFile {
			t.Errorf("%s: %d lines, at most %d: is it still one concept?", s.path, n, maxFile)
		}
		for _, decl := range s.file.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && s.lines(d) > maxFunction {
				t.Errorf("%s: %s has %d lines, at most %d", s.at(d), d.Name.Name, s.lines(d), maxFunction)
			}
		}
	}
}

func generated(f *ast.File) bool { return ast.IsGenerated(f) }

func TestPackages_haveNoInitNorGlobalState(t *testing.T) {
	t.Parallel()
	all := sources(t)
	vars := packageVars(all)
	for _, s := range all {
		if s.isTest() {
			continue
		}
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: no init: what runs is called by somebody", s.at(f))
			}
			local := localNames(f)
			ast.Inspect(f, func(n ast.Node) bool {
				var targets []ast.Expr
				switch n := n.(type) {
				case *ast.AssignStmt:
					if n.Tok != token.DEFINE {
						targets = n.Lhs
					}
				case *ast.IncDecStmt:
					targets = []ast.Expr{n.X}
				}
				for _, e := range targets {
					if name := root(e); name != "" && name != "_" && vars[filepath.Dir(s.path)][name] && !local[name] {
						t.Errorf("%s: package variable %s is written: state belongs to a value that somebody owns", s.at(n), name)
					}
				}
				return true
			})
		}
	}
}

// packageVars returns the names of package-level variables of each folder.
func packageVars(all []source) map[string]map[string]bool {
	vars := map[string]map[string]bool{}
	for _, s := range all {
		dir := filepath.Dir(s.path)
		if vars[dir] == nil {
			vars[dir] = map[string]bool{}
		}
		for _, decl := range s.file.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.VAR {
				continue
			}
			for _, spec := range d.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					vars[dir][name.Name] = true
				}
			}
		}
	}
	return vars
}

// localNames returns the names that a function declares: parameters, results, variables.
func localNames(f *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, id := range n.Names {
				names[id.Name] = true
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				names[id.Name] = true
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					names[root(e)] = true
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				names[root(n.Key)] = true
				names[root(n.Value)] = true
			}
		}
		return true
	})
	return names
}

// root returns the leftmost name of an assignment's target, "" for none.
func root(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func TestTopFolders_eachHaveADESIGN(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	for _, dir := range []string{"node", "cluster", "shard", "trigram", "api", "bench", "cmd", "clock", "glob"} {
		if _, err := os.Stat(filepath.Join(root, dir, "DESIGN.md")); err != nil {
			t.Errorf("%s has no DESIGN.md: purpose, flow, decisions with the alternative refused", dir)
		}
	}
	allowed := map[string]bool{"node": true, "cluster": true, "shard": true, "trigram": true, "api": true, "cmd": true, "bench": true, "clock": true, "docs": true, "examples": true, "glob": true, "ops": true, "packaging": true, "version": true, "bin": true, "data": true, "dist": true}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !allowed[e.Name()] {
			t.Errorf("top folder %s: the layout has no place for it", e.Name())
		}
	}
}

// clocks are the folders that may read the machine's clock: package clock, programs, and
// measurements.
var clocks = []string{"clock", "cmd", "bench", ".ci"}

func TestTime_comesOnlyFromTheInjectedClock(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		in := func(dir string) bool { return strings.HasPrefix(s.path, dir+string(filepath.Separator)) }
		if s.isTest() || slices.ContainsFunc(clocks, in) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == "time" && slices.Contains([]string{"Now", "Since", "Until"}, sel.Sel.Name) {
				t.Errorf("%s: time.%s: ask package clock, or the clock that the part was given", s.at(sel), sel.Sel.Name)
			}
			return true
		})
	}
}
