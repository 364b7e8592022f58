package node

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/node/place"
)

// PlacementRequest asks for a page of the placement units.
type PlacementRequest struct {
	Page    int // from 1; 0 means 1
	PerPage int // 1..100; 0 means 30
}

// PlacementResponse shows where the data lies: totals of every node, and one page of units.
type PlacementResponse struct {
	Replicas  int       `json:"replicas"` // copies wanted of everything
	Tolerates Tolerance `json:"tolerates"`
	PlacementStatus
	Nodes []NodePlacement `json:"nodes"`
	Units []UnitPlacement `json:"units"`
	Total int             `json:"-"` // units
	Page  int             `json:"-"`
	Per   int             `json:"-"`
}

// NodePlacement counts the indexed repositories on one node.
type NodePlacement struct {
	ID       string `json:"id"`
	Health   string `json:"health"` // alive, dead
	Units    int    `json:"units"`  // assigned to it
	Bytes    int64  `json:"bytes"`  // of the index files that it has
	Coming   int    `json:"coming"` // repositories of which it should get something
	Going    int    `json:"going"`  // repositories of which it should give something away
	Draining bool   `json:"draining"`
	Left     int    `json:"left"`    // while draining: repositories with too few copies on other nodes
	Drained  bool   `json:"drained"` // draining, and the other nodes have enough copies of all its data
	Loses    Loss   `json:"loses"`
}

// Loss lists repositories that would lose data with this node: no other live node has a copy.
// They would have to be fetched and indexed again.
type Loss struct {
	Repos int      `json:"repositories"`
	Names []string `json:"names"` // of at most maxShort
} // at most maxShort

// UnitPlacement is one unit of placement. A unit is copied and moved as a whole.
type UnitPlacement struct {
	Unit    uint64   `json:"unit"`
	Kind    string   `json:"kind"`         // slice: part of a very large repository; group: several repositories
	Repos   int      `json:"repositories"` // indexed ones with at least one file in the unit
	Targets []string `json:"targets"`      // ids of the nodes that should have it
	Holders []string `json:"holders"`      // ids of the nodes that have all of it
	Live    int      `json:"liveCopies"`   // live copies of the file that has the fewest; all live nodes if nothing is indexed
}

// Placement returns where the data is, what moves, and what the failure of each node would lose. It
// leaves out repositories that are hidden from everybody.
func (n *Node) Placement(_ context.Context, by account.Owner, req PlacementRequest) (*PlacementResponse, error) {
	req.Page, req.PerPage = cmp.Or(req.Page, 1), cmp.Or(req.PerPage, 30)
	if req.Page < 1 || req.PerPage < 1 || req.PerPage > 100 {
		return nil, call.Fail(call.ErrInvalid, "page must be at least 1, and perPage from 1 to 100")
	}

	// As in Status, owners see all the data of the cluster, whatever they may read.
	seen, err := n.gate.Repos(by.Viewer())
	if err != nil {
		return nil, err
	}

	view, members := seen.View, n.cluster.Members()
	live := hold.LiveOf(members)
	tally := n.census.At(view, live)
	states, units := n.memberStatus(view, tally), slices.Sorted(maps.Keys(visibleUnits(view, tally)))
	short := tally.Shortage(n.opt.Replicas)

	out := &PlacementResponse{
		Replicas:        n.opt.Replicas,
		PlacementStatus: n.placementStatus(view, tally, short),
		Tolerates:       tolerance(states, short, n.cluster.Leader()),
		Total:           len(units),
		Page:            req.Page,
		Per:             req.PerPage,
	}

	// Only the units of this page are surveyed in full.
	s := newSurvey(view, live, pageOfUnits(units, req))
	s.visitRepos()
	out.Units = s.unitList()
	for i := range members {
		out.Nodes = append(out.Nodes, s.nodePlacement(&members[i], &states[i]))
	}
	return out, nil
}

// pageOfUnits returns one page of the units; beyond the end it is empty.
func pageOfUnits(units []uint64, req PlacementRequest) []uint64 {
	if req.Page-1 > len(units)/req.PerPage {
		return nil
	}
	from := min((req.Page-1)*req.PerPage, len(units))
	return units[from:min(from+req.PerPage, len(units))]
}

