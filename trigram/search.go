package trigram

import (
	"math"
	"math/bits"
	"slices"
)

// Scratch holds the buffers with which one goroutine calls [Index.Search], so that a search
// allocates next to nothing. The zero value is ready to use.
type Scratch struct {
	Work Work // every search adds to it

	free   []*Bitmap // bitmaps that are not in use
	lists  []list    // of findExactLists
	ids    []uint16  // of evalFew
	only   []uint16  // result of listIfFew
	copied []uint16  // copy of only that addPrefix may overwrite
}

// arrayLimit is the number of units up to which an intersection is a sorted array, not a bitmap.
const arrayLimit = 2 * varintMax

// Search sets out to the candidate units of one segment and returns their number. If within is not
// nil, out has only candidates in it. The work is limited by the size of the segment. Damaged bytes
// give an error that wraps [ErrCorrupt].
func (x *Index) Search(seg int, f *Formula, within *Bitmap, s *Scratch, out *Bitmap) (int, error) {
	e := evaluation{seg: &x.segs[seg], Scratch: s, reach: f.reach, atStart: f.scope == ScopeStart}
	out.Clear()
	if f.root == nil {
		out.AddRange(0, e.seg.units)
	} else if err := e.eval(f.root, out); err != nil {
		return 0, err
	}

	// Lists are read whole, so out may have units outside of within.
	if within != nil {
		out.And(within)
	}
	return out.Count(), nil
}

// evaluation is the evaluation of one formula in one segment.
type evaluation struct {
	seg *segment
	*Scratch
	reach     reach
	atStart   bool    // candidates must be the units in which a match starts
	docStarts *Bitmap // units that begin a document; nil until they are read
	noNewline *Bitmap // units that own no newline; nil until they are read
	// within, if not nil, has the units of interest. Other candidates may be left out.
	within *Bitmap
}

// borrow returns an empty bitmap. putBack returns it to the scratch.
func (s *Scratch) borrow() *Bitmap {
	if n := len(s.free); n > 0 {
		b := s.free[n-1]
		s.free = s.free[:n-1]
		b.Clear()
		return b
	}
	return new(Bitmap)
}

func (s *Scratch) putBack(b *Bitmap) { s.free = append(s.free, b) }

// addKey adds the units of one key to out.
func (e *evaluation) addKey(key uint32, out *Bitmap) error {
	l, err := e.seg.findList(key, &e.Work)
	if err != nil || l.n == 0 {
		return err
	}
	return l.orInto(out, e.seg.units, &e.Work)
}

// eval adds the units that satisfy n to out. It may leave out units that are not in e.within.
func (e *evaluation) eval(n *node, out *Bitmap) error {
	// A union or a sequence combines the results of other conditions.
	switch n.op {
	case opNone:
		return nil
	case opOr:
		for _, sub := range n.subs {
			if err := e.eval(sub, out); err != nil {
				return err
			}
		}
		return nil

	case opSeq:
		return e.evalSeq(n, out)
	}

	// Characters beyond ASCII that fold to ASCII have trigrams of their own bytes.
	if n.special {
		if err := e.evalSpecial(out); err != nil {
			return err
		}
	}

	// For a run, a column has the longest run of each unit.
	if n.op == opRun {
		column, err := e.seg.readColumn(n.class)
		if err != nil {
			return err
		}

		for u, longest := range column {
			if int(longest) >= n.count {
				out.Set(uint16(u))
			}
		}
		return nil
	}
	return e.evalFactor(n, out)
}

// evalSpecial adds the units that have a character beyond ASCII which folds to ASCII: U+212A (E2 84
// AA) or U+017F (C5 BF).
func (e *evaluation) evalSpecial(out *Bitmap) error {
	if err := e.addKey(0xe284aa, out); err != nil {
		return err
	}
	return e.addPrefix(0xc5, 0xbf, nil, nil, out)
}

// evalFactor adds the units that have all trigrams of a factor. Lists of trigrams with single bytes
// are intersected. A position with classes is a union of lists, which is made only if it can rule
// out more units than it has lists.
func (e *evaluation) evalFactor(n *node, out *Bitmap) error {
	if n.picks == nil {
		return e.evalClasses(n.set, e.listIfFew(e.within), out)
	}

	b := e.borrow()
	defer e.putBack(b)

	// Trigrams of single bytes come first: they are the cheapest and rule out the most.
	exact := n.hasExactTrigram()
	count := math.MaxInt
	if exact {
		var err error
		if count, err = e.evalExact(n, b); err != nil || count == 0 {
			return err
		}
	}

	// Each position with classes rules out more of the units that are left.
	for _, i := range n.picks {
		k := n.countTrigrams(i)
		if k == 1 || exact && count < k {
			continue // looking up k lists costs more than reading count units
		}

		// Look only at units that are still possible.
		among := e.within
		if exact {
			among = b
		}

		union := e.borrow()
		err := e.evalClasses(n.set[i:i+3], e.listIfFew(among), union)
		if exact {
			b.And(union)
		} else {
			*b, exact = *union, true
		}

		count = b.Count()
		e.putBack(union)
		if err != nil {
			return err
		}
	}

	out.Or(b)
	return nil
}

