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

// Definitions with more uses come first. A node counts uses once for each index, and again for
// another index.
func TestDefinitions_withMoreUsesComeFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repo := nodetest.NewRepo(t, filepath.Join(dir, "r"), map[string]string{
		"east/tern.py": "def Tern():\n    pass\n",
		"west/tern.py": "def Tern():\n    return 1\n",
		"west/fly.py":  "Tern()\nTern()\n",
	})
	n := nodetest.Start(t, nodetest.Config{File: local(dir), Edit: func(o *node.Options) { o.Ctags = "" }})

	first := func(want string) func() error {
		return func() error {
			r, err := n.Search.Definitions(t.Context(), catalog.Operator(), symbols.SymbolRequest{Symbol: "Tern"})
			if err != nil {
				return err
			}
			var paths []string
			for _, f := range r.Files {
				paths = append(paths, f.Path)
			}
			if got := strings.Join(paths, " "); got != want {
				return fmt.Errorf("defined in %s, want %s", got, want)
			}
			return nil
		}
	}
	n.Wait("the symbols", first("west/tern.py east/tern.py"))
	if err := first("west/tern.py east/tern.py")(); err != nil {
		t.Error("asked again:", err)
	}

	repo.Commit(map[string]string{"east/fly.py": strings.Repeat("Tern()\n", 3)})
	n.Wait("the order of the new index", first("east/tern.py west/tern.py"))
}
