package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// pauses are the places where a test may let time pass, with the reason.
var pauses = []struct{ dir, function, why string }{
	{"node/nodetest", "Moment", "a test chooses when something breaks"},
	{"node/chaostest", "pause", "a run chooses when something breaks"},
	{"api", "computeSlowly", "the conformance suite says how long its tool works"},
}

// A test that waits for a fixed time is slow, or fails on a busy machine.
func TestTests_haveNoFixedWaits(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if !s.isTest() && !strings.HasPrefix(s.path, filepath.Join("node", "nodetest")) || inBubble(s.file) {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && slices.ContainsFunc(pauses, func(p struct{ dir, function, why string }) bool {
				return filepath.ToSlash(filepath.Dir(s.path)) == p.dir && f.Name.Name == p.function
			}) {
				continue
			}
			for _, at := range flatWaits(d) {
				t.Errorf("%s waits for a time: poll a named condition (nodetest.Wait), or use testing/synctest", s.at(at))
			}
		}
	}
}

func TestFixedWaitCheck_findsSleepsInTestCode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		`time.Sleep(d)`:                                       1,
		`<-time.After(d)`:                                     1,
		`at := <-time.After(d); _ = at`:                       1,
		`for !done() { <-time.After(d) }`:                     1,
		`timer := time.NewTimer(d); <-timer.C`:                1,
		`tick := time.NewTicker(d); <-tick.C`:                 1,
		`<-time.Tick(d)`:                                      1,
		`select { case <-time.After(d): }`:                    1,
		`select { case <-ctx.Done(): case <-time.After(d): }`: 1,
		`timer := time.NewTimer(d); select { case <-ctx.Done(): case <-timer.C: }`: 1,
		`<-done`: 0,
		`select { case <-done: case <-time.After(d): t.Fatal() }`:                         0,
		`tick := time.NewTicker(d); for !done() { <-tick.C }`:                             0,
		`tick := time.NewTicker(d); for { select { case <-ctx.Done(): case <-tick.C: } }`: 0,
		`time.AfterFunc(d, f)`: 0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p; func f() { "+text+" }", 0)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := flatWaits(file.Decls[0]); len(got) != want {
			t.Errorf("%s: %d flat waits, want %d", text, len(got), want)
		}
	}
}

// flatWaits returns where a declaration lets time pass: it sleeps, or receives only from a timer
// and a context. A ticker in a loop sets the pace of the loop and is allowed.
func flatWaits(d ast.Decl) (found []ast.Node) {
	w := &waits{timers: map[string]bool{}, inSelect: map[ast.Node]bool{}}
	ast.Inspect(d, w.name)
	loops := 0
	var look func(n ast.Node) bool
	look = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt:
			loops++
			for _, part := range []ast.Node{n.Init, n.Cond, n.Post, n.Body} {
				if part != nil && !reflect.ValueOf(part).IsNil() {
					ast.Inspect(part, look)
				}
			}
			loops--
			return false
		case *ast.SelectStmt:
			if w.onlyTime(n, loops > 0) {
				found = append(found, n)
			}
		case *ast.UnaryExpr:
			if !w.inSelect[n] && w.time(n, loops > 0) {
				found = append(found, n)
			}
		case *ast.CallExpr:
			if called(n, "Sleep") {
				found = append(found, n)
			}
		}
		return true
	}
	ast.Inspect(d, look)
	return found
}

// waits is the state of flatWaits for a declaration.
type waits struct {
	timers   map[string]bool   // variables that have timers; true for tickers
	inSelect map[ast.Node]bool // receives that are cases of a select
}

// name records a variable that gets a timer, and what a select receives.
func (w *waits) name(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, e := range n.Rhs {
			if id, ok := n.Lhs[min(i, len(n.Lhs)-1)].(*ast.Ident); ok && (called(e, "NewTimer") || called(e, "NewTicker")) {
				w.timers[id.Name] = called(e, "NewTicker")
			}
		}
	case *ast.CommClause:
		if e := received(n.Comm); e != nil {
			w.inSelect[e] = true
		}
	}
	return true
}

// onlyTime reports whether a select only waits for a time or for the end of a context.
func (w *waits) onlyTime(s *ast.SelectStmt, loop bool) bool {
	times := 0
	for _, clause := range s.Body.List {
		e := received(clause.(*ast.CommClause).Comm)
		switch {
		case e == nil:
			return false
		case w.time(e, loop):
			times++
		case !called(e.X, "Done"):
			return false
		}
	}
	return times > 0
}

// time reports whether an expression receives from a timer.
func (w *waits) time(e *ast.UnaryExpr, loop bool) bool {
	if e.Op != token.ARROW {
		return false
	}
	if called(e.X, "After") || called(e.X, "Tick") {
		return true
	}
	sel, ok := e.X.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "C" {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return false
	}
	ticker, known := w.timers[id.Name]
	return known && !(ticker && loop)
}

// received returns what a case of a select receives, or nil.
func received(s ast.Stmt) *ast.UnaryExpr {
	var e ast.Expr
	switch s := s.(type) {
	case *ast.ExprStmt:
		e = s.X
	case *ast.AssignStmt:
		e = s.Rhs[0]
	}
	u, _ := e.(*ast.UnaryExpr)
	return u
}

// called reports whether an expression calls a method or function of a name.
func called(e ast.Expr, name string) bool {
	c, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := c.Fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == name
}

// inBubble reports whether a test file runs under testing/synctest, where a sleep takes no time.
func inBubble(f *ast.File) bool {
	for _, imp := range f.Imports {
		if imp.Path.Value == `"testing/synctest"` {
			return true
		}
	}
	return false
}
