package shard

import (
	"errors"
	"fmt"

	"github.com/shoalsearch/shoal/trigram"
)

// bound is a plan made ready for one shard of a view: atoms that its columns
// answer are answered, and the postings have named the candidates.
type bound struct {
	p *plan
	m *member
	s *shard

	nodes []boundNode // by slot
	names []*nameSet  // by pattern, of opName
	units [][]*trigram.Bitmap
	syms  []*symbolHits // by pattern, of opSymbol

	coarse bool   // the columns are not asked yet
	passed bool   // one of them would have been
	within docSet // and when they are, of these documents only

	defs       docSet       // documents that define a word of the query; nil when none does
	defExact   docSet       // those of them that define it in the case of the query
	defNames   map[int]bool // numbers of the names that do: whether the case is that of the query, where it need not be
	cache      *blockCache  // nil where so much will be read that it would only suffer
	docs       []uint32     // candidates, in order
	candidates int          // units
	work       trigram.Work
}

// boundNode is what a shard knows of a node.
type boundNode struct {
	repos *repoMasks // opRev, opRepos
	langs []bool     // opLang: by language
}

// nameSet is what is known of a pattern and the paths of a shard. While a plan
// is bound it learns; afterwards it is read by many.
type nameSet struct {
	p          *pattern
	known, yes []uint64
}

func newNameSet(p *pattern, s *shard) *nameSet {
	words := (s.m.paths + 63) / 64
	bits := make([]uint64, 2*words)
	return &nameSet{p: p, known: bits[:words], yes: bits[words:]}
}

// has tells whether the pattern matches in a path.
func (n *nameSet) has(s *shard, path uint32) bool {
	if bit := uint64(1) << (path & 63); n.known[path>>6]&bit != 0 {
		return n.yes[path>>6]&bit != 0
	}
	return n.p.m.Matches(s.path(int(path)))
}

// learn is has, and keeps the answer.
func (n *nameSet) learn(s *shard, path uint32) bool {
	yes := n.has(s, path)
	bit := uint64(1) << (path & 63)
	n.known[path>>6] |= bit
	if yes {
		n.yes[path>>6] |= bit
	}
	return yes
}

// scratch is the buffers of a goroutine for posting searches. A view may have
// thousands of small shards, most of which have no candidate: what one of them
// did not need goes to the next.
type scratch struct {
	post  trigram.Scratch
	spare []*trigram.Bitmap // that nobody uses
}

// keepBitmaps is how many spare bitmaps, of 8 KiB each, go to the next search.
const keepBitmaps = 32

func (s *scratch) bitmap() *trigram.Bitmap {
	if n := len(s.spare); n > 0 {
		b := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return b
	}
	return new(trigram.Bitmap)
}

// bind makes a plan ready for a member.
func bind(p *plan, m *member, scratch *scratch) (*bound, error) {
	b := &bound{p: p, m: m, s: m.sh}
	if b.s.m.documents == 0 {
		return b, nil
	}
	b.nodes = make([]boundNode, p.slots)
	b.names = make([]*nameSet, len(p.patterns))
	b.units = make([][]*trigram.Bitmap, len(p.patterns))
	b.syms = make([]*symbolHits, len(p.patterns))
	if !b.possible(p.root) {
		return b, nil
	}
	if err := b.atoms(p.root); err != nil {
		return nil, err
	}
	// The postings come first: a column is then asked about few documents.
	alive, few := m.alive()
	if few {
		b.within = alive
	}
	if len(p.contents) > 0 {
		for _, i := range p.contents {
			if err := b.search(i, scratch); err != nil {
				return nil, err
			}
		}
		b.coarse = true
		upper, err := b.upper(p.root)
		if err != nil {
			return nil, err
		}
		b.coarse = false
		b.within = upper.and(b.within)
	}
	filter := b.within
	if len(p.contents) == 0 || b.passed {
		upper, err := b.upper(p.root)
		if err != nil {
			return nil, err
		}
		filter = upper.and(filter)
	}
	if !few {
		filter = filter.and(alive)
	}
	for d := filter.next(0, b.s.m.documents); d >= 0; d = filter.next(d+1, b.s.m.documents) {
		b.docs = append(b.docs, uint32(d))
	}
	if len(b.docs) > 0 {
		if err := b.definitions(); err != nil {
			return nil, err
		}
		b.definitionsFirst()
	}
	return b, nil
}

