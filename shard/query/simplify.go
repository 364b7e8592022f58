package query

import "github.com/RoaringBitmap/roaring/v2"

// Simplify returns a tree that holds for the same documents and is no larger:
// And in And and Or in Or become one, constants disappear, equal siblings are
// one, sets of repositories that stand side by side become one, and an
// expression that is only a text becomes that text.
func Simplify(q Q) Q { return Map(q, simplify) }

func simplify(q Q) Q {
	switch n := q.(type) {
	case *And:
		return combine(n.Subs, true)
	case *Or:
		return combine(n.Subs, false)
	case *Not:
		switch s := n.Sub.(type) {
		case Const:
			return !s
		case *Not:
			return s.Sub
		}
	case *Text:
		return simplifyText(n)
	case *Repos:
		if n.Set.IsEmpty() {
			return Const(false)
		}
	}
	return q
}

func simplifyText(t *Text) Q {
	if t.Regexp {
		text, ok := literal(t.Pattern)
		if !ok {
			return t
		}
		t = &Text{Pattern: text, Fold: t.Fold, Field: t.Field}
	}
	if t.Pattern == "" && t.Field != Symbol {
		return Const(true)
	}
	return t
}

// combine makes an And (all) or an Or of simplified parts.
func combine(subs []Q, all bool) Q {
	var out []Q
	var sets []*roaring.Bitmap
	seen := make(map[any]bool)
	var add func(s Q) (decided bool)
	add = func(s Q) bool {
		switch n := s.(type) {
		case Const:
			return bool(n) != all
		case *And:
			if all {
				return anyOf(n.Subs, add)
			}
		case *Or:
			if !all {
				return anyOf(n.Subs, add)
			}
		case *Repos:
			sets = append(sets, n.Set)
			return false
		}
		if k := key(s); k != nil {
			if seen[k] {
				return false
			}
			seen[k] = true
		}
		out = append(out, s)
		return false
	}
	if anyOf(subs, add) {
		return Const(!all)
	}
	if len(sets) > 0 {
		set := merge(sets, all)
		if set.IsEmpty() && all {
			return Const(false)
		}
		if !set.IsEmpty() {
			out = append(out, &Repos{Set: set})
		}
	}
	switch {
	case len(out) == 0:
		return Const(all)
	case len(out) == 1:
		return out[0]
	case all:
		return &And{Subs: out}
	}
	return &Or{Subs: out}
}

func anyOf(subs []Q, f func(Q) bool) bool {
	for _, s := range subs {
		if f(s) {
			return true
		}
	}
	return false
}

func merge(sets []*roaring.Bitmap, all bool) *roaring.Bitmap {
	if len(sets) == 1 {
		return sets[0]
	}
	if all {
		return roaring.FastAnd(sets...)
	}
	return roaring.FastOr(sets...)
}

// key is equal for atoms that are equal, and nil for what is not compared.
func key(q Q) any {
	switch n := q.(type) {
	case *Text:
		return *n
	case *Lang:
		return *n
	case *Rev:
		return *n
	case *Repo:
		return *n
	case *Context:
		return *n
	case *Flag:
		return *n
	case *Not:
		if k := key(n.Sub); k != nil {
			return [2]any{"not", k}
		}
	}
	return nil
}
