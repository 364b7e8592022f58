package query

import "github.com/RoaringBitmap/roaring/v2"

// Map rebuilds a tree from the leaves up: f is given each node when its children are mapped,
// and returns what takes its place. q is not changed.
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

// mapAll maps each of subs.
func mapAll(subs []Q, f func(Q) Q) []Q {
	out := make([]Q, len(subs))
	for i, s := range subs {
		out[i] = Map(s, f)
	}
	return out
}

// Resolve replaces every atom about repositories (Repo, RepoSet, Context, Flag) by the set
// of numbers that lookup returns for it. The sets become part of the tree and must not be
// changed afterwards. The first error of lookup ends it.
func Resolve(q Q, lookup func(atom Q) (*roaring.Bitmap, error)) (Q, error) {
	var failed error
	out := Map(q, func(n Q) Q {
		switch n.(type) {
		case *Repo, *RepoSet, *Context, *Flag:
		default:
			return n
		}

		// Map cannot stop: after an error nothing more is looked up.
		if failed != nil {
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

// Words counts the words of a query that the text of a file must all have. An expression
// is none, and neither is what is negated or one of several.
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
