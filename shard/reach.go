package shard

import (
	"github.com/shoalsearch/shoal/shard/query"
)

// Reach returns q without its conditions on content and symbols: every file that could satisfy q
// with the right content and symbols satisfies the result. unknown reports whether q has such
// conditions.
func Reach(q query.Q) (reached query.Q, unknown bool) {
	switch n := q.(type) {
	// Content that is not in the index may match, so the condition becomes true.
	case *query.Text:
		if n.Field != query.Name {
			return query.Const(true), true
		}

	// An operator has such conditions if a member has.
	case *query.And:
		subs, unknown := reachAll(n.Subs)
		return &query.And{Subs: subs}, unknown
	case *query.Or:
		subs, unknown := reachAll(n.Subs)
		return &query.Or{Subs: subs}, unknown

	// Whether a negated condition on content holds is not known either, so it becomes true.
	case *query.Not:
		if _, unknown := Reach(n.Sub); unknown {
			return query.Const(true), true
		}
	}
	return q, false
}

// reachAll returns Reach of each query; unknown if one of them has such conditions.
func reachAll(subs []query.Q) (reached []query.Q, unknown bool) {
	for _, s := range subs {
		r, u := Reach(s)
		reached, unknown = append(reached, r), unknown || u
	}
	return reached, unknown
}
