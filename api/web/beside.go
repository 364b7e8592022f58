package web

import (
	"context"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/browse"
)

// mostLeaves limits the entries of the tree next to a file.
const mostLeaves = 300

// leaf is a file or directory in the tree next to a file. A directory above the file has
// children; others link to their page.
type leaf struct {
	Name, URL string
	Dir, Here bool
	Below     []leaf
}

// beside returns the tree next to a file: the directories above it with their entries. It returns
// nil if they cannot be read.
func (p *sources) beside(ctx context.Context, v *layout.Visit, l place) []leaf {
	// The file first, then the directories from its own up, because a large repository exceeds
	// the limit.
	above := []string{l.Path}
	for i := len(l.Path) - 1; i >= 0; i-- {
		if l.Path[i] == '/' {
			above = append(above, l.Path[:i])
		}
	}
	above = append(above, "")
	r, err := p.reader.Tree(ctx, v.Viewer, browse.TreeRequest{Repo: l.Repo, Ref: l.Rev, Paths: above, Max: mostLeaves})
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

		// Other directories have their own pages.
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
