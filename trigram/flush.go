package trigram

import (
	"math/bits"
	"slices"
)

// Arguments of flush.
const (
	moreSegments = false
	lastSegment  = true
)

// flush ends the segment: it sorts the log, encodes every list, emits the segment and empties the
// writer for the next one. It encodes the rows while it sorts, because the caller of Add waits for
// it.
func (w *Writer) flush(last bool) error {
	if w.units%64 != 0 {
		w.copyWordsToBlock()
	}

	// One goroutine encodes the rows, this one sorts the log. They share no data.
	encoded := make(chan struct{})
	go func() {
		defer close(encoded)
		w.encodeRows()
	}()

	logged := w.countLog()
	w.sortLog(logged)

	// encodeLists needs the encoded rows and the sorted log.
	<-encoded
	w.encodeLists(logged)

	// Choose the rows of the next segment. After the last segment only clear the counts.
	if last {
		for _, id := range logged {
			w.counts[id] = 0
		}
	} else {
		w.chooseNextRows(logged)
	}

	// Write the head, then the columns of runs, with one byte a unit.
	h := head{units: uint32(w.units), keys: w.enc.keys, entriesBytes: uint32(len(w.enc.entries)), listsBytes: uint32(w.enc.total)}
	h.computeOffsets()
	w.front = h.appendTo(w.front[:0])
	for c := range runClasses {
		for u := range w.units {
			w.front = append(w.front, w.runs[u*runClasses+c])
		}
	}

	// The next segment starts empty, except for the choice of hot trigrams.
	w.segment++
	w.units, w.logged = 0, 0
	w.logEnds = w.logEnds[:1]
	w.runs = w.runs[:0]
	w.docStarts.Clear()
	w.noNewline.Clear()
	w.t.forgetEscapes()

	return w.opt.Emit(append([][]byte{w.front, w.enc.blocks, w.enc.entries}, w.enc.parts...)...)
}

// sortLog sorts the units of the log by trigram into w.sorted, with a counting sort. logged has the
// logged trigram numbers, ascending. Afterwards counts[id] is where the units of id end in w.sorted.
// They begin where those of the previous number in logged end.
//
//	counts {a: 2, b: 1}   ->  a begins at 0, b at 2   ->  after the log {a: 2, b: 3}
func (w *Writer) sortLog(logged []uint32) {
	at := uint32(0)
	// Turn each count into the position of the trigram's first unit.
	for _, id := range logged {
		at, w.counts[id] = at+w.counts[id], at
	}

	// Units come in order, so each list ascends.
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

// encodeLists writes all posting lists in the order of their keys: those of the rows, of the sorted
// log, and of trigrams with an escape. Then it writes the two lists that belong to no trigram.
// logged is as in sortLog.
func (w *Writer) encodeLists(logged []uint32) {
	w.enc.reset(w.units)
	direct, _ := slices.BinarySearch(logged, directIDs)
	escapes := w.escapeLists(logged, direct)

	// Rows and log are sorted by number, and numbers below directIDs have the order of their keys.
	hot, cold := w.hotIDs[1:], logged[:direct]
	from := uint32(0) // where the units of cold[0] begin in w.sorted
	for row := 1; len(hot) > 0 || len(cold) > 0; {
		isHot := len(hot) > 0 && (len(cold) == 0 || hot[0] < cold[0])
		var id uint32
		if isHot {
			id, hot = hot[0], hot[1:]
		} else {
			id, cold = cold[0], cold[1:]
		}

		// First write trigrams with an escape up to this key.
		key := keyOfID(id)
		for len(escapes) > 0 && escapes[0].key < key {
			w.enc.addIDs(escapes[0].key, escapes[0].ids)
			escapes = escapes[1:]
		}

		if isHot {
			w.enc.addRow(key, &w.rows[row], w.rowLists)
			row++
			continue
		}
		w.enc.addIDs(key, w.sorted[from:w.counts[id]])
		from = w.counts[id]
	}

	for _, e := range escapes {
		w.enc.addIDs(e.key, e.ids)
	}

	// The last two lists have no trigram: units that begin a document, and units without a newline.
	w.enc.addBitmap(keyDocStart, &w.docStarts)
	w.enc.addBitmap(keyNoNewline, &w.noNewline)
	w.enc.endPart()
}

// rowList describes the encoded list of a row.
type rowList struct {
	kind    int
	units   int
	at, end int // range in Writer.rowLists
}

// rowGroup is how many rows are gathered from the blocks at once. Their words lie together in a
// block.
const rowGroup = 16

// encodeRows encodes the lists of all rows.
func (w *Writer) encodeRows() {
	words := (w.units + 63) / 64
	lists := w.rowLists[:0]
	for first := 0; first < len(w.hotIDs); first += rowGroup {
		n := min(rowGroup, len(w.hotIDs)-first)

		// Gather the words of each row from the blocks into one bitmap.
		for k := 0; k < words; k += blockWords {
			block := w.blocks[(k/blockWords*hotRows+first)*blockWords:]
			for r := range n {
				*(*[blockWords]uint64)(w.gathered[r][k:]) = *(*[blockWords]uint64)(block[r*blockWords:])
			}
		}

		for r := range n {
			if first+r == 0 {
				continue // row 0 belongs to no trigram
			}

			b, row := &w.gathered[r], &w.rows[first+r]
			clear(b[words:min(len(b), words+blockWords)]) // the block may still have words of the segment before

			row.at, row.units = len(lists), countBits(b[:words])
			row.kind, lists = appendBitmapList(lists, b, row.units, words)
			row.end = len(lists)
		}
	}
}

// countBits returns how many bits are set.
func countBits(words []uint64) (n int) {
	for _, w := range words {
		n += bits.OnesCount64(w)
	}
	return n
}

// escapeList is the list of a trigram with an escape.
type escapeList struct {
	key uint32
	ids []uint16
}

// escapeLists returns the lists of the trigrams with an escape, sorted by key. Their numbers are
// logged[direct:].
func (w *Writer) escapeLists(logged []uint32, direct int) []escapeList {
	from := uint32(0)

	// In w.sorted these lists follow those of the trigrams without an escape.
	if direct > 0 {
		from = w.counts[logged[direct-1]]
	}

	var list []escapeList
	for _, id := range logged[direct:] {
		list = append(list, escapeList{w.t.keys[id-directIDs], w.sorted[from:w.counts[id]]})
		from = w.counts[id]
	}
	slices.SortFunc(list, func(a, b escapeList) int { return int(a.key) - int(b.key) })
	return list
}

// chooseNextRows chooses which trigrams have a row in the next segment, by how many units of this
// one have them. logged is as in sortLog.
func (w *Writer) chooseNextRows(logged []uint32) {
	from := uint32(0)

	// Turn the ends of the lists into counts again, and add the counts of the rows.
	for _, id := range logged {
		end := w.counts[id]
		w.counts[id], from = end-from, end
	}

	for r, id := range w.hotIDs {
		if r > 0 {
			w.counts[id] = uint32(w.rows[r].units)
			logged = append(logged, id)
		}
	}
	w.chooseHot(logged)
}
