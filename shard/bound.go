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
	syms  []*symbolHits       // by pattern; for opSymbol: the names in which it matches
	hasCR []bool              // by segment: its text has a "\r"; nil if no pattern depends on line ends

	skipColumns   bool   // upper and lower must not read columns: any condition on a column may hold
	skippedColumn bool   // upper or lower has skipped a column because of skipColumns
	within        docSet // documents that may still match: columns are read only for these; nil means all

	defs       docSet       // documents that define a word of the query; nil when none does
	defExact   docSet       // documents of defs that define the word in the query's case
	defNames   map[int]bool // by number of a defining name: it has the query's case although case is ignored
	cache      *blockCache  // nil if the search reads so much that it would only evict other blocks
	docs       []uint32     // candidate documents, in order
	candidates int          // candidate units
	work       trigram.Work
}

// boundNode has the repositories, revisions or languages of the shard for which a node holds.
type boundNode struct {
	repos *repoMasks // opRev, opRepos
	langs []bool     // opLang: by language
}

// scratch has the buffers with which one goroutine reads postings. A view may have thousands of
// small shards, most of them without a candidate, so the goroutine uses the same buffers for all of
// them.
type scratch struct {
	post  trigram.Scratch
	spare []*trigram.Bitmap // free bitmaps
}

// maxSpareBitmaps is how many spare bitmaps, of 8 KiB each, go to the next search.
const maxSpareBitmaps = 32

// bitmap returns a bitmap with arbitrary content.
func (s *scratch) bitmap() *trigram.Bitmap {
	if n := len(s.spare); n > 0 {
		b := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return b
	}
	return new(trigram.Bitmap)
}

// bind applies a plan to a member: it finds the documents that may match, those that define a word
// of the query first. It reads the cheapest data first: the lists of repositories, revisions and
// languages of the shard, then the postings. It reads the columns (paths and languages of
// occurrences) last, and only for the documents that are left.
func bind(p *plan, m *member, scratch *scratch) (*bound, error) {
	b := &bound{p: p, m: m, s: m.sh}
	if b.s.m.documents == 0 {
		return b, nil
	}

	b.nodes = make([]boundNode, p.slots)
	b.names = make([]*nameSet, len(p.patterns))
	b.units = make([][]*trigram.Bitmap, len(p.patterns))
	b.syms = make([]*symbolHits, len(p.patterns))

	if !b.canMatch(p.root) {
		return b, nil
	}
	if err := b.prepareAtoms(p.root); err != nil {
		return nil, err
	}

	alive, isMinority := m.alive()
	if isMinority {
		b.within = alive
	}
	if len(p.contents) > 0 {
		if err := b.searchPostings(scratch); err != nil {
			return nil, err
		}
	}

	// Read the columns of the documents that are left, unless searchPostings skipped no column.
	filter := b.within
	if len(p.contents) == 0 || b.skippedColumn {
		upper, err := b.upper(p.root)
		if err != nil {
			return nil, err
		}
		filter = upper.and(filter)
	}
	if !isMinority {
		filter = filter.and(alive)
	}
	if p.untagged {
		filter = m.untaggedDocs().and(filter)
	}

	for d := filter.next(0, b.s.m.documents); d >= 0; d = filter.next(d+1, b.s.m.documents) {
		b.docs = append(b.docs, uint32(d))
	}

	if len(b.docs) > 0 {
		if err := b.findDefiners(); err != nil {
			return nil, err
		}
		b.moveDefinersFirst()
	}

	return b, nil
}

// searchPostings narrows b.within to the documents in which the postings allow the content patterns
// to match. It reads no columns.
func (b *bound) searchPostings(scratch *scratch) error {
	for _, i := range b.p.contents {
		if err := b.searchPattern(i, scratch); err != nil {
			return err
		}
	}
	if err := b.findCarriageReturns(); err != nil {
		return err
	}

	// Do not read columns yet: bind reads them later, for the documents that are left.
	b.skipColumns = true
	upper, err := b.upper(b.p.root)
	b.skipColumns = false
	b.within = upper.and(b.within)
	return err
}

