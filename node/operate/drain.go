package operate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// Drainer takes nodes out of the cluster and back.
type Drainer struct {
	cluster  Cluster
	gate     *account.Gate
	replicas int // wanted copies of each thing
}

// DrainResponse is the progress of a drain.
type DrainResponse struct {
	Node      string `json:"node"`
	Done      bool   `json:"done"`
	Remaining int    `json:"remaining"`        // shown repositories with too few copies on other nodes
	Questions int    `json:"questions"`        // questions that the node still answers
	Warning   string `json:"warning,omitzero"` // what this drain loses; "": nothing
}

// NodeResponse names the changed node.
type NodeResponse struct {
	Node string `json:"node"`
}

// RemoveResponse lists the repositories that lost their last copy, if the owner may see them.
type RemoveResponse struct {
	Node string   `json:"node"`
	Lost []string `json:"lost"`
}

// Drain starts draining a node, or returns the progress if it is draining. It refuses to drain the
// last node that can hold data.
func (d *Drainer) Drain(ctx context.Context, _ account.Owner, node string) (*DrainResponse, error) {
	m, err := d.findMember(node)
	if err != nil {
		return nil, err
	}

	// Catch up first: other nodes may be draining by now.
	if m.State != catalog.MemberDraining {
		if _, err := d.cluster.Sync(ctx); err != nil {
			return nil, call.WriteError(err)
		}
	}

	// At least one other node must be able to take the data.
	view := d.cluster.View()
	others := d.receivers(view, m.ID)
	if len(others) == 0 {
		return nil, d.noReceiverError(view, m)
	}

	if m.State != catalog.MemberDraining {
		// Only the first call changes anything. Later ones return the progress.
		if err := d.cluster.Drain(ctx, m.ID); err != nil {
			return nil, call.WriteError(err)
		}
		view = d.cluster.View()
	}

	out := &DrainResponse{Node: m.ID, Questions: countQuestions(view, m.ID)}
	out.Remaining, out.Done = d.Left(view, m.ID)

	// With fewer nodes than copies the drain goes on, with a warning.
	if len(others) < d.replicas {
		othersText := catalog.Counted(len(others), "node is", "nodes are")
		out.Warning = fmt.Sprintf("%d copies of everything are wanted, and only %s left to hold them: add a node, or take one back with `shoal undrain`", d.replicas, othersText)
	}
	return out, nil
}

// Undrain makes a draining or drained node an ordinary one again, which gets data and jobs. Other
// nodes are unchanged.
func (d *Drainer) Undrain(ctx context.Context, _ account.Owner, node string) (*NodeResponse, error) {
	m, err := d.findMember(node)
	if err != nil {
		return nil, err
	}

	// Undraining twice is no error.
	if err := d.cluster.Undrain(ctx, m.ID); err != nil {
		return nil, call.WriteError(err)
	}
	return &NodeResponse{Node: m.ID}, nil
}

// Lead makes a node the leader, for example before the machine of the present leader is serviced.
func (d *Drainer) Lead(ctx context.Context, _ account.Owner, node string) (*NodeResponse, error) {
	m, err := d.findMember(node)
	if err != nil {
		return nil, err
	}
	if err := d.cluster.Lead(ctx, m.ID); err != nil {
		return nil, call.WriteError(err)
	}
	return &NodeResponse{Node: m.ID}, nil
}

// noReceiverError returns the error for a node whose data no other node can take.
func (d *Drainer) noReceiverError(view *catalog.View, m *catalog.Member) error {
	// Say for each other node why it takes nothing.
	var others []string
	for o := range view.Members() {
		switch {
		case o.ID == m.ID || o.State == catalog.MemberRemoved:
		case o.State == catalog.MemberDraining:
			others = append(others, d.called(o.ID)+" is being drained")
		default:
			others = append(others, d.called(o.ID)+" cannot be reached")
		}
	}

	why := "it is the only node"
	if len(others) > 0 {
		why = strings.Join(others, ", ")
	}

	// An operator who drains the only node usually wants to stop it for a while.
	do := "Start another node that joins this one and drain it then; to stop it for a while, just stop it: its data stays"
	if m.State == catalog.MemberDraining {
		do = "Start another node that joins this one, or take it back with `shoal undrain " + m.ID + "`"
	}

	return call.Fail(call.ErrUnable, "node %s cannot give away what it holds: %s. %s", d.called(m.ID), why, do)
}

// called returns how messages name a node.
func (d *Drainer) called(node string) string { return cluster.Called(d.cluster.NameOf(node), node) }

// minIDPrefix is the shortest prefix of a node's id that may name it.
const minIDPrefix = 4

