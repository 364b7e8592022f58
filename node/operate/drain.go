package operate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// Drainer takes nodes out of the cluster, and back.
type Drainer struct {
	cluster  Cluster
	gate     *account.Gate
	replicas int // copies of everything that are wanted
}

// DrainResponse says how far a drain has come.
type DrainResponse struct {
	Node      string `json:"node"`
	Done      bool   `json:"done"`
	Remaining int    `json:"remaining"`        // repositories that anybody is shown of which others have too few copies
	Questions int    `json:"questions"`        // that the node still answers
	Warning   string `json:"warning,omitzero"` // what is lost by this drain; "" for nothing
}

// NodeResponse names the node that was changed.
type NodeResponse struct {
	Node string `json:"node"`
}

// RemoveResponse lists the repositories that lost their last copy, as far as the owner may
// see them.
type RemoveResponse struct {
	Node string   `json:"node"`
	Lost []string `json:"lost"`
}

// Drain begins or watches the drain of a node: calling it again tells the
// progress. The last node that could hold the data is not drained.
func (d *Drainer) Drain(ctx context.Context, _ account.Owner, node string) (*DrainResponse, error) {
	m, err := d.member(node)
	if err != nil {
		return nil, err
	}

	// What others have been told before counts: they may have drained the rest.
	if m.State != catalog.MemberDraining {
		if _, err := d.cluster.Sync(ctx); err != nil {
			return nil, call.WriteError(err)
		}
	}

	// Somebody has to be there who takes what it holds.
	view := d.cluster.View()
	// They count only where they can be reached: what nobody takes now is not given away.
	others := d.takers(view, m.ID)
	if len(others) == 0 {
		return nil, d.noTaker(view, m)
	}

	if m.State != catalog.MemberDraining {
		// Once: calling again tells how far it is.
		if err := d.cluster.Drain(ctx, m.ID); err != nil {
			return nil, call.WriteError(err)
		}
		view = d.cluster.View()
	}

	out := &DrainResponse{Node: m.ID, Questions: questionsAt(view, m.ID)}
	out.Remaining, out.Done = d.Left(view, m.ID)

	// Fewer nodes than copies is no reason to refuse, but to be said.
	if len(others) < d.replicas {
		left := catalog.Counted(len(others), "node is", "nodes are")
		out.Warning = fmt.Sprintf("%d copies of everything are wanted, and only %s left to hold them: add a node, or take one back with `shoal undrain`", d.replicas, left)
	}
	return out, nil
}

// Undrain takes back a node that drains, or is drained: it gets data and jobs
// again. One that is not being drained stays as it is.
func (d *Drainer) Undrain(ctx context.Context, _ account.Owner, node string) (*NodeResponse, error) {
	m, err := d.member(node)
	if err != nil {
		return nil, err
	}

	// One that drains no more is no failure, so that it can be asked for twice.
	if err := d.cluster.Undrain(ctx, m.ID); err != nil {
		return nil, call.WriteError(err)
	}
	return &NodeResponse{Node: m.ID}, nil
}

// Lead makes a node the leader, as before the machine of the one that leads is worked on.
func (d *Drainer) Lead(ctx context.Context, _ account.Owner, node string) (*NodeResponse, error) {
	m, err := d.member(node)
	if err != nil {
		return nil, err
	}
	if err := d.cluster.Lead(ctx, m.ID); err != nil {
		return nil, call.WriteError(err)
	}
	return &NodeResponse{Node: m.ID}, nil
}

// noTaker says why a node is not drained: nobody could take what it holds.
func (d *Drainer) noTaker(view *catalog.View, m *catalog.Member) error {
	// Why nobody else takes anything, one by one.
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

	// What somebody wants who drains the only node, most often, is to stop it for a while.
	do := "Start another node that joins this one and drain it then; to stop it for a while, just stop it: its data stays"
	if m.State == catalog.MemberDraining {
		do = "Start another node that joins this one, or take it back with `shoal undrain " + m.ID + "`"
	}

	return call.Fail(call.ErrUnable, "node %s cannot give away what it holds: %s. %s", m.ID, why, do)
}

// fewestDigits is how much of the id of a node names it, where no other begins so.
const fewestDigits = 4

// member finds a node that has not been removed by its id, the beginning of that, its
// name, its address, or the host of that.
func (d *Drainer) member(name string) (*catalog.Member, error) {
	var all []string // for who named none
	var found []*catalog.Member
	for m := range d.cluster.View().Members() {
		switch {
		case m.State == catalog.MemberRemoved:
			continue

		// An id is exact; all else may fit several.
		case m.ID == name:
			return m, nil
		case m.Addr == name || strings.HasPrefix(m.Addr, name+":") || name != "" && d.cluster.NameOf(m.ID) == name || len(name) >= fewestDigits && strings.HasPrefix(m.ID, name):
			found = append(found, m)
		}
		all = append(all, fmt.Sprintf("%s (%s)", m.ID, m.Addr))
	}

	// Nothing is done to a node that is only likely to be meant.
	if len(found) == 1 {
		return found[0], nil
	}

	why := "there is no node %q"
	if len(found) > 1 {
		why = "more than one node is called %q"
	}
	return nil, call.Fail(call.ErrNotFound, why+"; the nodes are %s", name, FirstFew(all))
}

