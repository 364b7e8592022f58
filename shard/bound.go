package shard

import (
	"errors"
	"math/bits"

	"github.com/shoalsearch/shoal/trigram"
)

// bound is a plan applied to one shard of a view. It knows which documents may match, from the
// shard's lists, columns and postings.
type bound struct {
	p *plan
	m *member
	s *shard

	nodes []boundNode         // by node.slot
	names []*nameSet          // by pattern; for opName
	units [][]*trigram.Bitmap // by pattern of opContent, then by segment: candidate units; nil means none
	syms  []*symbolHits       // by pattern; for opSymbol
	feeds []bool              // by segment: it has a "\r"; nil while no pattern depends on line ends

	coarse bool   // columns are not read yet: any condition on a column may hold
	passed bool   // coarse made upper or lower skip a column
	within docSet // documents whose columns are read; nil means all

	defs       docSet       // documents that define a word of the query; nil when none does
	defExact   docSet       // documents of defs that define the word in the query's case
	defNames   map[int]bool // by number of a defining name: it has the query's case although case is ignored
	cache      *blockCache  // nil where the search reads so much that it would only evict other blocks
	docs       []uint32     // candidate documents, in order
	candidates int          // candidate units
	work       trigram.Work
}

// boundNode is what the lists of a shard say about a node.
type boundNode struct {
	repos *repoMasks // opRev, opRepos
	langs []bool     // opLang: by language
}

// scratch holds the buffers with which one goroutine reads postings. A view may have thousands of
// small shards, most of them without a candidate. So a buffer that one shard did not need serves
// the next.
type scratch struct {
	post  trigram.Scratch
	spare []*trigram.Bitmap // free bitmaps
}

// keepBitmaps is how many spare bitmaps, of 8 KiB each, go to the next search.
const keepBitmaps = 32

// bitmap returns a bitmap with arbitrary content.
func (s *scratch) bitmap() *trigram.Bitmap {
	if n := len(s.spare); n > 0 {
		b := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return b
	}
	return new(trigram.Bitmap)
}

// bind applies a plan to a member: it finds the documents that may match. It asks the cheapest
// sources first: the lists of repositories, revisions and languages, then the postings. The columns
// (paths, languages of occurrences) come last, for the documents that are left.
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

	alive, few := m.alive()
	if few {
		b.within = alive
	}
	if len(p.contents) > 0 {
		if err := b.postings(scratch); err != nil {
			return nil, err
		}
	}

	// Read the columns of the few documents that are left. If the postings skipped no column, this
	// is done already.
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
	if p.untagged {
		filter = m.untaggedDocs().and(filter)
	}

	for d := filter.next(0, b.s.m.documents); d >= 0; d = filter.next(d+1, b.s.m.documents) {
		b.docs = append(b.docs, uint32(d))
	}

	// Documents that define a word of the query are decided first.
	if len(b.docs) > 0 {
		if err := b.definitions(); err != nil {
			return nil, err
		}
		b.definitionsFirst()
	}

	return b, nil
}

// postings narrows b.within to the documents in which the postings allow the content patterns to
// match. It reads no columns.
func (b *bound) postings(scratch *scratch) error {
	// Search each pattern on its own; upper combines the results.
	for _, i := range b.p.contents {
		if err := b.search(i, scratch); err != nil {
			return err
		}
	}
	if err := b.lineEnds(); err != nil {
		return err
	}

	// Skip the columns: they are read later, for the documents that the postings leave.
	b.coarse = true
	upper, err := b.upper(b.p.root)
	b.coarse = false
	b.within = upper.and(b.within)
	return err
}

// lineEnds finds the segments that have a "\r", if a pattern depends on it.
func (b *bound) lineEnds() error {
	for _, i := range b.p.contents {
		if !b.p.patterns[i].m.ReadsLineEnds() {
			continue
		}

		// One answer serves all patterns.
		b.feeds = make([]bool, b.s.post.Segments())
		for seg := range b.feeds {
			var err error
			if b.feeds[seg], err = b.s.post.HasByte(seg, '\r'); err != nil {
				return err
			}
		}

		break
	}
	return nil
}

// possible reports whether the shard can have a match, by its lists of repositories, revisions and
// languages. It visits every node, because it also prepares what the columns are compared with.
func (b *bound) possible(n *node) bool {
	switch n.op {
	case opConst:
		return n.yes

	// By repository and revision.
	case opRepos, opRev:
		masks := b.m.masksOf(n)
		b.nodes[n.slot].repos = masks
		return !masks.none

	// By language.
	case opLang:
		langs, any := make([]bool, len(b.s.m.languages)), false
		for i, l := range b.s.m.languages {
			langs[i] = l == n.name
			any = any || langs[i]
		}
		b.nodes[n.slot].langs = langs
		return any

	// Visit every member, also when the result is known.
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

	// A Not rules nothing out: what it negates may be absent from every document.
	case opNot:
		b.possible(n.subs[0])
	}
	return true
}