// findMember finds a member that is not removed, by its id or a prefix of it, its name, its
// address, or the host in that.
func (d *Drainer) findMember(name string) (*catalog.Member, error) {
	var all []string // for the error
	var found []*catalog.Member
	for m := range d.cluster.View().Members() {
		switch {
		case m.State == catalog.MemberRemoved:
			continue

		// An id matches exactly. Anything else may match several.
		case m.ID == name:
			return m, nil
		case m.Addr == name || strings.HasPrefix(m.Addr, name+":") || name != "" && d.cluster.NameOf(m.ID) == name || len(name) >= minIDPrefix && strings.HasPrefix(m.ID, name):
			found = append(found, m)
		}
		all = append(all, fmt.Sprintf("%s at %s", d.called(m.ID), m.Addr))
	}

	// An ambiguous name changes nothing.
	if len(found) == 1 {
		return found[0], nil
	}

	why := "there is no node %q"
	if len(found) > 1 {
		why = "more than one node is called %q"
	}
	return nil, call.Fail(call.ErrNotFound, why+"; the nodes are %s", name, strings.Join(all, ", "))
}

// Remove forgets a node for good. If the node has the last copy of anything, Remove refuses, unless
// the caller accepts the loss. Mirrors and shards are then made again from the code hosts.
// Repositories that the owner may not see are protected too, without a name or a count.
func (d *Drainer) Remove(ctx context.Context, by account.Owner, node string, acceptLoss bool) (*RemoveResponse, error) {
	m, err := d.findMember(node)
	if err != nil {
		return nil, err
	}

	// Catch up first: a copy elsewhere may be gone by now.
	if _, err := d.cluster.Sync(ctx); err != nil {
		return nil, call.WriteError(err)
	}

	// The copies of a drained node count until it is removed.
	seen, err := d.gate.Repos(by.Viewer())
	if err != nil {
		return nil, err
	}

	// From one copy elsewhere the other copies can be made.
	only := d.reposWithFewCopies(seen.View, m.ID, 1, d.cluster.Alive)

	out := &RemoveResponse{Node: m.ID}
	for _, id := range only {
		if repo := seen.View.Repo(id); repo != nil && seen.Set.Contains(id) {
			out.Lost = append(out.Lost, repo.Name)
		}
	}
	slices.Sort(out.Lost)

	if len(only) > 0 && !acceptLoss {
		// The message lists names, because whoever accepts the loss must know it.
		lossText := "something"
		if len(out.Lost) > 0 {
			lossText = fmt.Sprintf("%d of the repositories (%s)", len(out.Lost), FirstFew(out.Lost))
		}
		return out, call.Fail(call.ErrHeld, "node %s has the last copy of %s: drain it, or accept the loss", d.called(m.ID), lossText)
	}

	if err := d.cluster.Remove(ctx, m.ID); err != nil {
		return nil, call.WriteError(err)
	}
	return out, nil
}

// receivers returns the other nodes that are reachable and may hold data.
func (d *Drainer) receivers(view *catalog.View, but string) (ids []string) {
	for m := range view.Members() {
		if m.ID != but && m.State == catalog.MemberAlive && d.cluster.Alive(m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// countQuestions returns how many questions a node answers now.
func countQuestions(view *catalog.View, node string) (n int) {
	for h := range view.RunningThreads() {
		if h.Run.Node == node {
			n++
		}
	}
	return n
}

// Left returns how many shown repositories on a leaving node have too few copies elsewhere, and
// whether the node can be stopped. A node can be stopped when no copy is missing, hidden
// repositories included, and it answers no question.
func (d *Drainer) Left(view *catalog.View, leaving string) (left int, done bool) {
	// Copies on other leaving nodes do not count. Otherwise two draining nodes would each count on
	// the other.
	stays := func(id string) bool {
		m := view.Member(id)
		return m != nil && m.State == catalog.MemberAlive && d.cluster.Alive(id)
	}
	only := d.reposWithFewCopies(view, leaving, d.wantedCopies(view, leaving), stays)

	shown := view.Shown()
	for _, id := range only {
		if repo := view.Repo(id); repo != nil && shown(repo) {
			left++
		}
	}
	return left, len(only) == 0 && countQuestions(view, leaving) == 0
}

// wantedCopies returns how many copies others should have when a node leaves.
func (d *Drainer) wantedCopies(view *catalog.View, leaving string) int {
	return max(min(d.replicas, len(d.receivers(view, leaving))), 1)
}

// reposWithFewCopies returns the repositories on a node of which a mirror or shard has fewer than
// want copies on other members. Only members for which counts returns true count.
func (d *Drainer) reposWithFewCopies(view *catalog.View, node string, want int, counts func(id string) bool) []catalog.RepoID {
	var out []catalog.RepoID
	for repo := range view.Repos() {
		// Mirror and shards are placed separately, so each may have too few copies.
		keys := []string{catalog.MirrorKey(repo.ID)}
		for _, s := range repo.Shards {
			keys = append(keys, catalog.ShardKey(s.ID))
		}

		if slices.ContainsFunc(keys, func(key string) bool { return hasFewCopies(view, key, node, want, counts) }) {
			out = append(out, repo.ID)
		}
	}
	return out
}

// hasFewCopies reports whether a node holds a mirror or shard that has fewer than want copies on
// other members.
func hasFewCopies(view *catalog.View, key, node string, want int, counts func(id string) bool) bool {
	holders := view.Holders(key)
	if !slices.Contains(holders, node) {
		return false
	}

	others := 0
	for _, id := range holders {
		if id != node && counts(id) {
			others++
		}
	}
	return others < want
}

// FirstFew joins the first five names, with "..." if there are more.
func FirstFew(names []string) string {
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
