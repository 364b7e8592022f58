package main

import (
	"go/ast"
	"path/filepath"
	"strings"
	"testing"
)

// wholes are the types that assemble the parts of their package, by folder. A part takes what it
// uses and never the whole.
var wholes = map[string]string{"cluster": "Cluster", "node": "Node", "node/search": "Searcher", "node/browse": "Browser", "node/account": "Keyring", "api": "Server"}

// holdsWhole lists the parts that may hold a whole, with the reason.
var holdsWhole = map[string]string{
	"node/search.ranking": "it is several searches, one after the other, of the one who searches",
}

func TestComponents_doNotHoldTheWholeNode(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		dir := filepath.ToSlash(filepath.Dir(s.path))
		whole := wholes[dir]
		if whole == "" || s.isTest() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			typ, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := typ.Type.(*ast.StructType)
			if !ok || holdsWhole[dir+"."+typ.Name.Name] != "" {
				return false
			}
			for _, f := range fields.Fields.List {
				star, ok := f.Type.(*ast.StarExpr)
				if !ok {
					continue
				}
				if id, ok := star.X.(*ast.Ident); ok && id.Name == whole {
					t.Errorf("%s: %s holds the whole *%s: a part takes the few things that it uses", s.at(f), typ.Name.Name, whole)
				}
			}
			return false
		})
	}
}

// pastTheGate are the files that may read repositories from a view of the catalog directly, with
// the reason why that reveals no hidden one. A folder with a slash at the end means its files.
// All other code, now and later, must use account.Repos.
var pastTheGate = map[string]string{
	"cluster/catalog/":        "it is the view",
	"node/account/gate.go":    "it is the gate",
	"node/account/people.go":  "owners grant what they do not see themselves",
	"node/job/":               "jobs are on nobody's behalf, and answer nobody",
	"node/hold/":              "copies are kept on nobody's behalf; shortages are told to owners only",
	"node/watch/check.go":     "checks on nobody's behalf; a watch finds something only in the set of the gate of its owner",
	"node/history/keeper.go":  "indexes on nobody's behalf; a search brings repositories that the gate has let through",
	"node/operate/drain.go":   "counts what a node that leaves has, for owners",
	"node/operate/jobs.go":    "looks each job's repository up in the set of the gate",
	"node/operate/webhook.go": "push events, which the owner of a connection signs; names are told by the gate",
	"node/placement.go":       "counts and names what lies on nodes, for owners, as the status does",
	"node/status.go":          "counts over the set of the gate; what is summed over all is for owners",
	"node/warnings.go":        "names repositories to owners alone",
	"node/browse/orders.go":   "sorts all repositories; a list takes those in the set of the gate",
	"node/browse/site.go":     "orders the holders of a repository that the gate has let through",
	"node/search/group.go":    "names what another node asks for; the leaf asks the gate",
	"node/search/layout.go":   "the same for all viewers; a search takes what is in its set",
	"node/search/merge.go":    "names what leaves found, and what of a search they lack; counts over its set",
	"node/search/shape.go":    "names what leaves found",
}

// readsPast reports whether an expression reads repositories from a view: it calls a method that
// only views have, or a method of another name on a view.
func readsPast(sel *ast.SelectorExpr) bool {
	switch sel.Sel.Name {
	case "RepoByName", "RepoByFormerName", "ReposByName", "Visible":
		return true
	case "Repo", "Repos":
		return isView(sel.X)
	}
	return false
}

// isView reports whether an expression has the name of a view: view, v, s.view, visible.View,
// c.View(). Other names are only caught by the four methods that only views have.
func isView(x ast.Expr) bool {
	switch n := x.(type) {
	case *ast.Ident:
		return strings.EqualFold(n.Name, "view") || n.Name == "v"
	case *ast.SelectorExpr:
		return strings.EqualFold(n.Sel.Name, "view")
	case *ast.CallExpr:
		return isView(n.Fun)
	}
	return false
}

// permitted returns the row of a file in pastTheGate; "" for none.
func permitted(path string) string {
	path = filepath.ToSlash(path)
	for row := range pastTheGate {
		if row == path || strings.HasSuffix(row, "/") && strings.HasPrefix(path, row) {
			return row
		}
	}
	return ""
}

func TestRepositories_areReadOnlyThroughThePermissionCheck(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		row := permitted(s.path)
		ast.Inspect(s.file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && readsPast(sel) {
				used[row] = true
				if row == "" {
					t.Errorf("%s: %s reads repositories past the gate: take them from account.Repos, which knows what the viewer may see", s.at(sel), sel.Sel.Name)
				}
			}
			return true
		})
	}
	for row := range pastTheGate {
		if !used[row] && row != "cluster/catalog/" {
			t.Errorf("pastTheGate permits %s, which reads no repositories past the gate: take the row away", row)
		}
	}
}
