// Package place decides which nodes should hold which data. It is arithmetic
// on values: no clock, no network, no randomness.
//
// Data is cut into units: a placement group carries the mirrors and the
// shards of all repositories that hash to it; each slice of a very large
// repository is a unit of its own. For a unit u and a node n the score
//
//	weight(n) / -ln(h(u, n))        h in (0, 1), a hash
//
// orders the nodes (weighted rendezvous): a node that joins takes only its
// own share, one that leaves spreads its share over all others.
//
//	unit 17   n3 ■■■■■■■■■   n1 ■■■■■■   n4 ■■■■   n2 ■        two copies: n3, n1
//	n1 dies   n3 ■■■■■■■■■   n4 ■■■■     n2 ■                  n4 takes over
//
// [Plan] keeps every target that may stay, fills missing ones in the order of the scores, and then
// moves as little as possible to bring every node near its fair share. Two copies of a unit are
// never on one node, and not in one zone while there are enough zones.
//
// How nodes reach their targets (copy, confirm, give up) is not the business of this package.
package place

import (
	"cmp"
	"math"
	"slices"
)

// Groups is the number of placement groups of a cluster.
const Groups = 4096

// GroupOf returns the placement group of a repository, by its permanent id.
func GroupOf(repo uint32) uint64 { return mix(uint64(repo)+0x5eed) % Groups }

// Member is a node that can hold data.
type Member struct {
	ID     string
	Zone   string
	Weight float64 // share of the data relative to other members; 0 or less means 1
	// Leaving members keep their data until others have copied it. They get no new data.
	Leaving bool
	// Full members keep what they have and get nothing new.
	Full bool
}

// Unit is data that is placed as one piece.
type Unit struct {
	Key     uint64 // from GroupOf or UnitOf; unique
	Bytes   int64
	Targets []string // present targets, the preferred one first
}

// UnitOf returns the key of the unit of one slice of a large repository. Such keys are above those
// of groups.
func UnitOf(repo uint32, slice uint16) uint64 { return (uint64(repo)+1)<<16 | uint64(slice) }

// Limits of a member's load, as multiples of its fair share.
const (
	capFill  = 1.07 // a new copy goes where the load stays below this
	capOver  = 1.10 // a member above this gives data away
	capUnder = 0.92 // a member below this gets data
)

// Score returns the rendezvous score of a member for a unit. The members with the highest scores
// hold it.
func Score(key uint64, m Member) float64 {
	h := mix(key ^ mix(hashString(m.ID)))
	// Make an exact float in (0, 1) from the top 53 bits.
	x := (float64(h>>11) + 0.5) / (1 << 53)
	return weight(m) / -math.Log(x)
}

// Plan returns the members that should hold each unit, in the order of units. copies is the wanted
// number of copies; with fewer members there are fewer. With balance, data also moves from members
// that have too much to members that have too little. Without it, only missing targets are added.
// The result depends only on the arguments. Plan returns its own result unchanged.
func Plan(members []Member, units []Unit, copies int, balance bool) [][]string {
	p := newPlan(members, units, copies)
	if len(p.eligible) == 0 {
		return p.targetIDs()
	}

	// Keep all present targets before filling any, so that a new unit takes no room from an old
	// one.
	for _, u := range p.order {
		p.keepTargets(u)
	}
	for _, u := range p.order {
		p.addTargets(u)
	}

	if balance {
		p.balance()
	}
	return p.targetIDs()
}

// plan is the state of one call of Plan.
type plan struct {
	members  []Member
	eligible []int // indexes of members that may be targets, sorted by ID
	zones    int   // number of zones of open members
	units    []Unit
	order    []int   // indexes of units, the largest first
	targets  [][]int // by unit: indexes into members
	load     []float64
	fair     []float64
	copies   int
	held     []map[int]bool // by member: its units; for balancing
}

// newPlan prepares a plan: which members may hold copies, the fair share of each, and the order in
// which units are placed.
func newPlan(members []Member, units []Unit, copies int) *plan {
	p := &plan{members: slices.Clone(members), units: units, targets: make([][]int, len(units))}
	slices.SortFunc(p.members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })

	zones := map[string]bool{}
	var sum float64
	for i, m := range p.members {
		if !m.Leaving {
			p.eligible = append(p.eligible, i)
			zones[m.Zone] = true
			sum += weight(m)
		}
	}

	p.zones = len(zones)
	p.copies = min(max(copies, 1), len(p.eligible))

	var total float64 // bytes of all copies
	p.order = make([]int, len(units))
	for i, u := range units {
		p.order[i] = i
		total += size(u) * float64(p.copyCount())
	}

	// Place the largest units first: small ones fill what is left.
	slices.SortFunc(p.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(units[b].Bytes, units[a].Bytes), cmp.Compare(units[a].Key, units[b].Key))
	})

	p.load = make([]float64, len(p.members))
	p.fair = make([]float64, len(p.members))
	p.held = make([]map[int]bool, len(p.members))

	// The fair share of a member follows from its weight.
	for _, i := range p.eligible {
		p.fair[i] = total * weight(p.members[i]) / sum
		p.held[i] = map[int]bool{}
	}
	return p
}

