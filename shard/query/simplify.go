package query

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// Simplify returns a tree that holds for the same documents and is no larger: And in And,
// and Or in Or, become one; constants disappear; equal siblings become one; sets of
// repositories side by side become one; and an expression that is only a literal becomes
// that literal.
func Simplify(q Q) Q { return Map(q, simplify) }

// simplify simplifies a node whose children are simplified.
func simplify(q Q) Q {
	// Nodes: their subs are simplified already.
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

	// Leaves that cannot match, or match by simpler means.
	case *Text:
		return simplifyText(n)
	case *Repos:
		if n.Set.IsEmpty() {
			return Const(false)
		}
	}
	return q
}

// simplifyText makes a literal of an expression that is nothing more; the empty text is
// everywhere.
func simplifyText(t *Text) Q {
	if t.Regexp {
		text, ok := literal(t.Pattern)
		if !ok {
			return t
		}
		of := *t
		of.Pattern, of.Regexp = text, false
		t = &of
	}

	// Every document has the empty text, but not every one has a symbol.
	if t.Pattern == "" && t.Field != Symbol {
		return Const(true)
	}
	return t
}

// combine makes an And (all) or an Or of simplified parts.
func combine(subs []Q, all bool) Q {
	c := combiner{all: all, seen: make(map[any]bool)}
	if c.addAll(subs) {
		return Const(!all)
	}

	// No repository at all: an and holds nowhere, and an or has one arm less.
	if len(c.sets) > 0 {
		set := merge(c.sets, all)
		if set.IsEmpty() && all {
			return Const(false)
		}
		if !set.IsEmpty() {
			c.out = append(c.out, &Repos{Set: set})
		}
	}

	switch {
	case len(c.out) == 0:
		return Const(all)
	case len(c.out) == 1:
		return c.out[0]
	case all:
		return &And{Subs: c.out}
	}
	return &Or{Subs: c.out}
}

// combiner collects the parts of an And (all) or an Or.
type combiner struct {
	all  bool
	out  []Q
	sets []*roaring.Bitmap // repositories, which become one set
	seen map[any]bool      // keys of out
}

// add takes a part in. It reports whether the part decides the whole: false in an And,
// true in an Or.
func (c *combiner) add(s Q) (decided bool) {
	// A constant decides the whole or says nothing.
	switch n := s.(type) {
	case Const:
		return bool(n) != c.all

	// A node of the same kind: its subs are ours.
	case *And:
		if c.all {
			return c.addAll(n.Subs)
		}
	case *Or:
		if !c.all {
			return c.addAll(n.Subs)
		}

	// Sets are joined into one at the end.
	case *Repos:
		c.sets = append(c.sets, n.Set)
		return false
	}

	if k := key(s); k != nil {
		if c.seen[k] {
			return false
		}
		c.seen[k] = true
	}
	c.out = append(c.out, s)
	return false
}

// addAll adds parts until one decides the whole.
func (c *combiner) addAll(subs []Q) (decided bool) { return slices.ContainsFunc(subs, c.add) }

// merge intersects (all) or unites sets.
func merge(sets []*roaring.Bitmap, all bool) *roaring.Bitmap {
	if len(sets) == 1 {
		return sets[0]
	}
	if all {
		return roaring.FastAnd(sets...)
	}
	return roaring.FastOr(sets...)
}

// key returns the same value for equal atoms; nil for what is not compared.
func key(q Q) any {
	// Atoms are compared by value.
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

	// A negation is equal if what it negates is.
	case *Not:
		if k := key(n.Sub); k != nil {
			return [2]any{"not", k}
		}
	}
	return nil
}
