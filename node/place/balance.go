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
		to := p.emptiest(stuck)
		if to < 0 {
			break
		}
		if !p.give(to) {
			stuck[to] = true
		}
	}

	// A member may still have too much, in units that did not fit on the emptiest member: move them
	// to any member with room.
	full := make([]bool, len(p.members))
	for range 4*len(p.units) + len(p.members) {
		from := p.fullest(full)
		if from < 0 {
			return
		}
		if !p.moveFrom(from) {
			full[from] = true
		}
	}
}

// emptiest returns the member furthest below its share; -1 if none is below.
func (p *plan) emptiest(stuck []bool) int {
	best := -1
	for _, i := range p.open {
		if stuck[i] || p.members[i].Full || p.ratio(i) >= capUnder {
			continue
		}
		if best < 0 || p.ratio(i) < p.ratio(best) {
			best = i
		}
	}
	return best
}

// fullest returns the member furthest above its share; -1 if none is above.
func (p *plan) fullest(stuck []bool) int {
	best := -1
	for _, i := range p.open {
		if stuck[i] || p.ratio(i) <= capOver {
			continue
		}
		if best < 0 || p.ratio(i) > p.ratio(best) {
			best = i
		}
	}
	return best
}

// give moves one unit to a member, from the fullest member with a unit that fits.
func (p *plan) give(to int) bool {
	donors := slices.Clone(p.open)
	slices.SortFunc(donors, func(a, b int) int {
		return cmp.Or(cmp.Compare(p.ratio(b), p.ratio(a)), cmp.Compare(a, b))
	})

	// Donors come from the fullest down, so the first that is no fuller ends the search.
	for _, from := range donors {
		if p.ratio(from) <= p.ratio(to) || from == to {
			break
		}
		if u := p.pick(from, to); u >= 0 {
			p.move(u, from, to)
			return true
		}
	}
	return false
}

// moveFrom moves one unit from a member to the emptiest member that can take it.
func (p *plan) moveFrom(from int) bool {
	takers := slices.Clone(p.open)
	slices.SortFunc(takers, func(a, b int) int {
		return cmp.Or(cmp.Compare(p.ratio(a), p.ratio(b)), cmp.Compare(a, b))
	})

	// Takers come from the emptiest up, so the first that has its share ends the search.
	for _, to := range takers {
		if to == from || p.members[to].Full {
			continue
		}
		if p.ratio(to) >= 1 {
			break
		}

		if u := p.pick(from, to); u >= 0 {
			p.move(u, from, to)
			return true
		}
	}
	return false
}

// pick chooses a unit to move: one that narrows the gap between the two members, and among those
// the one with the best score at the target.
func (p *plan) pick(from, to int) int {
	best, bestScore := -1, 0.0
	for u := range p.held[from] {
		w := size(p.units[u])
		if (p.load[to]+w)/p.fair[to] >= p.ratio(from) {
			continue // the two members would only change roles
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

func (p *plan) ratio(i int) float64 { return p.load[i] / p.fair[i] }
