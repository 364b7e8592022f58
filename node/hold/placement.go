package hold

import (
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/place"
)

const placeBatch = 500 // groups of one command

// Placement is all that a plan of placement depends on.
type Placement struct {
	View    *catalog.View
	Nodes   []Node
	Copies  int
	Balance bool
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
		// Only what differs from the catalog is proposed.
		if old := in.View.Group(numbers[i]); len(ids) == 0 || old != nil && slices.Equal(idsOf(in.View, old), ids) {
			continue
		}
		g := catalog.Group{Number: numbers[i]}
		for _, id := range ids {
			g.Nodes = append(g.Nodes, in.View.Member(id).Number)
		}
		groups = append(groups, g)
	}

	// In batches: one entry of the log has a bound.
	var cmds []catalog.Command
	for part := range slices.Chunk(groups, placeBatch) {
		cmds = append(cmds, &catalog.Place{Groups: part})
	}
	return cmds
}

func (in *Placement) members() []place.Member {
	var members []place.Member
	for _, n := range in.Nodes {
		// It is known by gossip, but not let in yet: no number stands for it.
		if in.View.Member(n.ID) == nil {
			continue
		}

		members = append(members, place.Member{
			ID:      n.ID,
			Zone:    n.Zone,
			Weight:  n.Weight,
			Full:    n.Disk >= DiskFull,
			Leaving: n.Closed || n.Gone(),
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
// on the first two nodes.
func (in *Placement) units() (units []place.Unit, numbers []uint64) {
	u := &unitList{view: in.View, at: map[uint64]int{}}
	for repo := range in.View.Repos() {
		u.add(repo)
	}

	// Only with all of them known is it known what the others weigh.
	u.weighYoung()
	return u.units, u.numbers
}

// unitList is the units of a view while they are gathered.
type unitList struct {
	view    *catalog.View
	units   []place.Unit
	numbers []uint64
	at      map[uint64]int // index in units, by number

	young   []uint64 // groups, one for each repository that is not indexed yet
	indexed int64    // repositories that are
	bytes   int64    // of these
}

// unit is the unit of a number, which is made when it is asked for first.
func (l *unitList) unit(number uint64) *place.Unit {
	i, ok := l.at[number]
	if !ok {
		i = len(l.units)
		l.at[number] = i
		l.units, l.numbers = append(l.units, place.Unit{Key: number, Targets: TargetsOf(l.view, number)}), append(l.numbers, number)
	}
	return &l.units[i]
}

// add counts a repository and its shards.
func (l *unitList) add(repo *catalog.Repo) {
	// A group that was never placed stays where its data was built.
	number := place.GroupOf(repo.ID)
	if group := l.unit(number); l.view.Group(number) == nil && len(group.Targets) == 0 {
		group.Targets = l.view.Holders(catalog.MirrorKey(repo.ID))
	}

	if repo.Indexed() {
		l.indexed++
	} else {
		l.young = append(l.young, number)
	}

	for _, s := range repo.Shards {
		u := l.unit(UnitOf(repo.ID, s))
		u.Bytes += s.Bytes
		l.bytes += s.Bytes + s.Text/4
		if u.Key >= place.Groups && len(u.Targets) == 0 && l.view.Group(u.Key) == nil {
			u.Targets = l.view.Holders(catalog.ShardKey(s.ID))
		}
		l.unit(number).Bytes += s.Text / 4 // about the mirror
	}
}

// weighYoung counts what is not indexed yet as the mean of what is.
func (l *unitList) weighYoung() {
	usual := int64(unknownBytes)
	if l.indexed > 0 {
		usual = max(l.bytes/l.indexed, 1)
	}
	for _, number := range l.young {
		l.unit(number).Bytes += usual
	}
}
