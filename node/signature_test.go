package node_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/symbols"
)

// Definitions have their source if requested, also if they are so close that their lines are read
// together. Nothing else in the answer changes.
func TestDefinitions_haveTheirSourceOnRequest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "r"), map[string]string{
		"a.go": "package a\n\ntype Orca struct {\n\tN int\n}\n\n// Swim swims.\nfunc (o Orca) Swim(\n\tfar int, // in miles\n\tdeep int,\n) (int, error) {\n\treturn far + deep, nil\n}\n\nfunc Swim() {}\n",
		"b.py": "def Swim(far=1,\n         deep=2):\n    return Swim(far)\n",
	})
	n := nodetest.Start(t, nodetest.Config{File: local(dir), Edit: func(o *node.Options) { o.Ctags = "" }}) // from PATH
	n.Wait("the symbols", found(n, "sym:Swim", "local/r:a.go", "local/r:b.py"))

	signatures := func(what string, find func(symbols.SymbolRequest) (*symbols.SymbolResponse, error), signed bool) (of, rest string) {
		t.Helper()
		r, err := find(symbols.SymbolRequest{Symbol: "Swim", IncludeDefinitions: true, Signature: signed})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var list, others []string
		for _, f := range r.Files {
			for _, m := range f.Matches {
				if m.Signature != "" {
					list = append(list, m.Signature)
				}
				others = append(others, fmt.Sprintf("%s:%d %q %s %s %v", f.Path, m.Range.Start.Line, m.Line, m.Kind, m.ParentName, m.Around))
			}
		}
		return strings.Join(list, "; "), strings.Join(others, "\n")
	}
	for what, find := range map[string]func(symbols.SymbolRequest) (*symbols.SymbolResponse, error){
		"definitions": func(r symbols.SymbolRequest) (*symbols.SymbolResponse, error) {
			return n.Search.Definitions(t.Context(), catalog.Operator(), r)
		},
		"references": func(r symbols.SymbolRequest) (*symbols.SymbolResponse, error) {
			return n.Search.References(t.Context(), catalog.Operator(), r)
		},
	} {
		got, rest := signatures(what, find, true)
		for _, want := range []string{"func (o Orca) Swim( far int, deep int, ) (int, error)", "func Swim()", "def Swim(far=1, deep=2):"} {
			if strings.Count(got+"; ", want+"; ") != 1 {
				t.Errorf("%s: %q has not once %q", what, got, want)
			}
		}
		if strings.Count(got, "; ") != 2 {
			t.Errorf("%s: %q, want three", what, got)
		}
		if none, plain := signatures(what, find, false); none != "" || plain != rest {
			t.Errorf("%s without signatures: %q\n%s\nwith them:\n%s", what, none, plain, rest)
		}
	}
}
