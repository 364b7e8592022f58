// House prints the sizes of the code: of packages, files, functions, types and
// interfaces, and how far the files of a package hang together.
//
//	go run ./.ci/house [DIR]
//
// It is a table to be read, not a limit: a number that grew asks for a look.
package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// longRun is how many lines of code may stand together before a reader wants a
// pause: a blank line or a comment.
const longRun = 12

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// house is what was counted, of everything and of each package.
type house struct {
	root     string
	files    *token.FileSet
	packages map[string]*room

	lines, testLines          int
	codeLines, commentLines   int
	wide, tokens              int
	bodyLines, bodyBlank      int
	bodyComment               int
	functions                 []function
	exported, documented      int
	interfaces                []size
	vars, inits               int
	anys, panics, gotos       int
	sleeps, overFive, dense   int
	fileSizes                 []size
	methods                   map[string]int
	tests, fuzzes, benchmarks int
}

// room is one package.
type room struct {
	dir              string
	files            []*ast.File
	names            []string
	lines, testLines int
	exported         int
}

type function struct {
	name                      string
	lines, tokens, cyclomatic int
}

type size struct {
	name string
	n    int
}

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	h := &house{root: root, files: token.NewFileSet(), packages: map[string]*room{}, methods: map[string]int{}}
	if err := h.walk(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	h.print()
}

// walk reads every Go file below the root that is not generated.
func (h *house) walk() error {
	return filepath.WalkDir(h.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != h.root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "data") {
				return fs.SkipDir
			}
			return nil
		}

		if !strings.HasSuffix(path, ".go") {
			return nil
		}

		text, err := os.ReadFile(path)
		if err != nil || generated.Match(text) {
			return err
		}
		return h.file(path, text)
	})
}

// file counts one file.
func (h *house) file(path string, text []byte) error {
	rel, err := filepath.Rel(h.root, path)
	if err != nil {
		return err
	}

	dir := filepath.ToSlash(filepath.Dir(rel))
	lines := strings.Count(string(text), "\n")
	p := h.packages[dir]
	if p == nil {
		p = &room{dir: dir}
		h.packages[dir] = p
	}

	// Tests are only counted: what follows tells of the product.
	if strings.HasSuffix(path, "_test.go") {
		h.testLines += lines
		p.testLines += lines
		return h.test(path, text)
	}

	f, err := parser.ParseFile(h.files, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}

	h.lines += lines
	p.lines += lines
	p.files = append(p.files, f)
	p.names = append(p.names, filepath.Base(path))
	h.fileSizes = append(h.fileSizes, size{rel, lines})

	marks := h.text(f, text)
	for _, d := range f.Decls {
		h.declaration(dir, p, d, text, marks)
	}

	h.calls(f)
	return nil
}

func (h *house) test(path string, text []byte) error {
	f, err := parser.ParseFile(h.files, path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}

	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
				h.sleeps++
			}
		}
		return true
	})

	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil {
			continue
		}

		switch {
		case strings.HasPrefix(fn.Name.Name, "Test"):
			h.tests++
		case strings.HasPrefix(fn.Name.Name, "Fuzz"):
			h.fuzzes++
		case strings.HasPrefix(fn.Name.Name, "Benchmark"):
			h.benchmarks++
		}
	}

	return nil
}

// A mark says what stands on a line.
type mark struct{ code, comment bool }

// text counts lines and tokens of a file and tells what stands on each line.
func (h *house) text(f *ast.File, text []byte) []mark {
	all := strings.Split(string(text), "\n")
	marks := make([]mark, len(all)+1)

	for _, line := range all {
		if len([]rune(strings.ReplaceAll(line, "\t", "    "))) > 120 {
			h.wide++
		}
	}

	fset := token.NewFileSet()
	tf := fset.AddFile("", fset.Base(), len(text))
	var s scanner.Scanner
	s.Init(tf, text, nil, scanner.ScanComments)

	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		line := fset.Position(pos).Line

		if tok == token.COMMENT {
			for i := range strings.Count(lit, "\n") + 1 {
				marks[line+i].comment = true
			}
			continue
		}

		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		h.tokens++
		for i := range strings.Count(lit, "\n") + 1 {
			marks[line+i].code = true
		}
	}

	for _, m := range marks {
		if m.code {
			h.codeLines++
		} else if m.comment {
			h.commentLines++
		}
	}
	return marks
}

func (h *house) declaration(dir string, p *room, d ast.Decl, text []byte, marks []mark) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		h.function(dir, p, d, text, marks)
	case *ast.GenDecl:
		for _, s := range d.Specs {
			h.spec(dir, p, d.Tok, s)
		}
	}
}