// Remove forgets a node for good. Where it has the last copy of something
// that is refused, unless the loss is accepted; the mirrors and shards are
// then made anew from the code hosts. What the owner is not shown is kept from
// loss as well, without a name or a number.
func (d *Drainer) Remove(ctx context.Context, by account.Owner, node string, acceptLoss bool) (*RemoveResponse, error) {
	m, err := d.member(node)
	if err != nil {
		return nil, err
	}

	// What others have been told before counts: a copy that this node knows of may be gone.
	if _, err := d.cluster.Sync(ctx); err != nil {
		return nil, call.WriteError(err)
	}

	// A node that is drained has its copies as long as it is there.
	seen, err := d.gate.Repos(by.Viewer())
	if err != nil {
		return nil, err
	}

	// One copy elsewhere is enough: the others are made from it.
	only := d.onlyCopies(seen.View, m.ID, 1, d.cluster.Alive)

	out := &RemoveResponse{Node: m.ID}
	for _, id := range only {
		if repo := seen.View.Repo(id); repo != nil && seen.Set.Contains(id) {
			out.Lost = append(out.Lost, repo.Name)
		}
	}
	slices.Sort(out.Lost)

	if len(only) > 0 && !acceptLoss {
		// Told with the names: who accepts the loss must know what it is.
		what := "something"
		if len(out.Lost) > 0 {
			what = fmt.Sprintf("%d of the repositories (%s)", len(out.Lost), FirstFew(out.Lost))
		}
		return out, call.Fail(call.ErrHeld, "node %s has the last copy of %s: drain it, or accept the loss", m.ID, what)
	}

	if err := d.cluster.Remove(ctx, m.ID); err != nil {
		return nil, call.WriteError(err)
	}
	return out, nil
}

// takers is the nodes beside one that can be reached and may hold data.
func (d *Drainer) takers(view *catalog.View, but string) (ids []string) {
	for m := range view.Members() {
		if m.ID != but && m.State == catalog.MemberAlive && d.cluster.Alive(m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// questionsAt is how many questions a node answers.
func questionsAt(view *catalog.View, node string) (n int) {
	for h := range view.RunningThreads() {
		if h.Run.Node == node {
			n++
		}
	}
	return n
}

// Left is how many repositories a node that leaves has something of that others
// have too few copies of, and whether it can be stopped: then it answers no question
// any more. What is hidden is not counted, and given away before the node can go all
// the same.
func (d *Drainer) Left(view *catalog.View, leaving string) (left int, done bool) {
	// Copies on other nodes that leave are none: two that are drained at once would
	// each count on the other.
	stays := func(id string) bool {
		m := view.Member(id)
		return m != nil && m.State == catalog.MemberAlive && d.cluster.Alive(id)
	}
	only := d.onlyCopies(view, leaving, d.wanted(view, leaving), stays)

	shown := view.Shown()
	for _, id := range only {
		if repo := view.Repo(id); repo != nil && shown(repo) {
			left++
		}
	}
	return left, len(only) == 0 && questionsAt(view, leaving) == 0
}

// wanted is the number of copies that there should be beside a node that
// leaves.
func (d *Drainer) wanted(view *catalog.View, leaving string) int {
	return max(min(d.replicas, len(d.takers(view, leaving))), 1)
}

// onlyCopies lists the repositories of which a node has something that fewer
// than want other members have, of those that count.
func (d *Drainer) onlyCopies(view *catalog.View, node string, want int, counts func(id string) bool) []catalog.RepoID {
	var out []catalog.RepoID
	for repo := range view.Repos() {
		// Mirror and index files are placed each by itself, so that each may be short of copies.
		keys := []string{catalog.MirrorKey(repo.ID)}
		for _, s := range repo.Shards {
			keys = append(keys, catalog.ShardKey(s.ID))
		}

		if slices.ContainsFunc(keys, func(key string) bool { return onlyCopy(view, key, node, want, counts) }) {
			out = append(out, repo.ID)
		}
	}
	return out
}

// onlyCopy is onlyCopies of one thing.
func onlyCopy(view *catalog.View, key, node string, want int, counts func(id string) bool) bool {
	// Of what a node does not hold it cannot be the last holder.
	holders := view.Holders(key)
	if !slices.Contains(holders, node) {
		return false
	}

	others := 0
	// The node itself leaves, and one that does not answer has nothing to give.
	for _, id := range holders {
		if id != node && counts(id) {
			others++
		}
	}
	return others < want
}

// FirstFew lists the first five of some names, and says where there are more.
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
