package query

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// Simplify returns a tree that is true for the same documents and not larger. Nested And and nested
// Or become one. Constants and duplicates disappear. Neighbouring sets of repositories become one.
// An expression that is only a literal becomes that literal.
func Simplify(q Q) Q { return Map(q, simplify) }

// simplify simplifies a node whose children are simplified.
func simplify(q Q) Q {
	switch n := q.(type) {
	case *And:
		return combine(n.Subs, isAnd)
	case *Or:
		return combine(n.Subs, isOr)
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

// simplifyText turns an expression that is only a literal into that literal. The empty text matches
// everywhere.
func simplifyText(t *Text) Q {
	if t.Regexp {
		text, ok := asLiteral(t.Pattern)
		if !ok {
			return t
		}
		plain := *t
		plain.Pattern, plain.Regexp = text, false
		t = &plain
	}

	// Every document contains the empty text, but not every document has a symbol.
	if t.Pattern == "" && t.Field != Symbol {
		return Const(true)
	}
	return t
}

// Operators of combine and combiner.
const (
	isAnd = true
	isOr  = false
)

// combine returns the simplified And of simplified members, or their Or if all is isOr.
func combine(subs []Q, all bool) Q {
	c := combiner{all: all, seen: make(map[any]bool)}
	if c.addAll(subs) {
		return Const(!all)
	}

	// An empty set makes an And false, and changes nothing in an Or.
	if len(c.sets) > 0 {
		set := joinSets(c.sets, all)
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

// combiner collects the members of an And or an Or.
type combiner struct {
	all  bool // isAnd or isOr
	out  []Q
	sets []*roaring.Bitmap // sets of repositories, which become one set
	seen map[any]bool      // keys of the members in out
}

// add adds a member. It reports whether the member decides the result: the constant false in an
// And, or true in an Or.
func (c *combiner) add(s Q) (decided bool) {
	switch n := s.(type) {
	case Const:
		return bool(n) != c.all

	// Instead of an operator of the same kind, add its members.
	case *And:
		if c.all {
			return c.addAll(n.Subs)
		}
	case *Or:
		if !c.all {
			return c.addAll(n.Subs)
		}

	case *Repos:
		c.sets = append(c.sets, n.Set)
		return false
	}

	if k := atomKey(s); k != nil {
		if c.seen[k] {
			return false
		}
		c.seen[k] = true
	}
	c.out = append(c.out, s)
	return false
}

// addAll adds members until one decides the result.
func (c *combiner) addAll(subs []Q) (decided bool) { return slices.ContainsFunc(subs, c.add) }

// joinSets returns the intersection of sets, or the union if all is false.
func joinSets(sets []*roaring.Bitmap, all bool) *roaring.Bitmap {
	if len(sets) == 1 {
		return sets[0]
	}
	if all {
		return roaring.FastAnd(sets...)
	}
	return roaring.FastOr(sets...)
}

// atomKey returns the same value for equal atoms, and for their negations; nil for nodes that are
// not compared.
func atomKey(q Q) any {
	switch n := q.(type) {
	case *Text:
		return *n
	case *Lang:
		return *n
	case *Rev:
		return *n
	case *Dates:
		return *n
	case *Merge:
		return *n

	case *Repo:
		return *n
	case *Context:
		return *n
	case *Flag:
		return *n

	case *Not:
		if k := atomKey(n.Sub); k != nil {
			return [2]any{"not", k}
		}
	}
	return nil
}
