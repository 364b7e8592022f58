package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// checkTypes adds what needs types: the largest cycle of files of each package, and the methods
// of its types. It compiles the tree. Packages that do not compile get neither.
func (h *house) checkTypes() error {
	list := exec.Command("go", "list", "-e", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}\t{{.Dir}}\t{{join .GoFiles \" \"}}", "./...")
	list.Dir, list.Stderr = h.root, os.Stderr
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}

	exports := map[string]string{}
	sources := map[string][]string{}
	paths := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(f) == 4 {
			exports[f[0]], paths[f[2]], sources[f[2]] = f[1], f[0], strings.Fields(f[3])
		}
	}

	imports := importer.ForCompiler(h.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range h.packages {
		if files := sources[p.abs]; files != nil {
			h.check(p, paths[p.abs], files, imports)
		}
	}
	return nil
}

// check type-checks one package. It skips files that this machine does not build.
func (h *house) check(p *room, path string, built []string, imports types.Importer) {
	var files []*ast.File
	number := map[*token.File]int{}
	for i, f := range p.files {
		if slices.Contains(built, p.names[i]) {
			number[h.files.File(f.Pos())] = len(files)
			files = append(files, f)
		}
	}

	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imports, FakeImportC: true, Error: func(error) {}}
	pkg, _ := config.Check(path, h.files, files, info)
	p.knot, p.typedFiles = largestComponent(h.edges(pkg, len(files), number, info)), len(files)

	for _, name := range pkg.Scope().Names() {
		t, ok := pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok || t.IsAlias() {
			continue
		}
		p.types = append(p.types, name)
		if n := exportedMethods(t.Type()); n > 0 && p.area != helpers {
			h.methods = append(h.methods, size{p.dir + "." + name, n})
		}
	}
}

// edges returns for each file the files whose declarations it uses.
func (h *house) edges(pkg *types.Package, files int, number map[*token.File]int, info *types.Info) []map[int]bool {
	edges := make([]map[int]bool, files)
	for i := range edges {
		edges[i] = map[int]bool{}
	}
	for id, object := range info.Uses {
		if object.Pkg() != pkg || !object.Pos().IsValid() {
			continue
		}
		from, to := number[h.files.File(id.Pos())], number[h.files.File(object.Pos())]
		if from != to {
			edges[from][to] = true
		}
	}
	return edges
}

// exportedMethods counts the exported methods of a type, also promoted ones.
func exportedMethods(t types.Type) int {
	if _, ok := t.Underlying().(*types.Interface); ok {
		return 0
	}
	n := 0
	for m := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		if m.Obj().Exported() {
			n++
		}
	}
	return n
}

// repeatedTypeNames returns the names of types that more than two packages declare.
func (h *house) repeatedTypeNames() []size {
	count := map[string]int{}
	for _, p := range h.packages {
		for _, name := range p.types {
			count[name]++
		}
	}
	var out []size
	for _, name := range slices.Sorted(maps.Keys(count)) {
		// CONTRIBUTING allows these three everywhere.
		if count[name] > 2 && name != "Deps" && name != "Options" && name != "Kind" {
			out = append(out, size{name, count[name]})
		}
	}
	return out
}

// largestComponent returns the size of the largest strongly connected component, by Tarjan's
// algorithm.
func largestComponent(edges []map[int]bool) int {
	// low[v] is the earliest file on the stack that v leads back to.
	index, low, on := make([]int, len(edges)), make([]int, len(edges)), make([]bool, len(edges))
	var stack []int
	next, best := 0, 0
	var visit func(v int)

	visit = func(v int) {
		next++
		index[v], low[v] = next, next
		stack = append(stack, v)
		on[v] = true

		for w := range edges[v] {
			if index[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if on[w] {
				low[v] = min(low[v], index[w])
			}
		}

		// v leads back to an earlier file and belongs to its component.
		if low[v] != index[v] {
			return
		}

		// v is the first of its component; the files above it on the stack are the rest.
		n := 0
		for {
			w := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			on[w] = false
			n++
			if w == v {
				break
			}
		}

		best = max(best, n)
	}

	for v := range edges {
		if index[v] == 0 {
			visit(v)
		}
	}
	return best
}