// findCarriageReturns sets b.hasCR, which says which segments have a "\r", if a pattern depends on
// line ends.
func (b *bound) findCarriageReturns() error {
	for _, i := range b.p.contents {
		if !b.p.patterns[i].m.ReadsLineEnds() {
			continue
		}

		b.hasCR = make([]bool, b.s.post.Segments())
		for seg := range b.hasCR {
			var err error
			if b.hasCR[seg], err = b.s.post.HasByte(seg, '\r'); err != nil {
				return err
			}
		}

		break
	}
	return nil
}

// canMatch reports whether the shard can have a match, by its lists of repositories, revisions and
// languages. It also sets b.nodes, so it visits every node, even if the result is known.
func (b *bound) canMatch(n *node) bool {
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

	case opAnd:
		all := true
		for _, sub := range n.subs {
			all = b.canMatch(sub) && all
		}
		return all

	case opOr:
		any := false
		for _, sub := range n.subs {
			any = b.canMatch(sub) || any
		}
		return any

	// A Not rules nothing out: its member may hold for no document.
	case opNot:
		b.canMatch(n.subs[0])
	}
	return true
}

// prepareAtoms matches the patterns of symbols with the names of the shard, and makes the name set
// of each pattern of paths.
func (b *bound) prepareAtoms(n *node) error {
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
			err = b.prepareAtoms(sub)
		}
	}
	return err
}

// skipColumn reports whether the caller must skip a column, because of b.skipColumns, and then sets
// b.skippedColumn.
func (b *bound) skipColumn() bool {
	b.skippedColumn = b.skippedColumn || b.skipColumns
	return b.skipColumns
}

// hasManyDocs reports whether so many documents are left that searching the path index costs less
// than matching the paths of each of them.
func (b *bound) hasManyDocs() bool {
	if b.within == nil {
		return true
	}
	n := 0
	for _, word := range b.within {
		n += bits.OnesCount64(word)
	}
	return n >= minIndexedPaths
}

// For how many occurrences of a document scanOccurrences requires a condition.
const (
	anyOccurrence  = false
	allOccurrences = true
)