// possible answers what the revisions and repositories alone can deny, before
// any column is looked at.
func (b *bound) possible(n *node) bool {
	switch n.op {
	case opConst:
		return n.yes
	case opRepos, opRev:
		masks := b.m.masksOf(n)
		b.nodes[n.slot].repos = masks
		return !masks.none
	case opLang:
		langs, any := make([]bool, len(b.s.m.languages)), false
		for i, l := range b.s.m.languages {
			langs[i] = l == n.name
			any = any || langs[i]
		}
		b.nodes[n.slot].langs = langs
		return any
	case opAnd:
		all := true
		for _, sub := range n.subs {
			all = b.possible(sub) && all
		}
		return all
	case opOr:
		any := false
		for _, sub := range n.subs {
			any = b.possible(sub) || any
		}
		return any
	case opNot:
		b.possible(n.subs[0])
	}
	return true
}

// atoms answers the symbols and makes ready to learn of names.
func (b *bound) atoms(n *node) error {
	var err error
	switch n.op {
	case opName:
		if b.names[n.pat] == nil {
			b.names[n.pat] = newNameSet(b.p.patterns[n.pat], b.s)
		}
	case opSymbol:
		if b.syms[n.pat] == nil {
			b.syms[n.pat], err = b.m.matchSymbols(b.p.patterns[n.pat])
		}
	}
	for _, sub := range n.subs {
		if err == nil {
			err = b.atoms(sub)
		}
	}
	return err
}

// pass tells whether a column is not to be asked yet, and notes that it will
// have to be.
func (b *bound) pass() bool {
	b.passed = b.passed || b.coarse
	return b.coarse
}

// scan gives the documents, of those that matter, of which an occurrence
// holds, or all do.
func (b *bound) scan(holds func(o int) bool, all bool) docSet {
	documents := b.s.m.documents
	set := newDocSet(documents)
	for d := b.within.next(0, documents); d >= 0; d = b.within.next(d+1, documents) {
		yes := all
		for o, end := int(b.s.docOccur.at(d)), int(b.s.docOccur.at(d+1)); o < end; o++ {
			if holds(o) != all {
				yes = !all
			}
		}
		if yes {
			set.add(d)
		}
	}
	return set
}

// hasLang and hasName give the conditions of scan for atoms.
func (b *bound) hasLang(n *node) func(o int) bool {
	langs := b.nodes[n.slot].langs
	return func(o int) bool { return langs[b.s.occLang.at(o)] }
}

func (b *bound) hasName(n *node) func(o int) bool {
	names := b.names[n.pat]
	return func(o int) bool { return names.learn(b.s, b.s.occPath.at(o)) }
}

// upper gives the documents that may satisfy a node, as far as is known.
func (b *bound) upper(n *node) (docSet, error) {
	s := b.s
	switch n.op {
	case opConst:
		if !n.yes {
			return newDocSet(s.m.documents), nil
		}
	case opRepos, opRev:
		return b.upperRepos(n), nil
	case opLang:
		if !b.pass() {
			return b.scan(b.hasLang(n), false), nil
		}
	case opName:
		if !b.pass() {
			return b.scan(b.hasName(n), false), nil
		}
	case opSymbol:
		return b.syms[n.pat].docs(s.m.documents), nil
	case opContent:
		if b.units[n.pat] != nil {
			return b.docsOf(b.units[n.pat]), nil
		}
	case opNot:
		lower, err := b.lower(n.subs[0])
		return lower.not(s.m.documents), err
	case opAnd:
		var set docSet
		for _, sub := range n.subs {
			u, err := b.upper(sub)
			if err != nil {
				return nil, err
			}
			set = set.and(u)
		}
		return set, nil
	case opOr:
		set := newDocSet(s.m.documents)
		for _, sub := range n.subs {
			u, err := b.upper(sub)
			if err != nil {
				return nil, err
			}
			if set = set.or(u); set == nil {
				break
			}
		}
		return set, nil
	}
	return nil, nil
}

