package shard

import (
	"context"
	"slices"

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

// CountUnsearched counts the files that are kept by name only and that q could
// reach: a search for q has not looked into them. Where ctx ends it may count too few.
func (v *View) CountUnsearched(ctx context.Context, q query.Q) (int, error) {
	reached, unknown := Reach(q)
	if !unknown {
		return 0, nil
	}

	reached = query.Simplify(reached)
	rev, ok := reached.(*query.Rev)
	if !ok {
		return v.countSkipped(ctx, reached)
	}

	// Most searches name a revision and nothing else that is known: of that each file
	// of the view keeps its count.
	sum := 0
	for _, m := range v.members {
		n, err := v.skippedAt(ctx, rev, m)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// skipCount is how many files of a group are kept by name only in a revision. It
// is immutable.
type skipCount struct {
	revision string
	files    int
}

// skippedAt counts the files of a member in a revision that are kept by name only.
func (v *View) skippedAt(ctx context.Context, rev *query.Rev, m *member) (int, error) {
	// What is wrong with a damaged file is told by a search.
	if m.ready() != nil {
		return v.alone(m).countSkipped(ctx, rev)
	}

	if known := m.skips.Load(); known != nil && known.revision == rev.Pattern {
		return known.files, nil
	}

	n, err := 0, error(nil)
	if slices.Contains(m.sh.m.languages, SkippedLanguage) {
		n, err = v.alone(m).countSkipped(ctx, rev)
	}

	// A count that was cut short is good for this answer alone.
	if err == nil && ctx.Err() == nil {
		m.skips.Store(&skipCount{rev.Pattern, n})
	}
	return n, err
}

// alone is a view of one member. What it searches is held by v: nobody releases it.
func (v *View) alone(m *member) *View { return &View{set: v.set, members: []*member{m}} }

// countSkipped counts the files that are kept by name only and satisfy a query.
func (v *View) countSkipped(ctx context.Context, q query.Q) (int, error) {
	skipped := &query.And{Subs: []query.Q{&query.Lang{Name: query.SkippedLang}, q}}
	res, err := v.Search(ctx, Request{Q: query.Simplify(skipped), MaxMatches: 1, CountAll: true, NoChunks: true})
	if err != nil {
		return 0, err
	}
	return res.Stats.Files, nil
}
