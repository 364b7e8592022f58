package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// codenavModule is a Go module of its own history and size, fetched like any
// dependency, so that gopls can check its types here.
const codenavModule = "github.com/valyala/fasthttp@v1.77.0"

// place is a line of a file.
type place struct {
	file string
	line int
}

type places map[place]bool

var goFiles = []string{".go"}

// partCodenav compares definitions and references with what universal-ctags
// and gopls say, for 200 names of a Go module.
func partCodenav(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Definitions and references of 200 names a language", Columns: []string{"answer", "against", "lines", "precision", "recall"}}
	if !found("gopls") {
		p.note("not measured: no gopls on PATH (go install golang.org/x/tools/gopls)")
		return p, nil
	}

	tree, err := moduleCopy(ctx, filepath.Join(r.Dir, "codenav"), codenavModule)
	if err != nil {
		return nil, err
	}

	repo, err := r.corpora.repository(ctx, tree, filepath.Join(r.Dir, "codenav.git"))
	if err != nil {
		return nil, err
	}

	// The truth.
	declared, err := declarations(tree)
	if err != nil {
		return nil, err
	}

	tags, err := ctagsPlaces(ctx, tree, "Go", "-pPu")
	if err != nil {
		return nil, err
	}

	g, err := startGopls(ctx, tree)
	if err != nil {
		return nil, err
	}
	defer g.stop()

	s, _, err := r.index(ctx, "codenav", "ctags", 1, map[string]connection{"go": {"type": "git", "url": "file://" + repo}})
	if err != nil {
		return nil, err
	}
	defer s.stop()

	names := slices.Sorted(maps.Keys(declared))
	if err := s.symbolsReady(ctx, symbolsTime, names[0]); err != nil {
		return nil, err
	}

	n := navigation{missed: misses{tree: tree}}
	for i := 0; i < len(names); i += max(1, len(names)/200) {
		name := names[i]
		if err := n.compare(ctx, s, g, name, declared[name], tags[name]); err != nil {
			return nil, err
		}
	}

	if err := n.report(p); err != nil {
		return nil, err
	}
	return p, nil
}

// navigation is how answers about names agree with the truth.
type navigation struct {
	defs, defsTags, refs confusion
	missed               misses
}

// compare asks for the definitions and references of a name, which is declared
// and tagged at some places.
func (n *navigation) compare(ctx context.Context, s *server, g *gopls, name string, declared declarationList, tagged places) error {
	got, err := s.lines(ctx, "/api/find_definitions", name, goFiles)
	if err != nil {
		return err
	}

	// Against both truths: the parser knows what is declared, ctags what the product asked.
	n.defs.add(got, declared.lines())
	n.defsTags.add(got, tagged)

	if got, err = s.lines(ctx, "/api/find_references", name, goFiles); err != nil {
		return err
	}

	// gopls answers by declaration, and the product by name: all of that name are added up.
	want := places{}
	for _, d := range declared {
		if err := g.references(d, want); err != nil {
			return err
		}
	}

	n.refs.add(got, want)
	n.missed.note(name, got, want)
	return nil
}

// report writes what was compared.
func (n *navigation) report(p *Part) error {
	p.row("find_definitions", "declarations that the Go compiler's parser sees", n.defs.want, n.defs.precision(), n.defs.recall())
	p.row("find_definitions", "universal-ctags over the tree", n.defsTags.want, n.defsTags.precision(), n.defsTags.recall())
	p.row("find_references", "gopls references of every declaration of the name", n.refs.want, n.refs.precision(), n.refs.recall())
	if err := n.missed.explain(p); err != nil {
		return err
	}
	p.note("Lines, not occurrences, are compared. References go by name: a line where another thing has the same name counts against precision, and so does one in a comment or string.")
	return nil
}

// confusion adds up the agreement of answers with the truth.
type confusion struct{ right, got, want int }

func (c *confusion) add(got, want places) {
	c.got += len(got)
	c.want += len(want)
	for l := range got {
		if want[l] {
			c.right++
		}
	}
}

// misses are lines that one side has and the other has not.
type misses struct {
	tree        string
	extra, lost []miss
}

type miss struct {
	name string
	at   place
}

func (m *misses) note(name string, got, want places) {
	for l := range got {
		if !want[l] {
			m.extra = append(m.extra, miss{name, l})
		}
	}
	for l := range want {
		if !got[l] {
			m.lost = append(m.lost, miss{name, l})
		}
	}
}

