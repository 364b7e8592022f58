// House prints the sizes of the product's code: of areas, packages, files, functions, types and
// interfaces, and the largest cycle of files in each package. Benchmarks and test helpers have
// their own lines and do not count elsewhere.
//
//	go run ./.ci/house [DIR]
//
// Nothing fails here: a number that grew is worth a look.
package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// longRun limits consecutive lines of code without a blank line or a comment.
const longRun = 12

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// house has the counts of everything and of each package.
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
	interfaces, jsonStructs   []size
	vars, inits               int
	anys, panics, gotos       int
	sleeps, overFive, dense   int
	fileSizes                 []size
	methods                   []size
	tests, fuzzes, benchmarks int
}

// room is one package.
type room struct {
	dir, abs, area   string
	files            []*ast.File
	names            []string
	lines, testLines int
	exported         int
	knot, typedFiles int
	types            []string
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
	h := &house{root: root, files: token.NewFileSet(), packages: map[string]*room{}}
	if err := cmp.Or(h.walk(), h.checkTypes()); err != nil {
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
			// Skip directories without code of the product, such as tools, test data and build
			// output.
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
		abs, err := filepath.Abs(filepath.Dir(path))
		if err != nil {
			return err
		}
		p = &room{dir: dir, abs: abs, area: areaOf(dir)}
		h.packages[dir] = p
	}

	// Test helpers and benchmarks only count lines.
	isProduct := p.area != helpers && p.area != benchmarks
	if strings.HasSuffix(path, "_test.go") {
		h.testLines += lines
		p.testLines += lines
		return h.test(path, text)
	}

	f, err := parser.ParseFile(h.files, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}

	p.lines += lines
	p.files = append(p.files, f)
	p.names = append(p.names, filepath.Base(path))
	if !isProduct {
		return nil
	}
	h.lines += lines
	h.fileSizes = append(h.fileSizes, size{rel, lines})

	marks := h.text(f, text)
	for _, d := range f.Decls {
		h.declaration(dir, p, d, text, marks)
	}

	h.countRisks(f)
	return nil
}

func (h *house) test(path string, text []byte) error {
	f, err := parser.ParseFile(h.files, path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}

	// A sleep in a test guesses how long something takes.
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

// mark tells what is on a line.
type mark struct{ code, comment bool }

// text counts lines and tokens of a file and returns what is on each line.
func (h *house) text(f *ast.File, text []byte) []mark {
	all := strings.Split(string(text), "\n")
	marks := make([]mark, len(all)+1)

	for _, line := range all {
		// A tab counts as four columns.
		if len([]rune(strings.ReplaceAll(line, "\t", "    "))) > 120 {
			h.wide++
		}
	}

	// Use the scanner, because the tree has no tokens.
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
			// A comment may span lines.
			for i := range strings.Count(lit, "\n") + 1 {
				marks[line+i].comment = true
			}
			continue
		}

		// The scanner adds a semicolon at the end of a line.
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		h.tokens++
		for i := range strings.Count(lit, "\n") + 1 {
			marks[line+i].code = true
		}
	}

	// A line with code and a comment is a line of code.
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
			h.countSpec(dir, p, d.Tok, s)
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
		// Methods are named with their type.
		name = receiver(d.Recv.List[0].Type) + "." + name
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

	// The lines of the braces do not count.
	from, to := h.files.Position(d.Body.Lbrace).Line, h.files.Position(d.Body.Rbrace).Line
	h.functions = append(h.functions, function{
		name:       fmt.Sprintf("%s/%s %s", dir, filepath.Base(h.files.Position(d.Pos()).Filename), name),
		lines:      to - h.files.Position(d.Pos()).Line + 1,
		tokens:     tokens(text[h.files.Position(d.Pos()).Offset:h.files.Position(d.End()).Offset]),
		cyclomatic: cyclomatic(d.Body),
	})
	h.countBody(marks[from+1 : max(to, from+1)])
}

// countBody counts the lines of a body, and whether it has a long run of code.
func (h *house) countBody(marks []mark) {
	run, longest := 0, 0
	for _, m := range marks {
		h.bodyLines++
		if m.code {
			run++
			longest = max(longest, run)
			continue
		}

		// Blank lines and comments end a run.
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

// parameters counts the parameters of a function.
func parameters(t *ast.FuncType) int {
	n := 0
	for _, f := range t.Params.List {
		n += max(1, len(f.Names))
	}
	return n
}

func (h *house) countSpec(dir string, p *room, kind token.Token, s ast.Spec) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			p.exported++
		}

		// An interface with a list of types is a constraint and has no methods.
		if i, ok := s.Type.(*ast.InterfaceType); ok && i.Methods.NumFields() > 0 {
			if _, isUnion := i.Methods.List[0].Type.(*ast.BinaryExpr); !isUnion {
				h.interfaces = append(h.interfaces, size{dir + "." + s.Name.Name, i.Methods.NumFields()})
			}
		}

		if t, ok := s.Type.(*ast.StructType); ok && hasJSON(t) && (p.area == "api" || p.area == "commands") {
			h.jsonStructs = append(h.jsonStructs, size{dir + "." + s.Name.Name, t.Fields.NumFields()})
		}

	case *ast.ValueSpec:
		for i, n := range s.Names {
			if n.IsExported() {
				p.exported++
			}
			// Errors are no state, because they never change.
			if kind == token.VAR && n.Name != "_" && !isError(s, i) {
				h.vars++
			}
		}
	}
}

// hasJSON reports whether a field of the struct has a JSON tag.
func hasJSON(t *ast.StructType) bool {
	return slices.ContainsFunc(t.Fields.List, func(f *ast.Field) bool { return f.Tag != nil && strings.Contains(f.Tag.Value, "json:") })
}

// isError reports whether a variable is made by errors.New or fmt.Errorf.
func isError(s *ast.ValueSpec, i int) bool {
	if i >= len(s.Values) {
		return false
	}
	call, ok := s.Values[i].(*ast.CallExpr)
	if !ok {
		return false
	}

	// Compare names, because types are not known here; rand.New makes no error.
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (f.Sel.Name == "New" || f.Sel.Name == "Errorf") && fmt.Sprint(f.X) != "rand"
}

func (h *house) countRisks(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			// any hides types; panic and goto hide ways out.
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
		// Type parameters do not count: T[K] and T[V] are one type.
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

	// Comments and line ends do not count, so that formatting changes nothing.
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

// cyclomatic returns McCabe's number: one, and one more for each branch.
func cyclomatic(body ast.Node) int {
	n := 1
	ast.Inspect(body, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			// A default adds no branch.
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
		}
		return true
	})

	return n
}
