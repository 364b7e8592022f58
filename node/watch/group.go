package watch

import (
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/search"
)

// groups are the watches by their queries, so that watches with one query are checked together.
type groups struct {
	of    *catalog.View // whose watches these are; nil: none were read yet
	all   map[asked]*group
	needs *needs // of all
}

// asked is a query with its toggles.
type asked struct {
	query               string
	regexp, case_, word bool
}

// group is the watches with one query.
type group struct {
	standing *search.Standing
	changes  bool  // it finds commits or diffs, and not files
	need     *need // of the query
	watches  []*catalog.Watch
}

// update reads the watches of a view, unless they are those that were read last.
func (g *groups) update(view *catalog.View) {
	if g.of != nil && view.SameWatches(g.of) {
		return
	}
	old := g.all
	g.of, g.all, g.needs = view, map[asked]*group{}, newNeeds()
	for x := range view.Watches() {
		key := asked{x.Query, x.Regexp, x.Case, x.Words}
		at := g.all[key]
		if at == nil {
			at = old[key]
			if at == nil {
				at = newGroup(x)
			}
			if at == nil {
				continue // of a version with another query language
			}
			at.watches, at.need = nil, g.needs.add(at.standing.Query.Q)
			g.all[key] = at
		}
		at.watches = append(at.watches, x)
	}
}

// have reports whether some watch is about commits or diffs, or about files.
func (g *groups) have(changes bool) bool {
	for _, at := range g.all {
		if at.changes == changes {
			return true
		}
	}
	return false
}

// newGroup prepares the query of a watch; nil if it cannot be understood.
func newGroup(x *catalog.Watch) *group {
	s, err := standing(x)
	if err != nil {
		return nil
	}
	return &group{standing: s, changes: s.Query.Type.Changes()}
}
