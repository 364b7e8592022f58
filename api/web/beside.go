package web

import (
	"context"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/browse"
)

// maxLeaves limits the entries of the tree beside a file.
const maxLeaves = 300

// leaf is a file or directory in the tree beside a file. Only a directory above the file has its
// entries in Below.
type leaf struct {
	Name, URL string
	Dir, Here bool
	Below     []leaf
}

// treeBeside returns the tree beside a file: the directories above it with their entries. It returns
// nil if they cannot be read.
func (p *sources) treeBeside(ctx context.Context, v *layout.Visit, l place) []leaf {
	// Request the file, then its directory, and the root last: what exceeds the limit is left out.
	requested := []string{l.Path}
	for i := len(l.Path) - 1; i >= 0; i-- {
		if l.Path[i] == '/' {
			requested = append(requested, l.Path[:i])
		}
	}
	requested = append(requested, "")
	r, err := p.reader.Tree(ctx, v.Viewer, browse.TreeRequest{Repo: l.Repo, Ref: l.Rev, Paths: requested, Max: maxLeaves})
	if err != nil {
		return nil
	}
	return leavesOf(r.Root.Children, l)
}

func leavesOf(nodes []browse.TreeNode, l place) []leaf {
	out := make([]leaf, 0, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		row := leaf{Name: n.Name, URL: l.At("blob", n.Path), Dir: n.Type == "tree", Here: n.Path == l.Path}

		if row.Dir {
			row.URL = l.At("tree", n.Path)
			if strings.HasPrefix(l.Path, n.Path+"/") {
				row.Below = leavesOf(n.Children, l)
			}
		}

		out = append(out, row)
	}
	return out
}
