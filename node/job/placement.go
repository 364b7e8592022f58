package job

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/place"
)

// The pace of placement.
const (
	deadAfter    = 5 * time.Minute  // a node that is silent for so long is replaced
	balanceAfter = 10 * time.Minute // data moves for balance so often, after members change, and by growth
	grownBy      = 4                // growth: all is indexed and a part of this size is new. A young cluster is placed before sizes are known
	placeBatch   = 500              // groups of one command
	diskFull     = 85               // percent: takes nothing new
	diskStop     = 95               // percent: nothing is pulled or built
)

// Placement is all that a plan of placement depends on.
type Placement struct {
	View    *catalog.View
	Nodes   []Node
	Copies  int
	Balance bool
	Extra   map[uint64]int // copies more of units that are searched much, by number
}

// Place says which units should be held by whom, where that differs from the
// catalog. A cluster of one member places nothing: everything is there.
func Place(in Placement) []catalog.Command {
	members := in.members()
	if len(members) < 2 {
		return nil
	}
	units, numbers := in.units()
	targets := place.Plan(members, units, in.Copies, in.Balance)
	var groups []catalog.Group
	for i, ids := range targets {
		if old := in.View.Group(numbers[i]); len(ids) == 0 || old != nil && slices.Equal(idsOf(in.View, old), ids) {
			continue
		}
		g := catalog.Group{Number: numbers[i]}
		for _, id := range ids {
			g.Nodes = append(g.Nodes, in.View.Member(id).Number)
		}
		groups = append(groups, g)
	}
	var cmds []catalog.Command
	for part := range slices.Chunk(groups, placeBatch) {
		cmds = append(cmds, &catalog.Place{Groups: part})
	}
	return cmds
}

func (in *Placement) members() []place.Member {
	var members []place.Member
	for _, n := range in.Nodes {
		if in.View.Member(n.ID) == nil {
			continue
		}
		members = append(members, place.Member{
			ID: n.ID, Zone: n.Zone, Weight: n.Weight, Full: n.Disk >= diskFull,
			Leaving: n.Closed || !n.Alive && n.Silent >= deadAfter,
		})
	}
	return members
}

// unknownBytes is what a repository without an index counts while there is
// none to compare it with.
const unknownBytes = 1 << 20

// units lists what is placed: the groups that have a repository, and the
// slices of large repositories. Where nothing was placed before, the holders
// count as the targets in force, so that the first plan moves little.
//
// What is not indexed yet counts as much as the rest. A young cluster is placed
// when next to nothing is indexed: if that weighed nothing, all of it could lie
// on the first two nodes. A group with a pack gets no extra copies: what shares
// a file has the same holders.
func (in *Placement) units() (units []place.Unit, numbers []uint64) {
	at, packed := map[uint64]int{}, map[uint64]bool{}
	var young []uint64 // groups of what is not indexed yet
	var indexed, sum int64
	unit := func(number uint64) *place.Unit {
		i, ok := at[number]
		if !ok {
			i = len(units)
			at[number] = i
			u := place.Unit{Key: number}
			if g := in.View.Group(number); g != nil {
				u.Targets = idsOf(in.View, g)
			}
			units, numbers = append(units, u), append(numbers, number)
		}
		return &units[i]
	}
	for repo := range in.View.Repos() {
		group := unit(place.GroupOf(repo.ID))
		if in.View.Group(group.Key) == nil && len(group.Targets) == 0 {
			group.Targets = in.View.Holders(catalog.MirrorKey(repo.ID))
		}
		if repo.Indexed() {
			indexed++
		} else {
			young = append(young, group.Key)
		}
		for _, s := range repo.Shards {
			u := unit(UnitOf(repo.ID, s))
			u.Bytes += s.Bytes
			sum += s.Bytes + s.Text/4
			if s.Pack > 0 {
				packed[u.Key] = true
			}
			if u.Key >= place.Groups && len(u.Targets) == 0 && in.View.Group(u.Key) == nil {
				u.Targets = in.View.Holders(catalog.ShardKey(s.ID))
			}
			unit(place.GroupOf(repo.ID)).Bytes += s.Text / 4 // about the mirror
		}
	}
	usual := int64(unknownBytes)
	if indexed > 0 {
		usual = max(sum/indexed, 1)
	}
	for _, group := range young {
		unit(group).Bytes += usual
	}
	for i := range units {
		if !packed[units[i].Key] {
			units[i].Extra = in.Extra[units[i].Key]
		}
	}
	return units, numbers
}

func idsOf(view *catalog.View, g *catalog.Group) []string {
	var ids []string
	for _, number := range g.Nodes {
		if m := view.MemberNumber(number); m != nil && m.State != catalog.MemberRemoved {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// UnitOf is the number of the unit that a shard belongs to.
func UnitOf(repo catalog.RepoID, s catalog.ShardRef) uint64 {
	if s.Slice == 0 {
		return place.GroupOf(repo)
	}
	return place.UnitOf(repo, s.Slice)
}

// targetsOf is the ids of the members that should hold a unit; empty while
// it is not placed.
func targetsOf(view *catalog.View, unit uint64) []string {
	g := view.Group(unit)
	if g == nil {
		return nil
	}
	return idsOf(view, g)
}

// placer runs Place while this node leads.
type placer struct {
	copies   int
	members  string // fingerprint of the members at the last balancing
	balanced time.Time
	bytes    int64  // of all indexes at the last balancing
	index    uint64 // of the view at the last look
	extra    map[uint64]int
}

// place proposes what should move.
func (l *Leader) place(ctx context.Context, view *catalog.View, nodes []Node, now time.Time) {
	p := &l.placer
	finger := fingerprint(nodes)
	balance := finger != p.members || now.Sub(p.balanced) >= balanceAfter
	extra := l.heat.extra(view)
	if !balance && p.index == view.Index() && maps.Equal(extra, p.extra) {
		return
	}
	balance = balance || calm(view) && indexBytes(view) > p.bytes+p.bytes/grownBy
	cmds := Place(Placement{View: view, Nodes: nodes, Copies: p.copies, Balance: balance, Extra: extra})
	for _, cmd := range cmds {
		if _, err := l.cluster.Propose(ctx, cmd); err != nil {
			if !errors.Is(err, cluster.ErrNoLeader) && ctx.Err() == nil {
				l.log.Error("placement was not accepted", "err", err)
			}
			return
		}
	}
	if len(cmds) > 0 {
		l.log.Info("placement changed", "commands", len(cmds), "balanced", balance)
	}
	p.index, p.extra = view.Index(), extra
	if balance {
		p.members, p.balanced, p.bytes = finger, now, indexBytes(view)
	}
}

// indexBytes is the size of all indexes, each counted once.
func indexBytes(view *catalog.View) (sum int64) {
	for repo := range view.Repos() {
		for _, s := range repo.Shards {
			sum += s.Bytes
		}
	}
	return sum
}

// fingerprint tells whether the members that data can be on have changed.
func fingerprint(nodes []Node) string {
	sorted := slices.SortedFunc(slices.Values(nodes), func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
	out := ""
	for _, n := range sorted {
		out += n.ID + "\x00" + n.Zone
		if n.Closed || !n.Alive && n.Silent >= deadAfter {
			out += "\x00gone"
		}
		if n.Disk >= diskFull {
			out += "\x00full"
		}
		out += "\x01"
	}
	return out
}
