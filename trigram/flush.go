package trigram

import "slices"

// flush ends the segment: sorts the log, encodes every list, emits.
func (w *Writer) flush() error {
	if w.units%64 != 0 {
		w.saveWord()
	}
	if w.units%blockUnits != 0 {
		w.saveBlock()
	}
	used := w.countLog()
	w.scatter(used)
	w.encode(used)
	w.chooseNext(used)

	h := head{units: uint32(w.units), keys: w.enc.keys, entriesBytes: uint32(len(w.enc.entries)), listsBytes: uint32(len(w.enc.lists))}
	h.layout()
	w.front = h.append(w.front[:0])
	for c := range runClasses {
		for u := range w.units {
			w.front = append(w.front, w.runs[u*runClasses+c])
		}
	}

	w.segment++
	w.units, w.logged = 0, 0
	w.logEnds = w.logEnds[:1]
	w.runs = w.runs[:0]
	w.first.Clear()
	w.noLine.Clear()
	w.t.forget()
	return w.opt.Emit(w.front, w.enc.blocks, w.enc.entries, w.enc.lists)
}

// scatter sorts the log by trigram into sorted. Afterwards counts[id] is the
// end of the units of id, and the beginning is the end of the used one before.
func (w *Writer) scatter(used []uint32) {
	at := uint32(0)
	for _, id := range used {
		at, w.counts[id] = at+w.counts[id], at
	}
	from := w.logEnds[0]
	for u, end := range w.logEnds[1:] {
		for _, id := range w.log[from:end] {
			p := w.counts[id]
			w.sorted[p] = uint16(u)
			w.counts[id] = p + 1
		}
		from = end
	}
}

// encode walks the hot rows and the cold lists in the order of their keys,
// then the lists of the extra trigrams, whose keys lie between.
func (w *Writer) encode(used []uint32) {
	w.enc.reset(w.units)
	direct, _ := slices.BinarySearch(used, directIDs)
	extras := w.extraOrder(used, direct)
	hot, cold, from := w.hotIDs[1:], used[:direct], uint32(0)
	row := 1
	for len(hot) > 0 || len(cold) > 0 {
		isHot := len(hot) > 0 && (len(cold) == 0 || hot[0] <= cold[0])
		isCold := len(cold) > 0 && (len(hot) == 0 || cold[0] <= hot[0])
		var ids []uint16
		var id uint32
		if isCold {
			id = cold[0]
			ids, from = w.sorted[from:w.counts[id]], w.counts[id]
			cold = cold[1:]
		}
		if isHot {
			id = hot[0]
			hot = hot[1:]
		}
		key := keyOfID(id)
		for len(extras) > 0 && extras[0].key < key {
			w.enc.add(extras[0].key, extras[0].ids)
			extras = extras[1:]
		}
		if isHot {
			w.encodeRow(key, row, ids)
			row++
			continue
		}
		w.enc.add(key, ids)
	}
	for _, e := range extras {
		w.enc.add(e.key, e.ids)
	}
	w.idBuf = w.enc.addBitmap(keyFirst, &w.first, w.first.Count(), w.idBuf)
	w.idBuf = w.enc.addBitmap(keyNoNewline, &w.noLine, w.noLine.Count(), w.idBuf)
}

// encodeRow encodes a hot row, to which ids were logged before it was hot.
func (w *Writer) encodeRow(key uint32, row int, ids []uint16) {
	b := &w.rows[row]
	for _, id := range ids {
		b.Set(id)
	}
	w.rowUnits[row] = uint32(w.rowCount(row))
	w.idBuf = w.enc.addBitmap(key, b, int(w.rowUnits[row]), w.idBuf)
}

// extraList is the list of a trigram that has an escape in it.
type extraList struct {
	key uint32
	ids []uint16
}

// extraOrder lists those of used from position direct on by their keys.
func (w *Writer) extraOrder(used []uint32, direct int) []extraList {
	from := uint32(0)
	if direct > 0 {
		from = w.counts[used[direct-1]]
	}
	var list []extraList
	for _, id := range used[direct:] {
		list = append(list, extraList{w.t.keys[id-directIDs], w.sorted[from:w.counts[id]]})
		from = w.counts[id]
	}
	slices.SortFunc(list, func(a, b extraList) int { return int(a.key) - int(b.key) })
	return list
}

// chooseNext picks the hot trigrams of the next segment by this one's counts.
func (w *Writer) chooseNext(used []uint32) {
	from := uint32(0)
	for _, id := range used {
		end := w.counts[id]
		w.counts[id], from = end-from, end
	}
	for r, id := range w.hotIDs {
		if r > 0 {
			if w.counts[id] == 0 {
				used = append(used, id)
			}
			w.counts[id] = w.rowUnits[r]
			clear(w.rows[r][:(w.units+63)/64])
		}
	}
	w.chooseHot(used)
}
