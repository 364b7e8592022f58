package trigram

// requireInReach removes from set the units from which the condition n is not in reach ([reach]).
// ahead says that n comes after the condition that holds in set, so that n must hold in the same
// unit or a later one; otherwise in the same unit or an earlier one.
func (e *evaluation) requireInReach(set *Bitmap, n *node, ahead bool) error {
	// Evaluate n only in units that are in reach of the set: near. Then keep those units of the set
	// that are in reach of the result.
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

// spread adds to a set all units that have a unit of the set in reach. With ahead it adds units
// before those of the set, from which the set is ahead; otherwise units after them.
func (e *evaluation) spread(b *Bitmap, ahead bool) error {
	// A match lies in one document. Read where documents start, once for all conditions.
	if e.docStarts == nil {
		e.docStarts = new(Bitmap)
		if err := e.addKey(keyDocStart, e.docStarts); err != nil {
			return err
		}
	}

	if e.reach == reachDocument {
		e.spreadDocument(b, ahead)
		return nil
	}

	if e.reach == reachLine && e.noNewline == nil {
		e.noNewline = new(Bitmap)
		if err := e.addKey(keyNoNewline, e.noNewline); err != nil {
			return err
		}
	}

	if e.reach == reachLine {
		e.spreadLine(b, ahead)
	}

	// A match may go on in the next unit.
	if ahead {
		b.addPredecessors(e.docStarts)
	} else {
		b.addSuccessors(e.docStarts)
	}
	return nil
}

// spreadLine adds the units without a newline through which the line of a unit of the set goes on:
// with ahead the units before it, otherwise those after it.
func (e *evaluation) spreadLine(b *Bitmap, ahead bool) {
	if ahead {
		// Go backward: a unit must be set before the unit before it is checked.
		for u := SegmentUnits - 2; u >= 0; u-- {
			if w := e.noNewline[u>>6]; w == 0 {
				u &^= 63
				continue
			}
			v := uint16(u)
			if e.noNewline.Has(v) && b.Has(v+1) && !e.docStarts.Has(v+1) {
				b.Set(v)
			}
		}
		return
	}

	// Go forward: a unit must be set before the unit after it is checked.
	for u := e.noNewline.Next(1); u >= 0; u = e.noNewline.Next(u + 1) {
		v := uint16(u)
		if b.Has(v-1) && !e.docStarts.Has(v) {
			b.Set(v)
		}
	}
}

// spreadDocument adds all units of a document that are before a unit of the set, with ahead, or
// after it.
func (e *evaluation) spreadDocument(b *Bitmap, ahead bool) {
	if ahead {
		for u := e.seg.units - 2; u >= 0; u-- {
			v := uint16(u)
			if b.Has(v+1) && !e.docStarts.Has(v+1) {
				b.Set(v)
			}
		}
		return
	}

	// Set all units from each set unit to the end of its document.
	for u := b.Next(0); u >= 0; u = b.Next(u) {
		for u++; u < e.seg.units && !e.docStarts.Has(uint16(u)); u++ {
			b.Set(uint16(u))
		}
	}
}

// addPredecessors adds to the set the unit before each of its units, if it is in the same document.
// docStarts has the first unit of each document.
func (b *Bitmap) addPredecessors(docStarts *Bitmap) {
	for i := range b {
		carry := uint64(0) // from the next word
		if i+1 < len(b) {
			carry = (b[i+1] &^ docStarts[i+1]) << 63
		}
		b[i] |= (b[i]&^docStarts[i])>>1 | carry
	}
}

// addSuccessors adds to the set the unit after each of its units, if it is in the same document. It
// begins at the last word, because each word needs the unchanged bits of the word before it.
func (b *Bitmap) addSuccessors(docStarts *Bitmap) {
	for i := len(b) - 1; i >= 0; i-- {
		next := b[i] << 1
		if i > 0 {
			next |= b[i-1] >> 63
		}
		b[i] |= next &^ docStarts[i]
	}
}
