package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// advice is what a message must not say: the data may be good, and what is moved away
// can be put back.
var advice = regexp.MustCompile(`(?i)\b(empty|delete|remove|erase|wipe|clear) (it|its|this|that|the|one of the) ?[a-z ]*\b(director(y|ies)|data|disk|raft|log|snapshots?)\b|\bempty (it|one of|and) |\bemptied (data )?director|\brm -r`)

func TestMessages_neverAdviseToDeleteData(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"empty the data directory to let this node join", "Empty it to let the node join", "delete its data directory",
		"wipe the disk", "rm -rf data", "without an emptied data directory", "remove the directory of one of them", "empty one of the two",
	} {
		if !advice.MatchString(bad) {
			t.Errorf("%q is not found", bad)
		}
	}

	checked := 0
	for _, folder := range []string{"cluster", "cmd", "node", "api", "shard"} {
		err := filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					text, _ := strconv.Unquote(l.Value)
					checked++
					if advice.MatchString(text) {
						t.Errorf("%s: %q: advise to move the data away, and to keep it", path, text)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if checked < 1000 {
		t.Errorf("only %d texts were looked at", checked)
	}
}
