package hold

import (
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/place"
)

const placeBatch = 500 // groups in one command

// Placement is the input of a placement plan.
type Placement struct {
	View    *catalog.View
	Nodes   []Node
	Copies  int  // wanted copies of everything
	Balance bool // also move data from full nodes to empty ones
}

// Place returns commands that set which members should hold which units (see place.Unit), where
// that differs from the catalog. A cluster of one member places nothing: everything is there.
func Place(in Placement) []catalog.Command {
	members := in.placeMembers()
	if len(members) < 2 {
		return nil
	}

	units, numbers := in.collectUnits()
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

	// A log entry has a limited size, so propose in batches.
	var cmds []catalog.Command
	for part := range slices.Chunk(groups, placeBatch) {
		cmds = append(cmds, &catalog.Place{Groups: part})
	}
	return cmds
}

// placeMembers returns the nodes that package place may give data to.
func (in *Placement) placeMembers() []place.Member {
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

// mirrorShare: a mirror is assumed to need 1/mirrorShare of the bytes of the indexed text.
const mirrorShare = 4

// collectUnits returns the units to place, with their numbers: the groups that have a repository,
// and the slices of large repositories. If a unit was never placed, its holders count as its present
// targets, so that the first plan moves little.
//
// A repository that is not indexed yet counts as much as an average one. A new cluster is placed
// before its repositories are indexed. If these counted nothing, the first two nodes could get all
// of them.
func (in *Placement) collectUnits() (units []place.Unit, numbers []uint64) {
	u := &unitList{view: in.View, at: map[uint64]int{}}
	for repo := range in.View.Repos() {
		u.addRepo(repo)
	}

	// The average is known only after all repositories were added.
	u.weighUnindexed()
	return u.units, u.numbers
}

// unitList collects the units of a view.
type unitList struct {
	view    *catalog.View
	units   []place.Unit
	numbers []uint64
	at      map[uint64]int // index in units by number

	unindexed []uint64 // group of each repository that is not indexed yet
	indexed   int64    // number of indexed repositories
	bytes     int64    // bytes of the indexed repositories
}

// addUnit returns the unit with a number, and adds it on first use.
func (l *unitList) addUnit(number uint64) *place.Unit {
	i, ok := l.at[number]
	if !ok {
		i = len(l.units)
		l.at[number] = i
		l.units = append(l.units, place.Unit{Key: number, Targets: TargetsOf(l.view, number)})
		l.numbers = append(l.numbers, number)
	}
	return &l.units[i]
}

// addRepo adds a repository and its shards.
func (l *unitList) addRepo(repo *catalog.Repo) {
	// A group that was never placed stays where its data was built.
	number := place.GroupOf(repo.ID)
	if group := l.addUnit(number); l.view.Group(number) == nil && len(group.Targets) == 0 {
		group.Targets = l.view.Holders(catalog.MirrorKey(repo.ID))
	}

	if repo.Indexed() {
		l.indexed++
	} else {
		l.unindexed = append(l.unindexed, number)
	}

	for _, s := range repo.Shards {
		u := l.addUnit(UnitOf(repo.ID, s))
		u.Bytes += s.OwnBytes()

		// A slice that was never placed stays where it was built, too.
		if s.Slice != 0 && len(u.Targets) == 0 && l.view.Group(u.Key) == nil {
			u.Targets = l.view.Holders(catalog.ShardKey(s.ID))
		}

		// The mirror is in the repository's group.
		mirror := s.Text / mirrorShare
		l.addUnit(number).Bytes += mirror
		l.bytes += s.OwnBytes() + mirror
	}
}

// weighUnindexed gives repositories that are not indexed yet the average size of the others.
func (l *unitList) weighUnindexed() {
	average := int64(unknownBytes)
	if l.indexed > 0 {
		average = max(l.bytes/l.indexed, 1)
	}
	for _, number := range l.unindexed {
		l.addUnit(number).Bytes += average
	}
}
