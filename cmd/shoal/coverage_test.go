package main

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// provers are the packages that search, and so may say what an answer covers.
var provers = []string{"node/search", "node/browse", "node/coverage"}

// writers are the files that may write the words by which an answer says that it is complete.
var writers = map[string][]string{
	"Complete.":          {"node/tool/text.go", "api/mcp/mcp.go"}, // the latter explains the word
	"isSearchExhaustive": {"api/encode_search.go", "cmd/shoal/search.go"},
}

// Only the layer that searched makes a Coverage, and one place prints it.
func TestCoverageIsMadeByWhoSearched(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		path := filepath.ToSlash(s.path)
		if s.isTest() || strings.HasPrefix(path, "bench/") {
			continue
		}
		prover := false
		for _, dir := range provers {
			prover = prover || strings.HasPrefix(path, dir+"/")
		}

		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if !prover && (isOf(n.Type, "coverage", "Gap") || isOf(n.Type, "coverage", "Coverage")) {
					t.Errorf("%s: makes what an answer covers: only %s may, which search", s.at(n), strings.Join(provers, " and "))
				}
			case *ast.CallExpr:
				if !prover && isOf(n.Fun, "coverage", "Of") {
					t.Errorf("%s: makes a Coverage: only %s may, which search", s.at(n), strings.Join(provers, " and "))
				}
			case *ast.BasicLit:
				for word, files := range writers {
					if n.Kind == token.STRING && strings.Contains(n.Value, word) && !slices.Contains(files, path) {
						t.Errorf("%s: writes %q: print it from a Coverage where %s does", s.at(n), word, files[0])
					}
				}
			}
			return true
		})
	}
}

// isOf reports whether an expression is a name of a package.
func isOf(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == pkg && sel.Sel.Name == name
}
