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

// PlacementRequest asks for a page of the units of placement.
type PlacementRequest struct {
	Page    int // from 1; 0 means 1
	PerPage int // 1..100; 0 means 30
}

// PlacementResponse is how the data lies on the nodes: of all nodes, and of a page of units.
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

// NodePlacement is what lies on a node, of the repositories that are indexed.
type NodePlacement struct {
	ID       string `json:"id"`
	Health   string `json:"health"` // alive, dead
	Units    int    `json:"units"`  // that it should hold
	Bytes    int64  `json:"bytes"`  // of index files that it has
	Coming   int    `json:"coming"` // repositories of which it should hold something that it does not have yet
	Going    int    `json:"going"`  // repositories of which it has something that is to lie elsewhere
	Draining bool   `json:"draining"`
	Left     int    `json:"left"`    // while it drains: repositories of which others have too few copies
	Drained  bool   `json:"drained"` // it drains, and others have enough copies of all that it holds
	Loses    Loss   `json:"loses"`
}

// Loss lists repositories that would lose data with this node: no other live node has a copy.
// They would have to be fetched and indexed again.
type Loss struct {
	Repos int      `json:"repositories"`
	Names []string `json:"names"` // of at most maxShort
}

// UnitPlacement is one unit of placement: what is copied and moved as one.
type UnitPlacement struct {
	Unit    uint64   `json:"unit"`
	Kind    string   `json:"kind"`         // slice: a part of a very large repository; group: of repositories
	Repos   int      `json:"repositories"` // indexed, of which something is in it
	Targets []string `json:"targets"`      // ids of the nodes that should hold it
	Holders []string `json:"holders"`      // ids of the nodes that have all of it
	Live    int      `json:"liveCopies"`   // on nodes that answer, of what has the fewest; as many as answer where nothing is indexed
}

// Placement tells how the data lies on the nodes, what moves, and what the
// failure of each would lose. Repositories that are hidden from everybody are left out.
func (n *Node) Placement(_ context.Context, by account.Owner, req PlacementRequest) (*PlacementResponse, error) {
	req.Page, req.PerPage = cmp.Or(req.Page, 1), cmp.Or(req.PerPage, 30)
	if req.Page < 1 || req.PerPage < 1 || req.PerPage > 100 {
		return nil, call.Fail(call.ErrInvalid, "page must be at least 1, and perPage from 1 to 100")
	}

	// As by the status, owners are told of everything that lies here, whatever they may read.
	seen, err := n.gate.Repos(by.Viewer())
	if err != nil {
		return nil, err
	}

	view, members := seen.View, n.cluster.Members()
	live := hold.LiveOf(members)
	tally := n.census.At(view, live)
	states, units := n.memberStatus(view, tally), slices.Sorted(maps.Keys(placed(view, tally)))
	short := tally.Shortage(n.opt.Replicas)

	out := &PlacementResponse{
		Replicas:        n.opt.Replicas,
		PlacementStatus: n.placementStatus(view, tally, short),
		Tolerates:       tolerance(states, short, n.cluster.Leader()),
		Total:           len(units),
		Page:            req.Page,
		Per:             req.PerPage,
	}

	// Only of the units of this page more is found out than where they should lie.
	s := newSurvey(view, live, pageOf(units, req))
	s.look()
	out.Units = s.list()
	for i := range members {
		out.Nodes = append(out.Nodes, s.node(&members[i], &states[i]))
	}
	return out, nil
}

// pageOf is a page of some units; one far beyond the end is empty.
func pageOf(units []uint64, req PlacementRequest) []uint64 {
	if req.Page-1 > len(units)/req.PerPage {
		return nil
	}
	from := min((req.Page-1)*req.PerPage, len(units))
	return units[from:min(from+req.PerPage, len(units))]
}

// survey goes once through everything that is held.
type survey struct {
	view  *catalog.View
	live  hold.Live
	units map[uint64]*unitSurvey // those that are asked for
	nodes map[uint32]*nodeSurvey // by number of the member
}

type unitSurvey struct {
	repos  int
	things int            // things that it consists of
	have   map[uint32]int // of these, that a member has
	live   int
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

// of is what is known of a member.
func (s *survey) of(number uint32) *nodeSurvey {
	if s.nodes[number] == nil {
		s.nodes[number] = &nodeSurvey{}
	}
	return s.nodes[number]
}

// look goes through the repositories by name, so that the first ones are named.
func (s *survey) look() {
	shown := s.view.Shown()
	for repo := range s.view.ReposByName() {
		if repo.Indexed() && shown(repo) {
			s.lookAt(repo)
		}
	}
}

// lookAt notes where everything of a repository lies.
func (s *survey) lookAt(repo *catalog.Repo) {
	// A repository counts once for a node, however many files of it are concerned.
	coming, going, sole, units := map[uint32]bool{}, map[uint32]bool{}, map[uint32]bool{}, map[uint64]bool{}
	for unit, key := range hold.Pieces(repo) {
		var targets []uint32
		if g := s.view.Group(unit); g != nil {
			targets = g.Nodes
		}

		holders := s.view.HolderNumbers(key)
		for _, number := range targets {
			coming[number] = coming[number] || !slices.Contains(holders, number)
		}

		var answer []uint32
		for _, number := range holders {
			going[number] = going[number] || !slices.Contains(targets, number)
			if s.live[number] {
				answer = append(answer, number)
			}
		}
		if len(answer) == 1 {
			sole[answer[0]] = true
		}

		if u := s.units[unit]; u != nil {
			u.note(holders, len(answer), !units[unit])
			units[unit] = true
		}
	}

	for number, is := range coming {
		if is {
			s.of(number).coming++
		}
	}
	for number, is := range going {
		if is {
			s.of(number).going++
		}
	}
	for number := range sole {
		x := s.of(number)
		if x.loses.Repos++; len(x.loses.Names) < maxShort {
			x.loses.Names = append(x.loses.Names, repo.Name)
		}
	}
}

// note adds a thing that is in the unit, the first one of its repository or not.
func (u *unitSurvey) note(holders []uint32, live int, first bool) {
	u.things++
	for _, number := range holders {
		u.have[number]++
	}
	u.live = min(u.live, live)
	if first {
		u.repos++
	}
}

// list is the units that were asked for, by number.
func (s *survey) list() []UnitPlacement {
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

// node is what is known of a member.
func (s *survey) node(m *cluster.Member, state *MemberStatus) NodePlacement {
	x := s.of(m.Number)
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
