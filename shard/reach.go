package shard

import (
	"github.com/shoalsearch/shoal/shard/query"
)

// Reach returns a query without conditions on content and symbols, which all files satisfy that
// satisfy q for some content and symbols. unknown says that q has such conditions.
func Reach(q query.Q) (reached query.Q, unknown bool) {
	switch n := q.(type) {
	// Unknown content may match, so the atom becomes true.
	case *query.Text:
		if n.Field != query.Name {
			return query.Const(true), true
		}

	// Operators are unknown if a member is.
	case *query.And:
		subs, unknown := reachAll(n.Subs)
		return &query.And{Subs: subs}, unknown
	case *query.Or:
		subs, unknown := reachAll(n.Subs)
		return &query.Or{Subs: subs}, unknown

	// The negation of something unknown is unknown too, so it becomes true.
	case *query.Not:
		if _, unknown := Reach(n.Sub); unknown {
			return query.Const(true), true
		}
	}
	return q, false
}

// reachAll applies reach to each subquery.
func reachAll(subs []query.Q) (reached []query.Q, unknown bool) {
	for _, s := range subs {
		r, u := Reach(s)
		reached, unknown = append(reached, r), unknown || u
	}
	return reached, unknown
}