// listIfFew returns the members of a set if they are at most arrayLimit. Otherwise, and for a nil
// set, it returns nil, with which evalClasses looks at all units. The result is valid until the next
// call.
func (e *evaluation) listIfFew(among *Bitmap) []uint16 {
	if among == nil || among.Count() > arrayLimit {
		return nil
	}
	e.only = among.appendTo(e.only[:0])
	return e.only
}

// evalExact sets out, which is empty, to the units that have all trigrams of single bytes, and
// returns their number. It may leave out units that are not in e.within. It intersects the lists,
// the shortest first. More than arrayLimit units are a bitmap, fewer are a sorted array, which is
// faster.
func (e *evaluation) evalExact(n *node, out *Bitmap) (int, error) {
	from := len(e.lists)
	defer func() { e.lists = e.lists[:from] }()
	if ok, err := e.findExactLists(n, &e.Work); err != nil || !ok {
		return 0, err
	}

	lists := e.lists[from:]

	// If few units are needed, look each of them up in the lists.
	if e.within != nil {
		if k := e.within.Count(); k <= arrayLimit && k <= lists[0].n {
			e.ids = e.within.appendTo(e.ids[:0])
			return e.evalFew(lists, out)
		}
	}

	if lists[0].n <= arrayLimit {
		e.ids = e.ids[:0]
		if err := lists[0].appendIDs(e.seg.units, &e.Work, &e.ids); err != nil {
			return 0, err
		}
		return e.evalFew(lists[1:], out)
	}

	if err := lists[0].orInto(out, e.seg.units, &e.Work); err != nil {
		return 0, err
	}
	count := lists[0].n
	if e.within != nil {
		out.And(e.within)
		count = out.Count()
	}

	for lists = lists[1:]; len(lists) > 0 && count > arrayLimit; lists = lists[1:] {
		if err := lists[0].andInto(out, e.seg.units, &e.Work); err != nil {
			return 0, err
		}
		count = out.Count()
	}

	if count > arrayLimit || count == 0 {
		return count, nil
	}

	e.ids = out.appendTo(e.ids[:0])
	out.Clear()
	return e.evalFew(lists, out)
}

// evalFew adds to out the units of e.ids that are in all lists, and returns how many it added. It
// reads no further list once at most cheapToRead units are left, so these may not be in all lists.
func (e *evaluation) evalFew(lists []list, out *Bitmap) (int, error) {
	ids := e.ids
	var err error
	for ; len(lists) > 0 && err == nil && len(ids) > cheapToRead; lists = lists[1:] {
		ids, err = lists[0].filterIDs(ids, e.seg.units, &e.Work)
	}

	for _, id := range ids {
		out.Set(id)
	}
	return len(ids), err
}

// cheapToRead is the number of units whose documents are as cheap to read as the next list.
const cheapToRead = 2

// appendTo appends the members in ascending order.
func (b *Bitmap) appendTo(ids []uint16) []uint16 {
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			ids = append(ids, uint16(i<<6+bits.TrailingZeros64(w)))
		}
	}
	return ids
}

// findExactLists appends the lists of the trigrams with single bytes to e.lists, the shortest
// first. It returns false if one of them is empty; then it may have appended only some of them.
func (e *evaluation) findExactLists(n *node, w *Work) (bool, error) {
	from := len(e.lists)
	for i := 0; i+3 <= len(n.set); i++ {
		if n.countTrigrams(i) != 1 {
			continue
		}

		key := uint32(n.set[i].min())<<16 | uint32(n.set[i+1].min())<<8 | uint32(n.set[i+2].min())
		l, err := e.seg.findList(key, w)
		if err != nil || l.n == 0 {
			return false, err
		}
		e.lists = append(e.lists, l)
	}

	// Sort by length: longer lists are read only for the units that are left.
	slices.SortFunc(e.lists[from:], func(a, b list) int { return a.n - b.n })
	return true, nil
}

