package web

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
)

// crowded is a repository whose root has more entries than a tree shows. Like a node it lists
// paths in the requested order, up to the limit.
type crowded struct{ browse.Reader }

func (crowded) Tree(_ context.Context, _ catalog.Viewer, r browse.TreeRequest) (*browse.TreeResponse, error) {
	var root browse.TreeNode
	deep := browse.TreeNode{Name: "zoo", Path: "zoo", Type: "tree"}
	left := r.Max
	for _, path := range r.Paths {
		switch path {
		case "zoo/ape.go", "zoo":
			deep.Children = []browse.TreeNode{{Name: "ape.go", Path: "zoo/ape.go", Type: "blob"}}
			left--
		case "":
			for i := range left {
				name := fmt.Sprintf("a%03d", i)
				root.Children = append(root.Children, browse.TreeNode{Name: name, Path: name, Type: "blob"})
			}
			left = 0
		}
		if left <= 0 {
			break
		}
	}
	root.Children = append(root.Children, deep)
	return &browse.TreeResponse{Root: root, Cut: true}, nil
}

// The tree shows the file, however many entries the directories above it have.
func TestFileTree_alwaysShowsTheOpenFile(t *testing.T) {
	t.Parallel()
	p := New(Deps{Browse: crowded{}})
	leaves := p.reading.sources.treeBeside(t.Context(), &layout.Visit{}, place{Repo: "r", Path: "zoo/ape.go"})
	last := leaves[len(leaves)-1]
	if last.Name != "zoo" || len(last.Below) != 1 || !last.Below[0].Here {
		t.Errorf("of %d entries the last is %+v", len(leaves), last)
	}
	if leaves[0].Name != "a000" || !strings.HasPrefix(leaves[0].URL, "/browse/r/-/blob/") {
		t.Errorf("the first is %+v", leaves[0])
	}
}