// keepTargets adds the present targets of a unit again, unless they leave or share a zone.
func (p *plan) keepTargets(u int) {
	for _, id := range p.units[u].Targets {
		i, ok := slices.BinarySearchFunc(p.members, id, func(m Member, id string) int { return cmp.Compare(m.ID, id) })
		if ok && !p.members[i].Leaving && len(p.targets[u]) < p.copyCount() && p.fits(u, i, -1) {
			p.addTarget(u, i)
		}
	}
}

// addTargets adds members to a unit until there are enough, those with the highest score first. It
// prefers members with room, as the rules below say.
func (p *plan) addTargets(u int) {
	if len(p.targets[u]) >= p.copyCount() {
		return
	}

	ranked := slices.Clone(p.eligible)

	score := make([]float64, len(p.members)) // computed once, because each score needs a logarithm
	for _, i := range ranked {
		score[i] = Score(p.units[u].Key, p.members[i])
	}

	slices.SortFunc(ranked, func(a, b int) int {
		return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b))
	})

	// Each rule is less strict than the one before: it gives up the fair share, then different
	// zones, then room on the disk.
	rules := []func(i int) bool{
		func(i int) bool {
			return !p.members[i].Full && p.fits(u, i, -1) && p.load[i]+size(p.units[u]) <= capFill*p.fair[i]
		},
		func(i int) bool { return !p.members[i].Full && p.fits(u, i, -1) },
		func(i int) bool { return !p.members[i].Full && !slices.Contains(p.targets[u], i) },
		func(i int) bool { return !slices.Contains(p.targets[u], i) },
	}

	for _, allowed := range rules {
		for _, i := range ranked {
			if len(p.targets[u]) >= p.copyCount() {
				return
			}
			if allowed(i) {
				p.addTarget(u, i)
			}
		}
	}
}

// copyCount returns the number of copies of each unit.
func (p *plan) copyCount() int { return min(p.copies, len(p.eligible)) }

// fits reports whether member i may become a target of unit u without two copies in one zone, if
// there are zones enough. instead is the index of a target that member i would replace; -1: none.
func (p *plan) fits(u, i, instead int) bool {
	shared := false
	zones := map[string]bool{}
	for at, t := range p.targets[u] {
		if t == i {
			return false
		}
		if at != instead {
			zones[p.members[t].Zone] = true
			shared = shared || p.members[t].Zone == p.members[i].Zone
		}
	}
	// If the copies are in as many zones as possible, another may share a zone.
	return !shared || p.zones < p.copies || len(zones) >= min(p.zones, p.copyCount())
}

func (p *plan) addTarget(u, i int) {
	p.targets[u] = append(p.targets[u], i)
	p.load[i] += size(p.units[u])
	p.held[i][u] = true
}

// moveUnit moves a unit from one member to another, and updates their loads.
func (p *plan) moveUnit(u, from, to int) {
	p.targets[u][slices.Index(p.targets[u], from)] = to
	p.load[from] -= size(p.units[u])
	p.load[to] += size(p.units[u])
	delete(p.held[from], u)
	p.held[to][u] = true
}

// targetIDs returns the ids of the members of each unit.
func (p *plan) targetIDs() [][]string {
	out := make([][]string, len(p.targets))
	for u, ts := range p.targets {
		for _, i := range ts {
			out[u] = append(out[u], p.members[i].ID)
		}
	}
	return out
}

func weight(m Member) float64 {
	if m.Weight <= 0 {
		return 1
	}
	return m.Weight
}

// size counts an empty unit as one byte, so that empty units are spread too.
func size(u Unit) float64 { return float64(max(u.Bytes, 1)) }

// hashString returns the FNV-1a hash.
func hashString(s string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return h
}

// mix is the finalizer of splitmix64: every bit of x affects every bit of the result.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Key returns a unit key for a name.
func Key(name string) uint64 { return hashString(name) >> 1 }
