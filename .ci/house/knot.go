package main

import (
	"go/ast"
)

// knot returns the size of the largest set of files of a package that all
// reach each other: an edge goes from a file that names a thing, or a method
// whose name only one file declares, to the file that declares it.
func (p *room) knot() int {
	home, methodHome := p.homes()

	edges := make([]map[int]bool, len(p.files))
	for i, f := range p.files {
		edges[i] = edgesOf(f, i, home, methodHome)
	}
	return largestComponent(edges)
}

// homes tells in which file a name is declared, and a method's: -1 where several
// files declare one of that name, which a syntax tree without types cannot tell apart.
func (p *room) homes() (home, methodHome map[string]int) {
	home, methodHome = map[string]int{}, map[string]int{}
	for i, f := range p.files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				// Functions have names of their own in a package; methods of one name may be of several types.
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

	return home, methodHome
}

// edgesOf are the files other than i, its own, that a file names things of.
func edgesOf(f *ast.File, i int, home, methodHome map[string]int) map[int]bool {
	out := map[int]bool{}
	name := func(n ast.Node) bool {
		// A local variable of the same name counts too: a tree without types cannot tell it apart.
		if id, ok := n.(*ast.Ident); ok {
			if at, ok := home[id.Name]; ok && at != i {
				out[at] = true
			}
		}
		return true
	}

	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return name(n)
		}

		// What is selected is a method or a field, never a name of this package.
		if at, ok := methodHome[s.Sel.Name]; ok && at >= 0 && at != i {
			out[at] = true
		}
		ast.Inspect(s.X, name)
		return false
	})
	return out
}

// largestComponent is Tarjan's algorithm, which keeps only the largest size.
func largestComponent(edges []map[int]bool) int {
	// low is the earliest file on the stack that a file is known to lead back to.
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

		// It leads back to an earlier one, whose component it is part of.
		if low[v] != index[v] {
			return
		}

		// The first of its component: what lies on the stack above it is the rest of it.
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