func (h *house) function(dir string, p *room, d *ast.FuncDecl, text []byte, marks []mark) {
	name := d.Name.Name
	if d.Recv == nil && name == "init" {
		h.inits++
	}
	if d.Recv == nil && d.Name.IsExported() {
		p.exported++
	}
	if d.Recv != nil {
		t := receiver(d.Recv.List[0].Type)
		h.methods[dir+"."+t]++
		name = t + "." + name
	}

	if d.Name.IsExported() {
		h.exported++
		if d.Doc != nil {
			h.documented++
		}
	}
	if parameters(d.Type) > 5 {
		h.overFive++
	}

	if d.Body == nil {
		return // in assembly
	}
	from, to := h.files.Position(d.Body.Lbrace).Line, h.files.Position(d.Body.Rbrace).Line
	h.functions = append(h.functions, function{
		name:       fmt.Sprintf("%s/%s %s", dir, filepath.Base(h.files.Position(d.Pos()).Filename), name),
		lines:      to - h.files.Position(d.Pos()).Line + 1,
		tokens:     tokens(text[h.files.Position(d.Pos()).Offset:h.files.Position(d.End()).Offset]),
		cyclomatic: cyclomatic(d.Body),
	})
	h.body(marks[from+1 : max(to, from+1)])
}

// body counts the lines of a body, and whether some stand close together for long.
func (h *house) body(marks []mark) {
	run, longest := 0, 0
	for _, m := range marks {
		h.bodyLines++
		if m.code {
			run++
			longest = max(longest, run)
			continue
		}

		run = 0
		if m.comment {
			h.bodyComment++
		} else {
			h.bodyBlank++
		}
	}
	if longest > longRun {
		h.dense++
	}
}

// parameters is how many a function takes.
func parameters(t *ast.FuncType) int {
	n := 0
	for _, f := range t.Params.List {
		n += max(1, len(f.Names))
	}
	return n
}

func (h *house) spec(dir string, p *room, kind token.Token, s ast.Spec) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			p.exported++
		}
		if i, ok := s.Type.(*ast.InterfaceType); ok && i.Methods.NumFields() > 0 {
			if _, isUnion := i.Methods.List[0].Type.(*ast.BinaryExpr); !isUnion {
				h.interfaces = append(h.interfaces, size{dir + "." + s.Name.Name, i.Methods.NumFields()})
			}
		}
	case *ast.ValueSpec:
		for i, n := range s.Names {
			if n.IsExported() {
				p.exported++
			}
			if kind == token.VAR && n.Name != "_" && !isError(s, i) {
				h.vars++
			}
		}
	}
}

// isError tells a variable made by errors.New or fmt.Errorf.
func isError(s *ast.ValueSpec, i int) bool {
	if i >= len(s.Values) {
		return false
	}
	call, ok := s.Values[i].(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (f.Sel.Name == "New" || f.Sel.Name == "Errorf") && fmt.Sprint(f.X) != "rand"
}

func (h *house) calls(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if n.Name == "any" {
				h.anys++
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "panic" {
				h.panics++
			}
		case *ast.BranchStmt:
			if n.Tok == token.GOTO {
				h.gotos++
			}
		}

		return true
	})
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}

	return "?"
}

func tokens(text []byte) int {
	fset := token.NewFileSet()
	var s scanner.Scanner
	s.Init(fset.AddFile("", fset.Base(), len(text)), text, nil, 0)
	n := 0
	for {
		_, tok, lit := s.Scan()
		if tok == token.EOF {
			return n
		}

		if tok != token.SEMICOLON || lit != "\n" {
			n++
		}
	}
}

// cyclomatic is McCabe's number: one and one for each branch.
func cyclomatic(body ast.Node) int {
	n := 1
	ast.Inspect(body, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if x.List != nil {
				n++
			}
		case *ast.CommClause:
			if x.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		case *ast.FuncLit:
			return true
		}

		return true
	})

	return n
}

// knot returns the size of the largest set of files of a package that all
// reach each other: an edge goes from a file that names a thing, or a method
// whose name only one file declares, to the file that declares it.
func (p *room) knot() int {
	home, methodHome := map[string]int{}, map[string]int{}
	for i, f := range p.files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					home[d.Name.Name] = i
				} else if at, ok := methodHome[d.Name.Name]; ok && at != i {
					methodHome[d.Name.Name] = -1
				} else {
					methodHome[d.Name.Name] = i
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						home[s.Name.Name] = i
					case *ast.ValueSpec:
						for _, n := range s.Names {
							home[n.Name] = i
						}
					}
				}
			}
		}
	}

	edges := make([]map[int]bool, len(p.files))
	for i, f := range p.files {
		edges[i] = map[int]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if at, ok := methodHome[n.Sel.Name]; ok && at >= 0 && at != i {
					edges[i][at] = true
				}
				ast.Inspect(n.X, func(x ast.Node) bool {
					if id, ok := x.(*ast.Ident); ok {
						if at, ok := home[id.Name]; ok && at != i {
							edges[i][at] = true
						}
					}
					return true
				})
				return false
			case *ast.Ident:
				if at, ok := home[n.Name]; ok && at != i {
					edges[i][at] = true
				}
			}

			return true
		})
	}

	return largestComponent(edges)
}

