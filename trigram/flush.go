package trigram

import (
	"math/bits"
	"slices"
)

// flush ends the segment, the last one of the index where last is set: it sorts the log,
// encodes every list and emits. The rows
// are encoded beside the sorting, since whoever adds documents waits for it.
func (w *Writer) flush(last bool) error {
	if w.units%64 != 0 {
		w.saveWord()
	}

	// Rows in one goroutine, the log in this one; they touch nothing in common.
	encoded := make(chan struct{})
	go func() {
		defer close(encoded)
		w.encodeRows()
	}()

	used := w.countLog()
	w.scatter(used)

	// Both are needed for the lists.
	<-encoded
	w.encode(used)

	// Rows stay chosen for the next segment. Behind the last one the counts are only cleared.
	if last {
		for _, id := range used {
			w.counts[id] = 0
		}
	} else {
		w.chooseNext(used)
	}

	// The head, then the columns of runs, a byte a unit.
	h := head{units: uint32(w.units), keys: w.enc.keys, entriesBytes: uint32(len(w.enc.entries)), listsBytes: uint32(w.enc.total)}
	h.layout()
	w.front = h.append(w.front[:0])
	for c := range runClasses {
		for u := range w.units {
			w.front = append(w.front, w.runs[u*runClasses+c])
		}
	}

	// The next segment begins empty, but for the choice of hot trigrams.
	w.segment++
	w.units, w.logged = 0, 0
	w.logEnds = w.logEnds[:1]
	w.runs = w.runs[:0]
	w.first.Clear()
	w.noLine.Clear()
	w.t.forget()

	return w.opt.Emit(append([][]byte{w.front, w.enc.blocks, w.enc.entries}, w.enc.parts...)...)
}

// scatter sorts the log by trigram into sorted, by counting. Afterwards counts[id]
// is where the units of id end; they begin where those of the used number before end.
//
//	counts {a: 2, b: 1}   ->  a begins at 0, b at 2   ->  after the log {a: 2, b: 3}
func (w *Writer) scatter(used []uint32) {
	at := uint32(0)
	// The counts become places: where the first unit of each goes.
	for _, id := range used {
		at, w.counts[id] = at+w.counts[id], at
	}

	// Units come in order, so the list of each trigram ascends.
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

// encode merges the rows and the sorted log in the order of their keys, then the
// lists of trigrams with an escape, whose keys lie in between.
func (w *Writer) encode(used []uint32) {
	w.enc.reset(w.units)
	direct, _ := slices.BinarySearch(used, directIDs)
	extras := w.extraOrder(used, direct)

	// Both are sorted by number, and numbers are in the order of keys.
	hot, cold, from := w.hotIDs[1:], used[:direct], uint32(0)
	for row := 1; len(hot) > 0 || len(cold) > 0; {
		isHot := len(hot) > 0 && (len(cold) == 0 || hot[0] < cold[0])
		var id uint32
		if isHot {
			id, hot = hot[0], hot[1:]
		} else {
			id, cold = cold[0], cold[1:]
		}

		// Trigrams with an escape, up to this key.
		key := keyOfID(id)
		for len(extras) > 0 && extras[0].key < key {
			w.enc.add(extras[0].key, extras[0].ids)
			extras = extras[1:]
		}

		if isHot {
			w.enc.addRow(key, &w.rows[row], w.rowLists)
			row++
			continue
		}
		w.enc.add(key, w.sorted[from:w.counts[id]])
		from = w.counts[id]
	}

	for _, e := range extras {
		w.enc.add(e.key, e.ids)
	}

	// Two lists that are no trigrams: units that begin a document, and units without a newline.
	w.enc.addBitmap(keyFirst, &w.first)
	w.enc.addBitmap(keyNoNewline, &w.noLine)
	w.enc.endPart()
}

// rowList is the list of a row: its kind, its number of units, and where it is.
type rowList struct {
	kind    int
	units   int
	at, end int // in Writer.rowLists
}

// rowGroup is how many rows are gathered from the blocks at once. In a block they lie
// together.
const rowGroup = 16

// encodeRows encodes the lists of all rows.
func (w *Writer) encodeRows() {
	words := (w.units + 63) / 64
	lists := w.rowLists[:0]
	for first := 0; first < len(w.hotIDs); first += rowGroup {
		n := min(rowGroup, len(w.hotIDs)-first)

		// The words of a row, scattered over the blocks, into one bitmap a row.
		for k := 0; k < words; k += blockWords {
			block := w.blocks[(k/blockWords*hotRows+first)*blockWords:]
			for r := range n {
				*(*[blockWords]uint64)(w.gathered[r][k:]) = *(*[blockWords]uint64)(block[r*blockWords:])
			}
		}

		for r := range n {
			if first+r == 0 {
				continue // nobody's row
			}

			b, row := &w.gathered[r], &w.rows[first+r]
			clear(b[words:min(len(b), words+blockWords)]) // of the segment before

			row.at, row.units = len(lists), countBits(b[:words])
			row.kind, lists = appendBitmapList(lists, b, row.units, words)
			row.end = len(lists)
		}
	}
}

func countBits(words []uint64) (n int) {
	for _, w := range words {
		n += bits.OnesCount64(w)
	}
	return n
}

// extraList is the list of a trigram with an escape.
type extraList struct {
	key uint32
	ids []uint16
}

// extraOrder returns the lists of the numbers in used[direct:], sorted by key.
func (w *Writer) extraOrder(used []uint32, direct int) []extraList {
	from := uint32(0)

	// The lists stand in sorted one after the other: the first of these where the last direct one ends.
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

// chooseNext chooses the hot trigrams of the next segment by the counts of this one.
func (w *Writer) chooseNext(used []uint32) {
	from := uint32(0)

	// From ends back to counts; of the rows, their numbers of units.
	for _, id := range used {
		end := w.counts[id]
		w.counts[id], from = end-from, end
	}

	for r, id := range w.hotIDs {
		if r > 0 {
			w.counts[id] = uint32(w.rows[r].units)
			used = append(used, id)
		}
	}
	w.chooseHot(used)
}
