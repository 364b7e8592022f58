package trigram

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// Scratch holds the buffers of one goroutine for [Index.Search], so that a
// search allocates next to nothing. The zero value is ready.
type Scratch struct {
	Work Work // added to by every search

	free   []*Bitmap
	lists  []list
	ids    []uint16
	only   []uint16
	thrown []uint16
}

// small is the number of units up to which an intersection is a sorted array.
const small = 2 * varintMax

// Search sets out to the candidate units of one segment and returns their
// number. When within is not nil, candidates are wanted only there: none is
// added outside. Work is bounded by the size of the segment; damaged bytes
// give an error that wraps [ErrCorrupt].
func (x *Index) Search(seg int, f *Formula, within *Bitmap, s *Scratch, out *Bitmap) (int, error) {
	e := evaluation{seg: &x.segs[seg], Scratch: s, reach: f.reach, atStart: f.scope == ScopeStart}
	out.Clear()
	if f.root == nil {
		out.AddRange(0, e.seg.units)
	} else if err := e.eval(f.root, out); err != nil {
		return 0, err
	}
	if within != nil {
		out.And(within)
	}
	return out.Count(), nil
}

// Documents sets out to the first units of the documents of a segment.
func (x *Index) Documents(seg int, s *Scratch, out *Bitmap) error {
	e := evaluation{seg: &x.segs[seg], Scratch: s}
	return e.key(keyFirst, out)
}

// evaluation is one formula over one segment.
type evaluation struct {
	seg *segment
	*Scratch
	reach   reach
	atStart bool // the first condition of a sequence says where a match starts
	first   *Bitmap
	noLine  *Bitmap
	// within, when not nil, is where units are of use: what is found outside
	// of it may be left out.
	within *Bitmap
}

func (s *Scratch) take() *Bitmap {
	if n := len(s.free); n > 0 {
		b := s.free[n-1]
		s.free = s.free[:n-1]
		b.Clear()
		return b
	}
	return new(Bitmap)
}

func (s *Scratch) give(b *Bitmap) { s.free = append(s.free, b) }

// key adds the units of one key to out.
func (e *evaluation) key(key uint32, out *Bitmap) error {
	l, err := e.seg.find(key, &e.Work)
	if err != nil || l.n == 0 {
		return err
	}
	return l.orInto(out, e.seg.units, &e.Work)
}