// largestComponent is Tarjan's algorithm, which keeps only the largest size.
func largestComponent(edges []map[int]bool) int {
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

		if low[v] != index[v] {
			return
		}
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

func (h *house) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	lines := column(h.functions, func(f function) int { return f.lines })
	toks := column(h.functions, func(f function) int { return f.tokens })
	cyc := column(h.functions, func(f function) int { return f.cyclomatic })
	files := column(h.fileSizes, func(f size) int { return f.n })
	faces := column(h.interfaces, func(f size) int { return f.n })

	row("lines without tests", "%d", h.lines)
	row("lines of tests, of each line of product", "%d, %.2f", h.testLines, ratio(h.testLines, h.lines))
	row("tests, fuzz targets, benchmarks", "%d, %d, %d", h.tests, h.fuzzes, h.benchmarks)
	row("packages", "%d", len(h.packages))
	row("functions", "%d", len(lines))
	row("lines of a function: median, p90, p99, max", "%d, %d, %d, %d", at(lines, 50), at(lines, 90), at(lines, 99), at(lines, 100))
	row("functions over 60, over 40 lines", "%.1f %%, %d", percent(over(lines, 60), len(lines)), over(lines, 40))
	row("tokens of a function: median, p90, p99, max", "%d, %d, %d, %d", at(toks, 50), at(toks, 90), at(toks, 99), at(toks, 100))
	row("tokens of a line of code", "%.1f", ratio(h.tokens, h.codeLines))
	row("blank lines in bodies", "%.1f %% (%d of %d)", percent(h.bodyBlank, h.bodyLines), h.bodyBlank, h.bodyLines)
	row("comment lines in bodies", "%.1f %% (%d)", percent(h.bodyComment, h.bodyLines), h.bodyComment)
	row("functions with over 12 lines without either", "%d", h.dense)
	row("comment lines in all", "%.1f %%", percent(h.commentLines, h.lines))
	row("exported functions with a comment", "%.0f %%", percent(h.documented, h.exported))
	row("files over 500, over 800, longest", "%d, %d, %d", over(files, 500), over(files, 800), at(files, 100))
	row("branches (McCabe) over 15, max", "%d (%.1f %%), %d", over(cyc, 15), percent(over(cyc, 15), len(cyc)), at(cyc, 100))
	row("functions of more than five parameters", "%.2f %%", percent(h.overFive, len(lines)))
	row("interfaces, of at most three methods, largest", "%d, %d, %d", len(faces), len(faces)-over(faces, 3), at(faces, 100))
	row("package variables that are no errors, init", "%d, %d", h.vars, h.inits)
	row("any in a thousand lines", "%.1f", ratio(1000*h.anys, h.lines))
	row("panics, gotos, sleeps in tests", "%d, %d, %d", h.panics, h.gotos, h.sleeps)
	row("lines over 120 columns", "%.1f %%", percent(h.wide, h.lines))
	w.Flush()

	fmt.Println()
	fmt.Fprintln(w, "package\tlines\tfiles\texported\tknot of files\ttests/product")
	rooms := slices.SortedFunc(maps.Values(h.packages), func(a, b *room) int { return cmp.Compare(b.lines, a.lines) })
	for _, p := range rooms {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d of %d\t%.2f\n", p.dir, p.lines, len(p.files), p.exported, p.knot(), len(p.files), ratio(p.testLines, p.lines))
	}

	w.Flush()

	fmt.Println("\nmost methods")
	var types []size
	for name, n := range h.methods {
		types = append(types, size{name, n})
	}

	list(types, 10)
	fmt.Println("\nlargest interfaces")
	list(h.interfaces, 5)
	fmt.Println("\nlongest functions")

	var long []size
	for _, f := range h.functions {
		long = append(long, size{f.name, f.lines})
	}

	list(long, 15)
	fmt.Println("\nmost branches")
	var tangled []size
	for _, f := range h.functions {
		tangled = append(tangled, size{f.name, f.cyclomatic})
	}

	list(tangled, 10)
}

func list(sizes []size, most int) {
	slices.SortFunc(sizes, func(a, b size) int { return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.name, b.name)) })
	for _, s := range sizes[:min(most, len(sizes))] {
		fmt.Printf("%6d  %s\n", s.n, s.name)
	}
}

func column[T any](all []T, of func(T) int) []int {
	out := make([]int, len(all))
	for i, x := range all {
		out[i] = of(x)
	}
	slices.Sort(out)
	return out
}

func at(sorted []int, percentile int) int {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*percentile/100)]
}

func over(sorted []int, limit int) int {
	i, _ := slices.BinarySearch(sorted, limit+1)
	return len(sorted) - i
}

func ratio(a, b int) float64   { return float64(a) / float64(max(1, b)) }
func percent(a, b int) float64 { return 100 * ratio(a, b) }
