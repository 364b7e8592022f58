package node

import (
	"context"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Drain begins or watches the drain of a node: calling it again tells the progress.
func (n *Node) Drain(ctx context.Context, v Viewer, req DrainRequest) (*DrainResponse, error) {
	if err := owner(v); err != nil {
		return nil, err
	}
	m := n.cluster.View().Member(req.Node)
	if m == nil || m.State == catalog.MemberRemoved {
		return nil, fail(ErrNotFound, "there is no node %q", req.Node)
	}
	if m.State != catalog.MemberDraining {
		if err := n.cluster.Drain(ctx, req.Node); err != nil {
			return nil, unavailable(err)
		}
	}
	view := n.cluster.View()
	only := n.onlyCopies(view, req.Node, n.wanted(view))
	return &DrainResponse{Node: req.Node, Remaining: len(only), Done: len(only) == 0}, nil
}

// Remove forgets a node for good. Where it has the last copy of something
// that is refused, unless the loss is accepted; the mirrors and shards are
// then made anew from the code hosts.
func (n *Node) Remove(ctx context.Context, v Viewer, req RemoveRequest) (*RemoveResponse, error) {
	if err := owner(v); err != nil {
		return nil, err
	}
	view := n.cluster.View()
	m := view.Member(req.Node)
	if m == nil || m.State == catalog.MemberRemoved {
		return nil, fail(ErrNotFound, "there is no node %q", req.Node)
	}
	out := &RemoveResponse{Node: req.Node}
	for _, id := range n.onlyCopies(view, req.Node, 1) {
		if repo := view.Repo(id); repo != nil {
			out.Lost = append(out.Lost, repo.Name)
		}
	}
	slices.Sort(out.Lost)
	if len(out.Lost) > 0 && !req.AcceptLoss {
		return out, fail(ErrExists, "node %s has the last copy of %d repositories (%s): drain it, or accept the loss", req.Node, len(out.Lost), firstFew(out.Lost))
	}
	if err := n.cluster.Remove(ctx, req.Node); err != nil {
		return nil, unavailable(err)
	}
	return out, nil
}

// wanted is the number of copies that there should be beside a node that
// leaves.
func (n *Node) wanted(view *catalog.View) int {
	others := -1
	for m := range view.Members() {
		if m.State != catalog.MemberRemoved {
			others++
		}
	}
	return max(min(n.opt.Replicas, others), 1)
}

// onlyCopies lists the repositories of which a node has something that fewer
// than want live other members have.
func (n *Node) onlyCopies(view *catalog.View, node string, want int) []catalog.RepoID {
	var out []catalog.RepoID
	for repo := range view.Repos() {
		keys := []string{catalog.MirrorKey(repo.ID)}
		for _, s := range repo.Shards {
			keys = append(keys, catalog.ShardKey(s.ID))
		}
		if slices.ContainsFunc(keys, func(key string) bool { return n.onlyCopy(view, key, node, want) }) {
			out = append(out, repo.ID)
		}
	}
	return out
}

func (n *Node) onlyCopy(view *catalog.View, key, node string, want int) bool {
	holders := view.Holders(key)
	if !slices.Contains(holders, node) {
		return false
	}
	others := 0
	for _, id := range holders {
		if id != node && n.cluster.Alive(id) {
			others++
		}
	}
	return others < want
}

func firstFew(names []string) string {
	out := ""
	for i, name := range names {
		if i == 5 {
			return out + ", ..."
		}
		if i > 0 {
			out += ", "
		}
		out += name
	}
	return out
}
