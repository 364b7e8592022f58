package main

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// provers are the packages that search, and so may say what an answer covers.
var provers = []string{"node/search", "node/symbols", "node/browse", "node/coverage"}

// claim matches words that say an answer is complete.
var claim = regexp.MustCompile(`(?i)\b(complete|exhaustive|isSearchExhaustive|end of file)\b`)

// claimants are the files that may use such a word, with its meaning there.
var claimants = map[string]string{
	"node/tool/ending.go":  "the last line of a tool's answer",
	"api/encode_search.go": "isSearchExhaustive",
	"api/commits.go":       "isSearchExhaustive of a search of commits, from its Coverage",
	"api/web/proof.go":     "the line of a page of results",
	"node/counters.go":     "the count of answers by what kept them from being exhaustive",
	"cmd/shoal/search.go":  "what the command line reads of isSearchExhaustive",

	"cmd/shoal/search_commits.go": "as above",
	"api/mcp/mcp.go":              "what the last line of a tool's answer means",
	"api/mcp/task.go":             "a word of the protocol: the call has ended",
	"api/settings/actions.go":     "what is true while a node is drained",
	"api/web/found.go":            "what the page of commits says of a Coverage",
	"api/web/trend.go":            "what the page says of the counts at each date",
	"node/verdict.go":             "what is true after a node fails",
	"node/job/sync.go":            "a log line: the host has listed everything",
}

// Only packages that search may make a Coverage, and one place prints it.
func TestCoverage_isMadeOnlyBySearchPackages(t *testing.T) {
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
				if n.Kind == token.STRING && claim.MatchString(n.Value) && claimants[path] == "" {
					t.Errorf("%s: writes %s: print it from a Coverage, where node/tool/ending.go does for tools", s.at(n), claim.FindString(n.Value))
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
