package hold

import (
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/place"
)

const placeBatch = 500 // groups of one command

// Placement is the input of a placement plan.
type Placement struct {
	View    *catalog.View
	Nodes   []Node
	Copies  int
	Balance bool
}

// Place returns commands that set which members should hold which units, where that differs from
// the catalog. A cluster of one member places nothing: everything is there.
func Place(in Placement) []catalog.Command {
	members := in.members()
	if len(members) < 2 {
		return nil
	}

	units, numbers := in.units()
	targets := place.Plan(members, units, in.Copies, in.Balance)

	var groups []catalog.Group
	for i, ids := range targets {
		// Propose only what differs from the catalog.
		if old := in.View.Group(numbers[i]); len(ids) == 0 || old != nil && slices.Equal(idsOf(in.View, old), ids) {
			continue
		}
		g := catalog.Group{Number: numbers[i]}
		for _, id := range ids {
			g.Nodes = append(g.Nodes, in.View.Member(id).Number)
		}
		groups = append(groups, g)
	}

	// A log entry has a limited size, so propose in batches.
	var cmds []catalog.Command
	for part := range slices.Chunk(groups, placeBatch) {
		cmds = append(cmds, &catalog.Place{Groups: part})
	}
	return cmds
}

// members returns the nodes that package place may give data to.
func (in *Placement) members() []place.Member {
	var members []place.Member
	for _, n := range in.Nodes {
		// Gossip knows this node, but it is not a member yet and has no number.
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

// unknownBytes is the assumed size of a repository without an index, while no repository has one.
const unknownBytes = 1 << 20

// units returns what is placed: the groups that have a repository, and the slices of large
// repositories. If a unit was never placed, its holders count as its present targets, so that the
// first plan moves little.
//
// A repository that is not indexed yet counts as much as an average one. A young cluster is placed
// when next to nothing is indexed: if that weighed nothing, all of it could lie on the first two
// nodes.
func (in *Placement) units() (units []place.Unit, numbers []uint64) {
	u := &unitList{view: in.View, at: map[uint64]int{}}
	for repo := range in.View.Repos() {
		u.add(repo)
	}

	// The average is known only after all repositories were added.
	u.weighYoung()
	return u.units, u.numbers
}

// unitList collects the units of a view.
type unitList struct {
	view    *catalog.View
	units   []place.Unit
	numbers []uint64
	at      map[uint64]int // index in units by number

	young   []uint64 // group of each repository that is not indexed yet
	indexed int64    // number of indexed repositories
	bytes   int64    // bytes of the indexed repositories
}

// unit returns the unit with a number, and adds it on first use.
func (l *unitList) unit(number uint64) *place.Unit {
	i, ok := l.at[number]
	if !ok {
		i = len(l.units)
		l.at[number] = i
		l.units, l.numbers = append(l.units, place.Unit{Key: number, Targets: TargetsOf(l.view, number)}), append(l.numbers, number)
	}
	return &l.units[i]
}

// add adds a repository and its shards.
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
		l.unit(number).Bytes += s.Text / 4 // an estimate of the mirror
	}
}

// weighYoung gives repositories that are not indexed yet the average size of the others.
func (l *unitList) weighYoung() {
	usual := int64(unknownBytes)
	if l.indexed > 0 {
		usual = max(l.bytes/l.indexed, 1)
	}
	for _, number := range l.young {
		l.unit(number).Bytes += usual
	}
}