// survey collects the placement of repositories in one pass over the catalog.
type survey struct {
	view  *catalog.View
	live  hold.Live
	units map[uint64]*unitSurvey // the units of the page
	nodes map[uint32]*nodeSurvey // by member number
}

type unitSurvey struct {
	repos  int
	things int            // index files and mirrors in the unit
	have   map[uint32]int // how many of these things each member has
	live   int            // live copies of the thing that has the fewest
}

type nodeSurvey struct {
	coming, going int
	loses         Loss
}

func newSurvey(view *catalog.View, live hold.Live, units []uint64) *survey {
	s := &survey{view: view, live: live, units: map[uint64]*unitSurvey{}, nodes: map[uint32]*nodeSurvey{}}
	for _, u := range units {
		s.units[u] = &unitSurvey{have: map[uint32]int{}, live: len(live)}
	}
	return s
}

// counts returns the counts of a member, and creates them on first use.
func (s *survey) counts(number uint32) *nodeSurvey {
	if s.nodes[number] == nil {
		s.nodes[number] = &nodeSurvey{}
	}
	return s.nodes[number]
}

// visitRepos visits the repositories by name, so that Loss.Names has the first ones.
func (s *survey) visitRepos() {
	shown := s.view.Shown()
	for repo := range s.view.ReposByName() {
		if repo.Indexed() && shown(repo) {
			s.addRepo(repo)
		}
	}
}

// addRepo adds the placement of one repository to the survey.
func (s *survey) addRepo(repo *catalog.Repo) {
	// Count a repository once for each node, however many of its files are concerned.
	coming, going, onlyHolder, units := map[uint32]bool{}, map[uint32]bool{}, map[uint32]bool{}, map[uint64]bool{}
	for unit, key := range hold.Pieces(repo) {
		var targets []uint32
		if g := s.view.Group(unit); g != nil {
			targets = g.Nodes
		}

		holders := s.view.HolderNumbers(key)
		for _, number := range targets {
			coming[number] = coming[number] || !slices.Contains(holders, number)
		}

		var liveHolders []uint32
		for _, number := range holders {
			going[number] = going[number] || !slices.Contains(targets, number)
			if s.live[number] {
				liveHolders = append(liveHolders, number)
			}
		}
		if len(liveHolders) == 1 {
			onlyHolder[liveHolders[0]] = true
		}

		if u := s.units[unit]; u != nil {
			u.countPiece(holders, len(liveHolders), !units[unit])
			units[unit] = true
		}
	}

	for number, is := range coming {
		if is {
			s.counts(number).coming++
		}
	}
	for number, is := range going {
		if is {
			s.counts(number).going++
		}
	}
	for number := range onlyHolder {
		x := s.counts(number)
		if x.loses.Repos++; len(x.loses.Names) < maxShort {
			x.loses.Names = append(x.loses.Names, repo.Name)
		}
	}
}

// countPiece counts a mirror or an index file of the unit, with the nodes that have it. first means the
// first one of its repository.
func (u *unitSurvey) countPiece(holders []uint32, live int, first bool) {
	u.things++
	for _, number := range holders {
		u.have[number]++
	}
	u.live = min(u.live, live)
	if first {
		u.repos++
	}
}

// unitList returns the surveyed units by number.
func (s *survey) unitList() []UnitPlacement {
	var out []UnitPlacement
	for _, unit := range slices.Sorted(maps.Keys(s.units)) {
		u := s.units[unit]
		x := UnitPlacement{Unit: unit, Kind: "group", Repos: u.repos, Targets: hold.TargetsOf(s.view, unit), Live: u.live}
		if unit >= place.Groups {
			x.Kind = "slice"
		}
		for number, have := range u.have {
			if m := s.view.MemberNumber(number); m != nil && have == u.things {
				x.Holders = append(x.Holders, m.ID)
			}
		}
		slices.Sort(x.Holders)
		out = append(out, x)
	}
	return out
}

// nodePlacement returns the placement of one member.
func (s *survey) nodePlacement(m *cluster.Member, state *MemberStatus) NodePlacement {
	x := s.counts(m.Number)
	return NodePlacement{
		ID:       m.ID,
		Health:   state.Health,
		Draining: state.Draining,
		Left:     state.Left,
		Drained:  state.Drained,
		Units:    state.Groups,
		Bytes:    state.Bytes,
		Coming:   x.coming,
		Going:    x.going,
		Loses:    x.loses,
	}
}