// explain says of what kind the lines are, by what they hold.
func (m *misses) explain(p *Part) error {
	// By the text of the line alone: a guess that tells a remark from another thing of the name.
	kinds := map[string]int{}
	for _, x := range m.extra {
		line, err := lineAt(m.tree, x.at)
		if err != nil {
			return err
		}

		kind := "another thing of that name"
		code, _, remark := strings.Cut(line, "//")
		switch {
		case remark && !strings.Contains(code, x.name):
			kind = "in a comment"
		case strings.Contains(line, `"`+x.name) || strings.Contains(line, x.name+`"`):
			kind = "in a text"
		}
		kinds[kind]++
	}

	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		p.note("Not in gopls's answer, %s: %d lines.", kind, kinds[kind])
	}

	// Missed ones are told one by one: each is a defect, or a limit worth knowing.
	for _, x := range m.lost[:min(len(m.lost), 10)] {
		line, err := lineAt(m.tree, x.at)
		if err != nil {
			return err
		}
		p.note("Missed of %s: %s:%d: %s", x.name, x.at.file, x.at.line, strings.TrimSpace(line))
	}

	p.note("%d lines of gopls are missed in all.", len(m.lost))
	return nil
}

func lineAt(tree string, at place) (string, error) {
	text, err := os.ReadFile(filepath.Join(tree, at.file))
	if err != nil {
		return "", err
	}
	lines := strings.Split(string(text), "\n")
	return lines[min(at.line, len(lines))-1], nil
}

func (c *confusion) precision() float64 { return float64(c.right) / float64(max(1, c.got)) }
func (c *confusion) recall() float64    { return float64(c.right) / float64(max(1, c.want)) }

// lines asks where a name is defined or used, in files of some extensions.
func (s *server) lines(ctx context.Context, path, name string, exts []string) (places, error) {
	body, err := json.Marshal(map[string]string{"symbolName": name})
	if err != nil {
		return nil, err
	}

	var a struct {
		Files []struct {
			FileName string
			Matches  []struct {
				Range struct{ Start struct{ LineNumber int } }
			}
		}
	}

	if err := s.post(ctx, path, body, &a); err != nil {
		return nil, err
	}

	// Lines of other languages are left out: gopls and ctags were not asked of them.
	all := places{}
	for _, f := range a.Files {
		for _, m := range f.Matches {
			if slices.Contains(exts, filepath.Ext(f.FileName)) {
				all[place{f.FileName, m.Range.Start.LineNumber}] = true
			}
		}
	}
	return all, nil
}

// moduleCopy copies a module, with what it needs to be checked, to dir.
func moduleCopy(ctx context.Context, dir, module string) (string, error) {
	if ok, err := exists(dir); ok || err != nil {
		return dir, err
	}

	// By the module proxy, like any dependency. It is copied, for the cache of modules is read-only.
	u, err := measure(ctx, os.TempDir(), []string{"GOFLAGS="}, "go", "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}

	var m struct{ Dir string }
	if err := json.Unmarshal(u.Out, &m); err != nil {
		return "", err
	}
	return dir, os.CopyFS(dir, os.DirFS(m.Dir))
}

// declaration is a position as gopls takes it.
type declaration struct {
	place
	column int
}

type declarationList []declaration

func (l declarationList) lines() places {
	all := places{}
	for _, d := range l {
		all[d.place] = true
	}
	return all
}

// declarations finds functions, methods, types, constants and variables at the
// top of the Go files of a tree.
func declarations(tree string) (map[string]declarationList, error) {
	all := map[string]declarationList{}
	err := filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}

		// gopls knows the files that are built here, no others.
		if ok, err := build.Default.MatchFile(filepath.Dir(path), d.Name()); err != nil || !ok {
			return err
		}

		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(tree, path)
		if err != nil {
			return err
		}

		for _, id := range declared(file) {
			if id.Name == "_" || id.Name == "init" || id.Name == "main" {
				continue
			}
			pos := set.Position(id.Pos())
			all[id.Name] = append(all[id.Name], declaration{place{rel, pos.Line}, pos.Column})
		}
		return nil
	})
	return all, err
}

// declared lists the identifiers that a file declares at its top.
func declared(file *ast.File) []*ast.Ident {
	// Names at the top alone: what is declared within a function nobody looks for by name.
	var ids []*ast.Ident
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			ids = append(ids, d.Name)

		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					ids = append(ids, s.Name)
				case *ast.ValueSpec:
					ids = append(ids, s.Names...)
				}
			}
		}
	}

	return ids
}

// ctagsPlaces runs universal-ctags over the files of a language in a tree.
func ctagsPlaces(ctx context.Context, tree, language, kinds string) (map[string]places, error) {
	u, err := measure(ctx, tree, nil, "ctags", "--quiet", "--options=NONE", "-R", "--map-C=+.h", "--languages="+language, "--kinds-"+language+"="+kinds, "--fields=+n", "--output-format=json", "-f", "-", ".")
	if err != nil {
		return nil, err
	}

	// One object a line. A line holds the text of the definition, which may be long.
	all := map[string]places{}
	scan := bufio.NewScanner(bytes.NewReader(u.Out))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var tag struct {
			Name, Path string
			Line       int
		}

		if err := json.Unmarshal(scan.Bytes(), &tag); err != nil {
			return nil, fmt.Errorf("ctags: %w", err)
		}

		if all[tag.Name] == nil {
			all[tag.Name] = places{}
		}
		all[tag.Name][place{filepath.Clean(tag.Path), tag.Line}] = true
	}
	return all, scan.Err()
}
