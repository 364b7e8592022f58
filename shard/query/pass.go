package query

import "github.com/RoaringBitmap/roaring/v2"

// Map rebuilds a tree from the leaves up. It calls f for each node, whose children are mapped
// already, and puts the result in the place of the node. q is not changed.
func Map(q Q, f func(Q) Q) Q {
	switch n := q.(type) {
	case *And:
		return f(&And{Subs: mapAll(n.Subs, f)})
	case *Or:
		return f(&Or{Subs: mapAll(n.Subs, f)})
	case *Not:
		return f(&Not{Sub: Map(n.Sub, f)})
	default:
		return f(q)
	}
}

// mapAll returns the result of Map for each of subs.
func mapAll(subs []Q, f func(Q) Q) []Q {
	out := make([]Q, len(subs))
	for i, s := range subs {
		out[i] = Map(s, f)
	}
	return out
}

// Resolve replaces every condition on repositories (Repo, RepoSet, Context, Flag) by the set of ids
// that lookup returns for it. The sets become part of the tree and must not be changed afterwards.
// It stops at the first error of lookup.
func Resolve(q Q, lookup func(atom Q) (*roaring.Bitmap, error)) (Q, error) {
	var failed error
	out := Map(q, func(n Q) Q {
		switch n.(type) {
		case *Repo, *RepoSet, *Context, *Flag:
		default:
			return n
		}

		if failed != nil { // Map cannot stop
			return n
		}

		set, err := lookup(n)
		if err != nil {
			failed = err
			return n
		}
		return &Repos{Set: set}
	})

	if failed != nil {
		return nil, failed
	}
	return out, nil
}

// Words returns how many words of a query every matching file contains. Expressions, negated words
// and alternatives do not count.
func Words(q Q) (n int) {
	switch q := q.(type) {
	case *Text:
		if q.Field == Content && !q.Regexp {
			n = 1
		}
	case *And:
		for _, sub := range q.Subs {
			n += Words(sub)
		}
	}
	return n
}
