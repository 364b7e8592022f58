package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// Drain begins or watches the drain of a node: calling it again tells the
// progress. The last node that could hold the data is not drained.
func (n *Node) Drain(ctx context.Context, _ account.Owner, req DrainRequest) (*DrainResponse, error) {
	m, err := n.member(req.Node)
	if err != nil {
		return nil, err
	}

	// What others have been told before counts: they may have drained the rest.
	if m.State != catalog.MemberDraining {
		if _, err := n.cluster.Sync(ctx); err != nil {
			return nil, call.WriteError(err)
		}
	}
	view := n.cluster.View()
	others := n.takers(view, m.ID)
	if len(others) == 0 {
		return nil, n.noTaker(view, m)
	}

	if m.State != catalog.MemberDraining {
		if err := n.cluster.Drain(ctx, m.ID); err != nil {
			return nil, call.WriteError(err)
		}
		view = n.cluster.View()
	}
	left := len(n.onlyCopies(view, m.ID, n.wanted(view, m.ID)))
	out := &DrainResponse{Node: m.ID, Remaining: left, Done: left == 0}
	if len(others) < n.opt.Replicas {
		out.Warning = fmt.Sprintf("%d copies of everything are wanted, and nodes that hold data are %d without this one: add a node, or take one back with `shoal undrain`", n.opt.Replicas, len(others))
	}
	return out, nil
}

// Undrain takes back a node that drains, or is drained: it gets data and jobs
// again. One that is not being drained stays as it is.
func (n *Node) Undrain(ctx context.Context, _ account.Owner, req DrainRequest) (*UndrainResponse, error) {
	m, err := n.member(req.Node)
	if err != nil {
		return nil, err
	}
	if err := n.cluster.Undrain(ctx, m.ID); err != nil {
		return nil, call.WriteError(err)
	}
	return &UndrainResponse{Node: m.ID}, nil
}

// noTaker says why a node is not drained: nobody could take what it holds.
func (n *Node) noTaker(view *catalog.View, m *catalog.Member) error {
	var others []string
	for o := range view.Members() {
		switch {
		case o.ID == m.ID || o.State == catalog.MemberRemoved:
		case o.State == catalog.MemberDraining:
			others = append(others, o.ID+" is being drained")
		default:
			others = append(others, o.ID+" cannot be reached")
		}
	}
	why := "it is the only node"
	if len(others) > 0 {
		why = strings.Join(others, ", ")
	}
	do := "Start another node that joins this one and drain it then; to stop it for a while, just stop it: its data stays"
	if m.State == catalog.MemberDraining {
		do = "Start another node that joins this one, or take it back with `shoal undrain " + m.ID + "`"
	}
	return call.Fail(call.ErrUnable, "node %s cannot give away what it holds: %s. %s", m.ID, why, do)
}

// fewestDigits is how much of the id of a node names it, where no other begins so.
const fewestDigits = 4

// member finds a node that has not been removed by its id, the beginning of that, or
// its address.
func (n *Node) member(name string) (*catalog.Member, error) {
	var all []string
	var found []*catalog.Member
	for m := range n.cluster.View().Members() {
		switch {
		case m.State == catalog.MemberRemoved:
			continue
		case m.ID == name:
			return m, nil
		case m.Addr == name || len(name) >= fewestDigits && strings.HasPrefix(m.ID, name):
			found = append(found, m)
		}
		all = append(all, fmt.Sprintf("%s (%s)", m.ID, m.Addr))
	}
	if len(found) == 1 {
		return found[0], nil
	}
	why := "there is no node %q"
	if len(found) > 1 {
		why = "more than one node is called %q"
	}
	return nil, call.Fail(call.ErrNotFound, why+"; the nodes are %s", name, firstFew(all))
}

// Remove forgets a node for good. Where it has the last copy of something
// that is refused, unless the loss is accepted; the mirrors and shards are
// then made anew from the code hosts.
func (n *Node) Remove(ctx context.Context, _ account.Owner, req RemoveRequest) (*RemoveResponse, error) {
	m, err := n.member(req.Node)
	if err != nil {
		return nil, err
	}

	view := n.cluster.View()
	out := &RemoveResponse{Node: m.ID}
	for _, id := range n.onlyCopies(view, m.ID, 1) {
		if repo := view.Repo(id); repo != nil {
			out.Lost = append(out.Lost, repo.Name)
		}
	}
	slices.Sort(out.Lost)
	if len(out.Lost) > 0 && !req.AcceptLoss {
		return out, call.Fail(call.ErrExists, "node %s has the last copy of %d repositories (%s): drain it, or accept the loss", m.ID, len(out.Lost), firstFew(out.Lost))
	}
	if err := n.cluster.Remove(ctx, m.ID); err != nil {
		return nil, call.WriteError(err)
	}
	return out, nil
}

// takers is the nodes beside one that can be reached and may hold data.
func (n *Node) takers(view *catalog.View, but string) (ids []string) {
	for m := range view.Members() {
		if m.ID != but && m.State == catalog.MemberAlive && n.cluster.Alive(m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// wanted is the number of copies that there should be beside a node that
// leaves.
func (n *Node) wanted(view *catalog.View, leaving string) int {
	return max(min(n.opt.Replicas, len(n.takers(view, leaving))), 1)
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