// eval adds to out the units that satisfy n.
func (e *evaluation) eval(n *node, out *Bitmap) error {
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
	if n.special {
		if err := e.evalSpecial(out); err != nil {
			return err
		}
	}
	if n.op == opRun {
		column, err := e.seg.column(n.class)
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

// evalSpecial adds the units with a character that only folds to ASCII.
func (e *evaluation) evalSpecial(out *Bitmap) error {
	if err := e.key(0xe284aa, out); err != nil {
		return err
	}
	return e.pairs(0xc5, 0xbf, nil, nil, out)
}

// evalFactor adds the units that have all of a factor's trigrams.
func (e *evaluation) evalFactor(n *node, out *Bitmap) error {
	if n.picks == nil {
		return e.evalClasses(n.set, e.limit(e.within), out)
	}
	b := e.take()
	defer e.give(b)
	exact := n.exact()
	count := math.MaxInt
	if exact {
		var err error
		if count, err = e.evalExact(n, b); err != nil || count == 0 {
			return err
		}
	}
	for _, i := range n.picks {
		k := n.triple(i)
		if k == 1 || exact && count < k {
			continue // to look up a list costs about what reading a unit does
		}
		among := e.within
		if exact {
			among = b
		}
		union := e.take()
		err := e.evalClasses(n.set[i:i+3], e.limit(among), union)
		if exact {
			b.And(union)
		} else {
			*b, exact = *union, true
		}
		count = b.Count()
		e.give(union)
		if err != nil {
			return err
		}
	}
	out.Or(b)
	return nil
}

// limit gives the members of a set, where there are few, for evalClasses.
func (e *evaluation) limit(among *Bitmap) []uint16 {
	if among == nil || among.Count() > small {
		return nil
	}
	e.only = among.appendTo(e.only[:0])
	return e.only
}

// evalExact intersects all trigrams of single bytes, the rarest first, into an
// empty set, and returns the number of units.
func (e *evaluation) evalExact(n *node, out *Bitmap) (int, error) {
	from := len(e.lists)
	defer func() { e.lists = e.lists[:from] }()
	if ok, err := e.lookup(n, &e.Work); err != nil || !ok {
		return 0, err
	}
	lists := e.lists[from:]
	if e.within != nil {
		if k := e.within.Count(); k <= small && k <= lists[0].n {
			e.ids = e.within.appendTo(e.ids[:0])
			return e.evalFew(lists, out)
		}
	}
	if lists[0].n <= small {
		e.ids = e.ids[:0]
		if err := lists[0].collect(e.seg.units, &e.Work, &e.ids); err != nil {
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
	for lists = lists[1:]; len(lists) > 0 && count > small; lists = lists[1:] {
		if err := lists[0].andInto(out, e.seg.units, &e.Work); err != nil {
			return 0, err
		}
		count = out.Count()
	}
	if count > small || count == 0 {
		return count, nil
	}
	// Few are left: an array of them is faster now.
	e.ids = out.appendTo(e.ids[:0])
	out.Clear()
	return e.evalFew(lists, out)
}

// evalFew sets out to those of e.ids that are in all lists.
func (e *evaluation) evalFew(lists []list, out *Bitmap) (int, error) {
	ids := e.ids
	var err error
	for ; len(lists) > 0 && err == nil && len(ids) > few; lists = lists[1:] {
		ids, err = lists[0].filter(ids, e.seg.units, &e.Work)
	}
	for _, id := range ids {
		out.Set(id)
	}
	return len(ids), err
}

// few is the number of units at which reading them costs no more than ruling
// them out by further lists.
const few = 2

// appendTo appends the members in ascending order.
func (b *Bitmap) appendTo(ids []uint16) []uint16 {
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			ids = append(ids, uint16(i<<6+bits.TrailingZeros64(w)))
		}
	}
	return ids
}

// lookup appends the lists of the trigrams of single bytes to e.lists, in the
// order of their sizes. It reports false if one of them is empty.
func (e *evaluation) lookup(n *node, w *Work) (bool, error) {
	from := len(e.lists)
	for i := 0; i+3 <= len(n.set); i++ {
		if n.triple(i) != 1 {
			continue
		}
		key := uint32(n.set[i].min())<<16 | uint32(n.set[i+1].min())<<8 | uint32(n.set[i+2].min())
		l, err := e.seg.find(key, w)
		if err != nil || l.n == 0 {
			return false, err
		}
		e.lists = append(e.lists, l)
	}
	slices.SortFunc(e.lists[from:], func(a, b list) int { return a.n - b.n })
	return true, nil
}

// evalClasses adds the union over all trigrams of one to three classes: of
// those in only, unless it is nil.
func (e *evaluation) evalClasses(set []byteSet, only []uint16, out *Bitmap) error {
	var buf [2][256]byte
	first := set[0].bytes(buf[0][:0])
	second := buf[1][:0]
	var third *byteSet
	if len(set) > 1 {
		second = set[1].bytes(second)
	} else {
		for b := range 256 {
			second = append(second, byte(b))
		}
	}
	if len(set) > 2 {
		third = &set[2]
	}
	for _, a := range first {
		for _, b := range second {
			if foldByte[b] != b {
				continue
			}
			if err := e.pairs(a, b, third, only, out); err != nil {
				return err
			}
		}
		if only == nil && out.Count() >= e.seg.units-e.seg.units/saturated {
			out.AddRange(0, e.seg.units)
			return nil
		}
	}
	return nil
}

// saturated is one over the share of units that a union has to rule out to be
// worth its end: what is in all but these rarely becomes less by more lists.
const saturated = 8

// pairs adds the units, those in only unless it is nil, of all trigrams that
// begin with two bytes and have the third in a set, any for nil.
func (e *evaluation) pairs(a, b byte, third *byteSet, only []uint16, out *Bitmap) error {
	prefix := uint32(a)<<16 | uint32(b)<<8
	e.Work.Lookups++
	c := cursor{s: e.seg}
	for ok := c.seek(prefix); ok && c.l.key>>8 == prefix>>8; ok = c.next() {
		if third != nil && !third.has(byte(c.l.key)) {
			continue
		}
		if only == nil {
			if err := c.l.orInto(out, e.seg.units, &e.Work); err != nil {
				return err
			}
			continue
		}
		e.thrown = append(e.thrown[:0], only...)
		kept, err := c.l.filter(e.thrown, e.seg.units, &e.Work)
		if err != nil {
			return err
		}
		for _, id := range kept {
			out.Set(id)
		}
	}
	return c.err
}

// estimate guesses the number of units that satisfy n.
func (e *evaluation) estimate(n *node) (int, error) {
	switch n.op {
	case opNone:
		return 0, nil
	case opRun:
		return e.seg.units >> min(n.count/4, 8), nil
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
	if !n.exact() {
		return e.seg.units, nil
	}
	from := len(e.lists)
	defer func() { e.lists = e.lists[:from] }()
	var w Work
	ok, err := e.lookup(n, &w)
	if err != nil || !ok {
		return 0, err
	}
	return e.lists[from].n, nil
}

// evalSeq adds the units of the anchor, which is the first condition where
// starts are asked for and else the rarest, from which each of the others is
// in reach.
func (e *evaluation) evalSeq(n *node, out *Bitmap) error {
	type sub struct{ i, estimate int }
	order := make([]sub, len(n.subs))
	for i := range n.subs {
		k, err := e.estimate(n.subs[i])
		if err != nil {
			return err
		}
		order[i] = sub{i, k}
	}
	anchor := 0
	slices.SortStableFunc(order, func(a, b sub) int { return a.estimate - b.estimate })
	if !e.atStart {
		anchor = order[0].i
	}
	set := e.take()
	defer e.give(set)
	if err := e.eval(n.subs[anchor], set); err != nil {
		return err
	}
	for _, o := range order {
		if o.i == anchor || *set == (Bitmap{}) {
			continue
		}
		if err := e.require(set, n.subs[o.i], o.i > anchor); err != nil {
			return err
		}
	}
	out.Or(set)
	return nil
}

// require removes from a set the units from which a condition is not in reach,
// ahead or behind.
func (e *evaluation) require(set *Bitmap, n *node, ahead bool) error {
	// The condition is of interest only where a unit of the set reaches.
	near, other, outer := e.take(), e.take(), e.within
	defer func() { e.give(near); e.give(other); e.within = outer }()
	*near = *set
	if err := e.spread(near, !ahead); err != nil {
		return err
	}
	e.within = near
	if err := e.eval(n, other); err != nil {
		return err
	}
	err := e.spread(other, ahead)
	set.And(other)
	return err
}

// spread grows the set of units where a condition holds to those that have
// one of these in reach: ahead of them when ahead is set, else behind.
func (e *evaluation) spread(b *Bitmap, ahead bool) error {
	if e.first == nil {
		e.first = new(Bitmap)
		if err := e.key(keyFirst, e.first); err != nil {
			return err
		}
	}
	if e.reach == reachDocument {
		e.spreadDocument(b, ahead)
		return nil
	}
	if e.reach == reachLine && e.noLine == nil {
		e.noLine = new(Bitmap)
		if err := e.key(keyNoNewline, e.noLine); err != nil {
			return err
		}
	}
	if e.reach == reachLine {
		e.spreadLine(b, ahead)
	}
	if ahead {
		b.shiftDown(e.first)
	} else {
		b.shiftUp(e.first)
	}
	return nil
}

// spreadLine follows lines through units that own no newline.
func (e *evaluation) spreadLine(b *Bitmap, ahead bool) {
	if ahead {
		for u := SegmentUnits - 2; u >= 0; u-- {
			if w := e.noLine[u>>6]; w == 0 {
				u &^= 63
				continue
			}
			v := uint16(u)
			if e.noLine.Has(v) && b.Has(v+1) && !e.first.Has(v+1) {
				b.Set(v)
			}
		}
		return
	}
	for u := e.noLine.Next(1); u >= 0; u = e.noLine.Next(u + 1) {
		v := uint16(u)
		if b.Has(v-1) && !e.first.Has(v) {
			b.Set(v)
		}
	}
}

// spreadDocument follows documents.
func (e *evaluation) spreadDocument(b *Bitmap, ahead bool) {
	if ahead {
		for u := e.seg.units - 2; u >= 0; u-- {
			v := uint16(u)
			if b.Has(v+1) && !e.first.Has(v+1) {
				b.Set(v)
			}
		}
		return
	}
	for u := b.Next(0); u >= 0; u = b.Next(u) {
		for u++; u < e.seg.units && !e.first.Has(uint16(u)); u++ {
			b.Set(uint16(u))
		}
	}
}

// shiftDown adds the unit before each unit of the set, in the same document.
func (b *Bitmap) shiftDown(first *Bitmap) {
	for i := range b {
		carry := uint64(0)
		if i+1 < len(b) {
			carry = (b[i+1] &^ first[i+1]) << 63
		}
		b[i] |= (b[i]&^first[i])>>1 | carry
	}
}

// shiftUp adds the unit after each unit of the set, in the same document.
func (b *Bitmap) shiftUp(first *Bitmap) {
	for i := len(b) - 1; i >= 0; i-- {
		x := b[i] << 1
		if i > 0 {
			x |= b[i-1] >> 63
		}
		b[i] |= x &^ first[i]
	}
}

// collect appends the units of a list.
func (l *list) collect(units int, w *Work, ids *[]uint16) error {
	if l.kind == kindFlat || l.kind == kindSliced {
		var b Bitmap
		if err := l.orInto(&b, units, w); err != nil {
			return err
		}
		*ids = b.appendTo(*ids)
		return nil
	}
	if err := l.open(w); err != nil {
		return err
	}
	return l.each(units, func(id uint16) { *ids = append(*ids, id) })
}

// filter keeps the ids that are in the list.
func (l *list) filter(ids []uint16, units int, w *Work) ([]uint16, error) {
	if err := l.open(w); err != nil {
		return nil, err
	}
	kept := ids[:0]
	switch l.kind {
	case kindFlat:
		if len(l.data) != 8*((units+63)/64) {
			return nil, l.corrupt()
		}
		for _, id := range ids {
			if l.data[id>>3]&(1<<(id&7)) != 0 {
				kept = append(kept, id)
			}
		}
		return kept, nil
	case kindSliced:
		return l.filterSliced(ids)
	}
	i := 0
	err := l.each(units, func(id uint16) {
		for i < len(ids) && ids[i] < id {
			i++
		}
		if i < len(ids) && ids[i] == id {
			kept = append(kept, id)
			i++
		}
	})
	return kept, err
}

// filterSliced skips the slices that no id asks for.
func (l *list) filterSliced(ids []uint16) ([]uint16, error) {
	if len(l.data) < 32 {
		return nil, l.corrupt()
	}
	kept, data := ids[:0], l.data[32:]
	for word := 0; word < 4 && len(ids) > 0; word++ {
		for x := binary.LittleEndian.Uint64(l.data[8*word:]); x != 0 && len(ids) > 0; x &= x - 1 {
			if len(data) < 2 || len(data) < 1+min(int(data[0])+1, 32) {
				return nil, l.corrupt()
			}
			slice, size := uint16(word<<6+bits.TrailingZeros64(x)), min(int(data[0])+1, 32)
			for len(ids) > 0 && ids[0]>>8 < slice {
				ids = ids[1:]
			}
			for len(ids) > 0 && ids[0]>>8 == slice {
				if inSlice(data[1:1+size], byte(ids[0])) {
					kept = append(kept, ids[0])
				}
				ids = ids[1:]
			}
			data = data[1+size:]
		}
	}
	return kept, nil
}

// inSlice looks a low byte up in a slice of 1 to 31 bytes or in its bitmap.
func inSlice(data []byte, low byte) bool {
	if len(data) == 32 {
		return data[low>>3]&(1<<(low&7)) != 0
	}
	return slices.Contains(data, low)
}