// upperRepos answers for a whole repository at once where it can.
func (b *bound) upperRepos(n *node) docSet {
	masks := b.nodes[n.slot].repos
	bits := masks.bits
	switch {
	case masks.all:
		return nil
	case masks.none:
		return newDocSet(b.s.m.documents)
	case b.pass():
		return nil
	}
	return b.scan(func(o int) bool {
		i := b.s.occRepo.at(o)
		r := b.m.repos[i]
		return r != nil && bits[i]&r.mask(b.s, o) != 0
	}, false)
}

// lower gives documents that satisfy a node for certain, in every occurrence
// and revision; it may leave some out.
func (b *bound) lower(n *node) (docSet, error) {
	s := b.s
	if (n.op == opRepos || n.op == opLang || n.op == opName) && b.pass() {
		return newDocSet(s.m.documents), nil
	}
	switch n.op {
	case opConst:
		if n.yes {
			return nil, nil
		}
	case opRepos:
		bits := b.nodes[n.slot].repos.bits
		return b.scan(func(o int) bool {
			i := s.occRepo.at(o)
			return b.m.repos[i] == nil || bits[i] != 0
		}, true), nil
	case opLang:
		return b.scan(b.hasLang(n), true), nil
	case opName:
		return b.scan(b.hasName(n), true), nil
	case opSymbol:
		return b.syms[n.pat].docs(s.m.documents), nil
	case opNot:
		upper, err := b.upper(n.subs[0])
		return upper.not(s.m.documents), err
	case opAnd:
		var set docSet
		for _, sub := range n.subs {
			l, err := b.lower(sub)
			if err != nil {
				return nil, err
			}
			set = set.and(l)
		}
		return set, nil
	case opOr:
		set := newDocSet(s.m.documents)
		for _, sub := range n.subs {
			l, err := b.lower(sub)
			if err != nil {
				return nil, err
			}
			if set = set.or(l); set == nil {
				break
			}
		}
		return set, nil
	}
	return newDocSet(s.m.documents), nil
}

// search asks the postings for the candidates of a content pattern.
func (b *bound) search(pat int, scratch *scratch) error {
	if b.recall(pat, scratch) {
		return nil
	}
	s := b.s
	units, sum := newUnits(s), 0
	scratch.post.Work = trigram.Work{}
	for seg := range units {
		found := scratch.bitmap()
		n, err := s.post.Search(seg, b.p.patterns[pat].formula, nil, &scratch.post, found)
		if err != nil {
			if errors.Is(err, trigram.ErrCorrupt) {
				err = fmt.Errorf("%s: %w: %w", s.f.name, ErrDamaged, err)
			}
			return err
		}
		if n == 0 {
			scratch.spare = append(scratch.spare, found)
			continue // nil: no candidates
		}
		units[seg] = found
		sum += n
	}
	b.work.Lookups += scratch.post.Work.Lookups
	b.work.Lists += scratch.post.Work.Lists
	b.work.Bytes += scratch.post.Work.Bytes
	b.candidates += sum
	b.units[pat] = units
	b.remember(pat, sum)
	return nil
}

// newUnits makes room for the candidates of a pattern, by segment.
func newUnits(s *shard) []*trigram.Bitmap { return make([]*trigram.Bitmap, len(s.content)) }

// docsOf gives the documents that own units.
func (b *bound) docsOf(units []*trigram.Bitmap) docSet {
	s := b.s
	set, d := newDocSet(s.m.documents), 0
	for seg, bitmap := range units {
		if bitmap == nil {
			continue
		}
		start, limit := s.segStart[seg], s.segStart[seg+1]-s.segStart[seg]
		for u := bitmap.Next(0); u >= 0 && u < limit; {
			d = s.documentFrom(d, start+u)
			set.add(d)
			u = bitmap.Next(int(s.docUnit.at(d+1)) - start)
		}
	}
	return set
}
