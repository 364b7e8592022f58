package shard

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/query"
)

// CountUnsearched counts the files without content in the index that q could match if their content
// were known. If ctx ends, the count may be too low.
//
// It needs no search. A shard lists such files in classes with the same repository and revisions
// (skipList). Every condition except a pattern of paths has the same result for all files of a
// class, and the result of a pattern of paths is a set of bits.
func (v *View) CountUnsearched(ctx context.Context, q query.Q) (int, error) {
	reached, unknown := Reach(q)
	if !unknown {
		return 0, nil
	}

	p, err := newPlan(query.Simplify(reached), nil, &v.set.known)
	if err != nil {
		return 0, err
	}

	sum := 0
	for _, m := range v.members {
		n := 0
		err := file.Guard(func() (err error) {
			n, err = m.countSkipped(ctx, p, v.set.names)
			return err
		})

		// Skip a file that cannot be used: a search reports it.
		if err != nil && !file.Unusable(err) {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// countSkipped counts the files of a member that have no content in the index and satisfy a plan
// without content patterns.
func (m *member) countSkipped(ctx context.Context, p *plan, names *pathSets) (int, error) {
	if err := m.ready(); err != nil {
		return 0, err
	}

	// For most searches only a condition on the revision is left, and that count is cached.
	revision := p.root.op == opRev
	if known := m.skips.Load(); revision && known != nil && known.revision == p.root.name {
		return known.files, nil
	}

	c := &skipCounter{ctx: ctx, m: m, list: m.sh.skipList(), masks: make([]*repoMasks, p.slots), paths: make([]docSet, len(p.patterns))}
	if len(c.list.rows) == 0 || !c.matchConditions(p, p.root, names) {
		return 0, nil
	}
	n := c.countRows(p.root)

	// Do not cache a count that was cut short.
	if revision && ctx.Err() == nil {
		m.skips.Store(&skipCount{p.root.name, n})
	}
	return n, nil
}

// skipCounter counts the rows of a skipList for which a plan holds.
type skipCounter struct {
	ctx   context.Context
	m     *member
	list  *skipList
	revs  []*node      // nodes with opRev
	masks []*repoMasks // by slot, for opRepos and opRev
	paths []docSet     // by pattern: the rows whose paths match
}

// matchConditions sets c.masks, c.revs and c.paths: which repositories, revisions and paths of the
// shard the conditions below n match. It returns false if ctx ended.
func (c *skipCounter) matchConditions(p *plan, n *node, names *pathSets) bool {
	switch n.op {
	case opRev:
		c.revs = append(c.revs, n)
		c.masks[n.slot] = c.m.masksOf(n)
	case opRepos:
		c.masks[n.slot] = c.m.masksOf(n)
	case opName:
		c.paths[n.pat] = names.matchingRows(c.ctx, c.m.sh, p.patterns[n.pat])
	}

	for _, sub := range n.subs {
		if !c.matchConditions(p, sub, names) {
			return false
		}
	}
	return c.ctx.Err() == nil
}

// countRows counts the rows for which the root holds, class by class. It counts the rows whose
// revisions a later generation has changed one by one.
func (c *skipCounter) countRows(root *node) int {
	changed, changedAlive := c.m.changedSkips(c.list)
	sum := 0
	for i := range c.list.classes {
		if i&255 == 255 && c.ctx.Err() != nil {
			break
		}

		k := &c.list.classes[i]
		repo := c.m.repos[k.repo]
		if repo == nil {
			continue
		}
		sum += c.countRange(root, skipRange{k.repo, repo.masks[k.mask], k.word, k.words()}, k.lastWordMask(), changed)
	}

	for _, a := range changedAlive {
		bit := uint64(1) << (a.bit & 63)
		in := skipRange{a.repo, a.mask, a.bit >> 6, 1}
		if set := c.rowsInAnyRevision(root, in); set.bits == nil && set.all || set.bits != nil && set.bits[0]&bit != 0 {
			sum++
		}
	}
	return sum
}

// countRange counts the rows of a range for which the root holds in any revision, without the
// changed rows. lastWord has the bits of the last word that stand for rows.
func (c *skipCounter) countRange(root *node, in skipRange, lastWord uint64, changed docSet) int {
	set := c.rowsInAnyRevision(root, in)
	if set.bits == nil && !set.all {
		return 0
	}

	sum := 0
	for i := range in.words {
		word := ^uint64(0)
		if set.bits != nil {
			word = set.bits[i]
		}
		if i == in.words-1 {
			word &= lastWord
		}
		if changed != nil {
			word &^= changed[in.word+i]
		}
		sum += bits.OnesCount64(word)
	}
	return sum
}

// skipRange is a run of words of a skipList whose rows have one repository and one mask.
type skipRange struct {
	repo        int
	mask        uint64
	word, words int
}

// rowSet is a set of the rows of a range. If bits is nil, it has all rows or none, as all says.
type rowSet struct {
	all  bool
	bits []uint64
}

// rowsInAnyRevision returns the rows for which the root holds in any revision of the range. It
// evaluates revisions together if every node has the same result for them.
//
//	mask 0b111, rev:a holds in 0b001    ->    evaluate 0b001 and 0b110
func (c *skipCounter) rowsInAnyRevision(root *node, in skipRange) rowSet {
	if in.mask == 0 {
		return rowSet{}
	}

	alike := []uint64{in.mask} // sets of revisions for which every node has the same result
	for _, n := range c.revs {
		matching := c.masks[n.slot].bits[in.repo]
		for i, part := range alike {
			if yes, no := part&matching, part&^matching; yes != 0 && no != 0 {
				alike[i] = yes
				alike = append(alike, no)
			}
		}
	}

	set := rowSet{}
	for _, revisions := range alike {
		set = set.or(c.rowsHolding(root, in, revisions))
	}
	return set
}

// rowsHolding returns the rows of a range for which a node holds in revisions. Every node must have
// the same result for all of them.
func (c *skipCounter) rowsHolding(n *node, in skipRange, revisions uint64) rowSet {
	switch n.op {
	case opConst:
		return rowSet{all: n.yes}
	case opRev, opRepos:
		return rowSet{all: c.masks[n.slot].bits[in.repo]&revisions != 0}
	case opLang:
		return rowSet{all: n.name == SkippedLanguage}
	case opName:
		return rowSet{bits: c.paths[n.pat][in.word : in.word+in.words]}
	case opNot:
		return c.rowsHolding(n.subs[0], in, revisions).not()

	case opAnd:
		set := rowSet{all: true}
		for _, sub := range n.subs {
			set = set.and(c.rowsHolding(sub, in, revisions))
		}
		return set
	case opOr:
		set := rowSet{}
		for _, sub := range n.subs {
			set = set.or(c.rowsHolding(sub, in, revisions))
		}
		return set
	}
	panic(fmt.Sprintf("BUG: a plan that Reach made has operator %d", n.op))
}

// and returns the intersection of two sets. It changes neither.
func (s rowSet) and(o rowSet) rowSet {
	switch {
	case s.bits == nil && !s.all, o.bits == nil && o.all:
		return s
	case o.bits == nil, s.bits == nil:
		return o
	}

	out := make([]uint64, len(s.bits))
	for i := range out {
		out[i] = s.bits[i] & o.bits[i]
	}
	return rowSet{bits: out}
}

// or returns the union of two sets. It changes neither.
func (s rowSet) or(o rowSet) rowSet {
	switch {
	case s.bits == nil && s.all, o.bits == nil && !o.all:
		return s
	case o.bits == nil, s.bits == nil:
		return o
	}

	out := make([]uint64, len(s.bits))
	for i := range out {
		out[i] = s.bits[i] | o.bits[i]
	}
	return rowSet{bits: out}
}

// not returns the complement. It does not change the set.
func (s rowSet) not() rowSet {
	if s.bits == nil {
		return rowSet{all: !s.all}
	}
	out := make([]uint64, len(s.bits))
	for i := range out {
		out[i] = ^s.bits[i]
	}
	return rowSet{bits: out}
}