// scanOccurrences returns the documents of b.within that have an occurrence for which holds returns
// true. If all is set, holds must return true for every occurrence.
func (b *bound) scanOccurrences(holds func(o int) bool, all bool) docSet {
	documents := b.s.m.documents
	set := newDocSet(documents)
	for d := b.within.next(0, documents); d >= 0; d = b.within.next(d+1, documents) {
		// One occurrence for which holds returns another value than all decides.
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

// skippedSet returns the documents without content in the index.
func (b *bound) skippedSet() docSet {
	set := newDocSet(b.s.m.documents)
	for _, d := range b.s.skippedDocs() {
		set.add(int(d))
	}
	return set
}

// languageCondition returns a condition for scanOccurrences: the occurrence has the language of the
// node.
func (b *bound) languageCondition(n *node) func(o int) bool {
	langs := b.nodes[n.slot].langs
	return func(o int) bool { return langs[b.s.occLang.At(o)] }
}

// pathCondition returns a condition for scanOccurrences: the path of the occurrence matches the
// pattern of the node.
func (b *bound) pathCondition(n *node) func(o int) bool {
	names := b.names[n.pat]
	return func(o int) bool { return names.matchPath(b.s, b.s.occPath.At(o)) }
}

// upper returns a superset of the documents that satisfy a node; nil stands for
// all documents. upper and lower are bounds of the exact set:
//
//	lower(n) <= exact(n) <= upper(n)     upper(not n) = not lower(n)
func (b *bound) upper(n *node) (docSet, error) {
	s := b.s
	switch n.op {
	case opConst:
		if !n.yes {
			return newDocSet(s.m.documents), nil
		}
	case opRepos, opRev:
		return b.upperRepos(n), nil

	// The columns decide, unless the caller skips them.
	case opLang:
		if n.name == SkippedLanguage {
			return b.skippedSet(), nil
		}
		if !b.skipColumn() {
			return b.scanOccurrences(b.languageCondition(n), anyOccurrence), nil
		}
	case opName:
		if b.skipColumn() {
			break
		}
		if names := b.names[n.pat]; b.hasManyDocs() && names.matchAllPaths(s) {
			return names.documents(s).and(b.within), nil
		}
		return b.scanOccurrences(b.pathCondition(n), anyOccurrence), nil

	// Symbols and postings decide.
	case opSymbol:
		return b.syms[n.pat].copySet(s.m.documents), nil
	case opContent:
		if b.units[n.pat] != nil {
			return b.documentsOf(b.units[n.pat]), nil
		}

	// Operators combine the bounds of their members.
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
// for all documents. It reads no column if n holds for all of the shard, or for nothing in it.
func (b *bound) upperRepos(n *node) docSet {
	masks := b.nodes[n.slot].repos
	bits := masks.bits
	switch {
	case masks.all:
		return nil
	case masks.none:
		return newDocSet(b.s.m.documents)
	case b.skipColumn():
		return nil
	}

	return b.scanOccurrences(func(o int) bool {
		i := b.s.occRepo.At(o)
		r := b.m.repos[i]
		return r != nil && bits[i]&r.mask(b.s, o) != 0
	}, anyOccurrence)
}

// lower returns documents that certainly satisfy a node, in all of their occurrences and revisions;
// nil stands for all documents.
func (b *bound) lower(n *node) (docSet, error) {
	s := b.s
	if (n.op == opRepos || n.op == opLang || n.op == opName) && b.skipColumn() {
		return newDocSet(s.m.documents), nil
	}

	switch n.op {
	case opConst:
		if n.yes {
			return nil, nil
		}

	// Columns decide.
	case opRepos:
		bits := b.nodes[n.slot].repos.bits
		return b.scanOccurrences(func(o int) bool {
			i := s.occRepo.At(o)
			return b.m.repos[i] == nil || bits[i] != 0
		}, allOccurrences), nil
	case opLang:
		return b.scanOccurrences(b.languageCondition(n), allOccurrences), nil
	case opName:
		if b.hasManyDocs() {
			b.names[n.pat].matchAllPaths(s)
		}
		return b.scanOccurrences(b.pathCondition(n), allOccurrences), nil
	case opSymbol:
		return b.syms[n.pat].copySet(s.m.documents), nil

	// Operators combine the bounds of their members.
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

// searchPattern sets b.units of a pattern to its candidate units, from an earlier search or the
// postings.
func (b *bound) searchPattern(pat int, scratch *scratch) error {
	if b.loadCandidates(pat, scratch) {
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

	b.work.Lookups += scratch.post.Work.Lookups
	b.work.Lists += scratch.post.Work.Lists
	b.work.Bytes += scratch.post.Work.Bytes
	b.candidates += sum
	b.units[pat] = units
	b.storeCandidates(pat, sum)
	return nil
}

// newUnits returns a list with an empty place for the candidate units of each segment.
func newUnits(s *shard) []*trigram.Bitmap { return make([]*trigram.Bitmap, len(s.content)) }

// documentsOf returns the documents that own candidate units.
func (b *bound) documentsOf(units []*trigram.Bitmap) docSet {
	s := b.s
	set, d := newDocSet(s.m.documents), 0
	for seg, bitmap := range units {
		if bitmap == nil {
			continue
		}

		start, limit := s.segStart[seg], s.segStart[seg+1]-s.segStart[seg]
		for u := bitmap.Next(0); u >= 0 && u < limit; {
			// One candidate unit is enough: continue after the document that owns it.
			d = s.findDocument(d, start+u)
			set.add(d)
			u = bitmap.Next(int(s.docUnit.At(d+1)) - start)
		}
	}
	return set
}

// loadCandidates sets b.units of a pattern to the cached result of an earlier search. It returns
// false if there is none.
func (b *bound) loadCandidates(pat int, scratch *scratch) bool {
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

// storeCandidates caches the n candidate units of a pattern for later searches. It does not cache
// more than a quarter of maxRows, because setting their bits again would take longer than searching
// the postings.
func (b *bound) storeCandidates(pat, n int) {
	maxRows := max(maxCachedRows, b.s.m.units)
	if n > maxRows/4 || len(b.p.patterns[pat].text.Pattern) > maxCachedPatternBytes {
		return
	}

	// The cache has rows of the shard, so that one list has the units of all segments.
	named := namedUnits{formula: b.p.patterns[pat].formula, rows: make([]uint32, 0, n)}
	for seg, bitmap := range b.units[pat] {
		if bitmap == nil {
			continue
		}
		for u := bitmap.Next(0); u >= 0; u = bitmap.Next(u + 1) {
			named.rows = append(named.rows, uint32(b.s.segStart[seg]+u))
		}
	}

	b.s.found.put(named, maxRows)
}