// evalClasses adds the units that have a trigram whose bytes are in set[0], set[1] and set[2]. If
// set has fewer classes, the other bytes may be any. If only is not nil, it adds only units of that
// list.
func (e *evaluation) evalClasses(set []byteSet, only []uint16, out *Bitmap) error {
	var buf [2][256]byte
	first := set[0].appendBytes(buf[0][:0])
	second := buf[1][:0]
	var third *byteSet

	// A missing class means any byte.
	if len(set) > 1 {
		second = set[1].appendBytes(second)
	} else {
		for b := range 256 {
			second = append(second, byte(b))
		}
	}

	if len(set) > 2 {
		third = &set[2]
	}

	// Each pair of bytes is a range of the dictionary.
	for _, a := range first {
		for _, b := range second {
			if foldByte[b] != b { // a capital, which the index does not have
				continue
			}
			if err := e.addPrefix(a, b, third, only, out); err != nil {
				return err
			}
		}

		// A union of nearly all units rules out too little to continue.
		if only == nil && out.Count() >= e.seg.units-e.seg.units/allButShare {
			out.AddRange(0, e.seg.units)
			return nil
		}
	}
	return nil
}

// allButShare: if a union lacks at most 1/allButShare of the units, evalClasses takes all units, and
// reads no more lists.
const allButShare = 8

// addPrefix adds the units of all trigrams that begin with the bytes a and b, which are a range of
// the dictionary. The third byte must be in third; nil means any byte. If only is not nil, addPrefix
// adds only units of that list.
func (e *evaluation) addPrefix(a, b byte, third *byteSet, only []uint16, out *Bitmap) error {
	prefix := uint32(a)<<16 | uint32(b)<<8
	e.Work.Lookups++

	c := cursor{s: e.seg}
	for ok := c.seek(prefix); ok && c.entry.key>>8 == prefix>>8; ok = c.next() {
		if third != nil && !third.has(byte(c.entry.key)) {
			continue
		}

		if only == nil {
			if err := c.entry.orInto(out, e.seg.units, &e.Work); err != nil {
				return err
			}
			continue
		}

		// filterIDs works in place, but the next list needs only again.
		e.copied = append(e.copied[:0], only...)
		found, err := c.entry.filterIDs(e.copied, e.seg.units, &e.Work)
		if err != nil {
			return err
		}
		for _, id := range found {
			out.Set(id)
		}
	}
	return c.err
}

// estimate guesses from the dictionary alone how many units satisfy n.
func (e *evaluation) estimate(n *node) (int, error) {
	// A run has no list: guess that every four more bytes halve the number of units.
	switch n.op {
	case opNone:
		return 0, nil
	case opRun:
		return e.seg.units >> min(n.count/4, 8), nil

	// A union has at most the sum of its members, a sequence at most the least of them.
	case opOr, opSeq:
		sum, least := 0, math.MaxInt
		for _, sub := range n.subs {
			k, err := e.estimate(sub)
			if err != nil {
				return 0, err
			}
			sum, least = sum+k, min(least, k)
		}

		if n.op == opOr {
			return sum, nil
		}
		return least, nil
	}

	if !n.hasExactTrigram() {
		return e.seg.units, nil
	}

	from := len(e.lists)
	defer func() { e.lists = e.lists[:from] }()

	var w Work
	ok, err := e.findExactLists(n, &w)
	if err != nil || !ok {
		return 0, err
	}
	return e.lists[from].n, nil
}

// evalSeq adds the units in which one condition of a sequence holds, and from which all others are
// in reach. That condition, the anchor, is the first one if matches must start in the candidates,
// otherwise the rarest one.
func (e *evaluation) evalSeq(n *node, out *Bitmap) error {
	// Order the conditions from the rarest on.
	type sub struct{ index, estimate int }
	order := make([]sub, len(n.subs))
	for i := range n.subs {
		k, err := e.estimate(n.subs[i])
		if err != nil {
			return err
		}
		order[i] = sub{i, k}
	}

	// Find the units of the anchor, then require the others near them.
	anchor := 0
	slices.SortStableFunc(order, func(a, b sub) int { return a.estimate - b.estimate })
	if !e.atStart {
		anchor = order[0].index
	}

	set := e.borrow()
	defer e.putBack(set)
	if err := e.eval(n.subs[anchor], set); err != nil {
		return err
	}

	for _, o := range order {
		if o.index == anchor || *set == (Bitmap{}) {
			continue
		}
		if err := e.requireInReach(set, n.subs[o.index], o.index > anchor); err != nil {
			return err
		}
	}

	out.Or(set)
	return nil
}
