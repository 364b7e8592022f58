package place

import (
	"cmp"
	"slices"
)

// balance moves units from the fullest members to the emptiest until every member is near its fair
// share or no move helps. Each move makes the spread smaller, so the loop ends.
func (p *plan) balance() {
	stuck := make([]bool, len(p.members))
	for range 4*len(p.units) + len(p.members) {
		to := p.emptiestMember(stuck)
		if to < 0 {
			break
		}
		if !p.moveTo(to) {
			stuck[to] = true
		}
	}

	// A member may still have too much, in units that did not fit on the emptiest member: move them
	// to any member with room.
	full := make([]bool, len(p.members))
	for range 4*len(p.units) + len(p.members) {
		from := p.fullestMember(full)
		if from < 0 {
			return
		}
		if !p.moveFrom(from) {
			full[from] = true
		}
	}
}

// emptiestMember returns the member furthest below its share, except those in skip; -1 if none is
// below.
func (p *plan) emptiestMember(skip []bool) int {
	best := -1
	for _, i := range p.eligible {
		if skip[i] || p.members[i].Full || p.loadRatio(i) >= capUnder {
			continue
		}
		if best < 0 || p.loadRatio(i) < p.loadRatio(best) {
			best = i
		}
	}
	return best
}

// fullestMember returns the member furthest above its share, except those in skip; -1 if none is
// above.
func (p *plan) fullestMember(skip []bool) int {
	best := -1
	for _, i := range p.eligible {
		if skip[i] || p.loadRatio(i) <= capOver {
			continue
		}
		if best < 0 || p.loadRatio(i) > p.loadRatio(best) {
			best = i
		}
	}
	return best
}

// moveTo moves one unit to a member, from the fullest member with a unit that fits. It returns false
// if no unit fits.
func (p *plan) moveTo(to int) bool {
	donors := slices.Clone(p.eligible)
	slices.SortFunc(donors, func(a, b int) int {
		return cmp.Or(cmp.Compare(p.loadRatio(b), p.loadRatio(a)), cmp.Compare(a, b))
	})

	// Donors come from the fullest down, so the first that is no fuller ends the search.
	for _, from := range donors {
		if p.loadRatio(from) <= p.loadRatio(to) || from == to {
			break
		}
		if u := p.pickUnit(from, to); u >= 0 {
			p.moveUnit(u, from, to)
			return true
		}
	}
	return false
}

// moveFrom moves one unit from a member to the emptiest member that can take it. It returns false if
// no member can.
func (p *plan) moveFrom(from int) bool {
	takers := slices.Clone(p.eligible)
	slices.SortFunc(takers, func(a, b int) int {
		return cmp.Or(cmp.Compare(p.loadRatio(a), p.loadRatio(b)), cmp.Compare(a, b))
	})

	// Takers come from the emptiest up, so the first that has its share ends the search.
	for _, to := range takers {
		if to == from || p.members[to].Full {
			continue
		}
		if p.loadRatio(to) >= 1 {
			break
		}

		if u := p.pickUnit(from, to); u >= 0 {
			p.moveUnit(u, from, to)
			return true
		}
	}
	return false
}

// pickUnit returns the unit to move between two members; -1 if there is none. The unit must narrow
// the gap between them. Of those it takes the one that the new member suits best by score.
func (p *plan) pickUnit(from, to int) int {
	best, bestScore := -1, 0.0
	for u := range p.held[from] {
		w := size(p.units[u])
		if (p.load[to]+w)/p.fair[to] >= p.loadRatio(from) {
			continue // afterwards the new member would be as full as the old one was
		}
		if !p.fits(u, to, slices.Index(p.targets[u], from)) {
			continue
		}

		// Prefer the unit that favours the new member most: later plans leave it there.
		s := Score(p.units[u].Key, p.members[to]) / Score(p.units[u].Key, p.members[from])

		if best < 0 || s > bestScore || (s == bestScore && p.units[u].Key < p.units[best].Key) {
			best, bestScore = u, s
		}
	}
	return best
}

func (p *plan) loadRatio(i int) float64 { return p.load[i] / p.fair[i] }
