package trigram

// require removes the units of a set from which a condition is not in reach. ahead says that the
// condition comes later in the match.
func (e *evaluation) require(set *Bitmap, n *node, ahead bool) error {
	// The condition matters only in units that are in reach of the set.
	near, other, outer := e.borrow(), e.borrow(), e.within
	defer func() { e.putBack(near); e.putBack(other); e.within = outer }()

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

// spread grows a set of units in which a condition holds by the units that have one of these in
// reach: with ahead the units before them, otherwise the units after.
func (e *evaluation) spread(b *Bitmap, ahead bool) error {
	// Read the document starts once for all conditions: nothing spreads into another document.
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

	// A condition that is near begins in the same unit or in a unit beside it.
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
		// Go backward: a unit must be set before the unit before it is checked.
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

	// Go forward: a unit must be set before the unit after it is checked.
	for u := e.noLine.Next(1); u >= 0; u = e.noLine.Next(u + 1) {
		v := uint16(u)
		if b.Has(v-1) && !e.first.Has(v) {
			b.Set(v)
		}
	}
}

// spreadDocument spreads to all units of a document before or after.
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

	// Set all units from each set unit to the end of its document.
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
