package shard

import (
	"github.com/shoalsearch/shoal/shard/query"
)

// Reach returns the query for the files that could satisfy q if their content and
// symbols, which are not known, were as q wants them. unknown is false if q asks for
// neither.
func Reach(q query.Q) (reached query.Q, unknown bool) {
	switch n := q.(type) {
	// What is not known could be as wanted, so it is true.
	case *query.Text:
		if n.Field != query.Name {
			return query.Const(true), true
		}

	// Nodes are known as far as their subs are.
	case *query.And:
		subs, unknown := reachAll(n.Subs)
		return &query.And{Subs: subs}, unknown
	case *query.Or:
		subs, unknown := reachAll(n.Subs)
		return &query.Or{Subs: subs}, unknown

	// The opposite of what is not known is not known either.
	case *query.Not:
		if _, unknown := Reach(n.Sub); unknown {
			return query.Const(true), true
		}
	}
	return q, false
}

func reachAll(subs []query.Q) (reached []query.Q, unknown bool) {
	for _, s := range subs {
		r, u := Reach(s)
		reached, unknown = append(reached, r), unknown || u
	}
	return reached, unknown
}