// atoms finds the symbols that the query asks for and prepares the name sets.
func (b *bound) atoms(n *node) error {
	var err error
	switch n.op {
	case opName:
		// Compute this once for each pattern, even if the query contains it several times.
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

// pass reports whether columns are skipped for now, and remembers that one was.
func (b *bound) pass() bool {
	b.passed = b.passed || b.coarse
	return b.coarse
}

// wide reports whether so many documents are left that the postings of paths cost less than
// matching the paths of each document.
func (b *bound) wide() bool {
	if b.within == nil {
		return true
	}
	n := 0
	for _, word := range b.within {
		n += bits.OnesCount64(word)
	}
	return n >= leastPaths
}

// scan returns the documents of b.within that have an occurrence for which holds is true. With all,
// holds must be true for every occurrence.
func (b *bound) scan(holds func(o int) bool, all bool) docSet {
	documents := b.s.m.documents
	set := newDocSet(documents)
	for d := b.within.next(0, documents); d >= 0; d = b.within.next(d+1, documents) {
		// One occurrence can decide: a true one makes "any" true, a false one makes "all" false.
		yes := all
		for o, end := int(b.s.docOccur.At(d)), int(b.s.docOccur.At(d+1)); o < end; o++ {
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

// skipped returns the documents that are kept by name only.
func (b *bound) skipped() docSet {
	set := newDocSet(b.s.m.documents)
	for _, d := range b.s.skipped() {
		set.add(int(d))
	}
	return set
}

// hasLang returns a condition for scan: the occurrence has the language of the node.
func (b *bound) hasLang(n *node) func(o int) bool {
	langs := b.nodes[n.slot].langs
	return func(o int) bool { return langs[b.s.occLang.At(o)] }
}

// hasName returns a condition for scan: the path of the occurrence matches the pattern of the node.
func (b *bound) hasName(n *node) func(o int) bool {
	names := b.names[n.pat]
	return func(o int) bool { return names.learn(b.s, b.s.occPath.At(o)) }
}

// upper returns a superset of the documents that satisfy a node; nil stands for
// all documents. upper and lower are bounds of the exact set:
//
//	lower(n) <= exact(n) <= upper(n)     upper(not n) = not lower(n)
func (b *bound) upper(n *node) (docSet, error) {
	s := b.s
	switch n.op {
	// These need no look at any document.
	case opConst:
		if !n.yes {
			return newDocSet(s.m.documents), nil
		}
	case opRepos, opRev:
		return b.upperRepos(n), nil

	// The columns decide, unless they are skipped for now.
	case opLang:
		if n.name == SkippedLanguage {
			return b.skipped(), nil
		}
		if !b.pass() {
			return b.scan(b.hasLang(n), false), nil
		}
	case opName:
		if b.pass() {
			break
		}
		if names := b.names[n.pat]; b.wide() && names.learnAll(s) {
			return names.documents(s).and(b.within), nil
		}
		return b.scan(b.hasName(n), false), nil

	// The symbols and the postings decide.
	case opSymbol:
		return b.syms[n.pat].docs(s.m.documents), nil
	case opContent:
		if b.units[n.pat] != nil {
			return b.docsOf(b.units[n.pat]), nil
		}

	// These combine the bounds of their members.
	case opNot:
		lower, err := b.lower(n.subs[0])
		return lower.not(s.m.documents), err
	case opAnd:
		return intersect(n.subs, b.upper)
	case opOr:
		return b.unite(n.subs, b.upper)
	}
	return nil, nil
}

// intersect returns the intersection of the bounds of subs.
func intersect(subs []*node, bound func(*node) (docSet, error)) (docSet, error) {
	var set docSet
	for _, sub := range subs {
		subset, err := bound(sub)
		if err != nil {
			return nil, err
		}
		set = set.and(subset)
	}
	return set, nil
}

// unite returns the union of the bounds of subs.
func (b *bound) unite(subs []*node, bound func(*node) (docSet, error)) (docSet, error) {
	set := newDocSet(b.s.m.documents)
	for _, sub := range subs {
		subset, err := bound(sub)
		if err != nil {
			return nil, err
		}

		// A nil set holds all documents already.
		if set = set.or(subset); set == nil {
			break
		}
	}
	return set, nil
}

// upperRepos returns a superset of the documents in the repositories and revisions of n; nil stands
// for all documents. If one answer holds for the whole shard, it reads no column.
func (b *bound) upperRepos(n *node) docSet {
	masks := b.nodes[n.slot].repos
	bits := masks.bits
	switch {
	// The lists alone may answer for all documents.
	case masks.all:
		return nil
	case masks.none:
		return newDocSet(b.s.m.documents)
	case b.pass():
		return nil
	}

	return b.scan(func(o int) bool {
		i := b.s.occRepo.At(o)
		r := b.m.repos[i]
		return r != nil && bits[i]&r.mask(b.s, o) != 0
	}, false)
}

// lower returns documents that are known to satisfy a node, whichever of their occurrences and
// revisions counts.
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

	// The columns decide.
	case opRepos:
		bits := b.nodes[n.slot].repos.bits
		return b.scan(func(o int) bool {
			i := s.occRepo.At(o)
			return b.m.repos[i] == nil || bits[i] != 0
		}, true), nil
	case opLang:
		return b.scan(b.hasLang(n), true), nil
	case opName:
		if b.wide() {
			b.names[n.pat].learnAll(s)
		}
		return b.scan(b.hasName(n), true), nil
	case opSymbol:
		return b.syms[n.pat].docs(s.m.documents), nil

	// These combine the bounds of their members.
	case opNot:
		upper, err := b.upper(n.subs[0])
		return upper.not(s.m.documents), err
	case opAnd:
		return intersect(n.subs, b.lower)
	case opOr:
		return b.unite(n.subs, b.lower)
	}
	return newDocSet(s.m.documents), nil
}

// search sets the candidate units of a pattern, from an earlier search or from the postings.
func (b *bound) search(pat int, scratch *scratch) error {
	if b.recall(pat, scratch) {
		return nil
	}

	// Ask the postings of each segment.
	s := b.s
	units, sum := newUnits(s), 0
	scratch.post.Work = trigram.Work{}
	for seg := range units {
		found := scratch.bitmap()
		n, err := s.post.Search(seg, b.p.patterns[pat].formula, nil, &scratch.post, found)
		if err != nil {
			if errors.Is(err, trigram.ErrCorrupt) {
				err = s.f.Damaged("%w", err)
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

	// Add the work of all segments.
	b.work.Lookups += scratch.post.Work.Lookups
	b.work.Lists += scratch.post.Work.Lists
	b.work.Bytes += scratch.post.Work.Bytes
	b.candidates += sum
	b.units[pat] = units
	b.remember(pat, sum)
	return nil
}

// newUnits returns room for the candidates of a pattern, by segment.
func newUnits(s *shard) []*trigram.Bitmap { return make([]*trigram.Bitmap, len(s.content)) }

// docsOf returns the documents that own candidate units.
func (b *bound) docsOf(units []*trigram.Bitmap) docSet {
	s := b.s
	set, d := newDocSet(s.m.documents), 0
	for seg, bitmap := range units {
		if bitmap == nil {
			continue
		}

		start, limit := s.segStart[seg], s.segStart[seg+1]-s.segStart[seg]
		for u := bitmap.Next(0); u >= 0 && u < limit; {
			// One candidate unit is enough: continue after the document that owns it.
			d = s.documentFrom(d, start+u)
			set.add(d)
			u = bitmap.Next(int(s.docUnit.At(d+1)) - start)
		}
	}
	return set
}

// recall sets the candidates of a pattern to those of an earlier search. It reports whether there
// are any.
func (b *bound) recall(pat int, scratch *scratch) bool {
	rows, ok := b.s.found.get(b.p.patterns[pat].formula)
	if !ok {
		return false
	}

	units, seg := newUnits(b.s), 0

	// Rows ascend, and so do the segments that contain them.
	for _, row := range rows {
		for int(row) >= b.s.segStart[seg+1] {
			seg++
		}

		if units[seg] == nil {
			units[seg] = scratch.bitmap()
			units[seg].Clear()
		}

		units[seg].Set(uint16(int(row) - b.s.segStart[seg]))
	}

	b.candidates += len(rows)
	b.units[pat] = units
	return true
}

// remember keeps the n candidates of a pattern for later searches, unless they are very many:
// setting their bits again would take longer than asking the postings.
func (b *bound) remember(pat, n int) {
	most := max(keepRows, b.s.m.units)
	if n > most/4 || len(b.p.patterns[pat].text.Pattern) > keepPattern {
		return
	}

	// Count rows in the shard, not in the segment: then one list serves all segments.
	named := namedUnits{formula: b.p.patterns[pat].formula, rows: make([]uint32, 0, n)}
	for seg, bitmap := range b.units[pat] {
		if bitmap == nil {
			continue
		}
		for u := bitmap.Next(0); u >= 0; u = bitmap.Next(u + 1) {
			named.rows = append(named.rows, uint32(b.s.segStart[seg]+u))
		}
	}

	b.s.found.put(named, most)
}
