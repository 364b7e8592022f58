package trigram

import (
	"bytes"
	"errors"
	"slices"
	"unsafe"
)

// ErrTrigrams is the error for a document with more distinct trigrams than allowed.
var ErrTrigrams = errors.New("trigram: document has too many different trigrams")

// Options of a [Writer].
type Options struct {
	// Emit receives each finished segment, in order, as parts to be stored one after the other. The
	// writer reuses the bytes after Emit returns. An error stops the writer.
	Emit func(segment ...[]byte) error
}

const (
	// hotRows is the number of rows in the bit matrix. Row 0 belongs to no trigram: all trigrams
	// without a row write to it.
	hotRows = 8192
	// hotShare decides which trigrams get a row: those in more than 1/hotShare of the units.
	hotShare = 64
	// hotAfter is how many units of the first segment are read before its rows are chosen.
	hotAfter = 2048
	// blockUnits is the number of units in a block of the bit matrix. In a block each row has one
	// cache line, and a block stays in the second-level cache while it is filled. Units set their
	// bits in an even smaller matrix with one word a row, which is copied to the block after 64
	// units.
	blockUnits = 512
	blockWords = blockUnits / 64
	// logPairs is how many pairs of a trigram and a unit a segment may log before it ends early. A
	// single document may need more.
	logPairs = 24 << 20
)

// listBytes is the memory for the lists of a segment. Most segments need less.
const listBytes = 96 << 20

// maxEscapes is how many trigrams with an escape a segment may number before it ends early.
const maxEscapes = 1 << 20

// Writer turns documents into segments. Equal documents in equal order give equal bytes. Until
// Close it reserves up to 250 MB outside of the heap. It touches them as documents come, so a
// writer with few documents takes little memory. It is not safe for concurrent use.
//
// It works in two steps. First it finds the distinct trigrams of each unit ([tables]). Then it
// distributes them. Trigrams in many units are hot: each has a row of bits, one bit a unit. All
// others go to a log of pairs, which is sorted by counting when the segment ends.
//
//	trigrams of unit 70     " th" "the" "zqx"
//	hot                     " th" is row 17, "the" row 18, "zqx" row 0: it is cold
//	word[17], word[18]      bit 70-64 = 6 is set; after unit 127 they go to the block
//	log                     ... "zqx"        logEnds[71] is after it
type Writer struct {
	opt Options
	err error // the first error; it ends the writer

	t      tables
	window []byte   // window of a unit that needs virtual newlines
	ids    []uint32 // distinct trigrams of the document being added, unit by unit
	ends   []uint32 // by unit of the document: where its trigrams end in ids

	segment   uint32 // number of the present segment
	units     int    // units in the present segment
	docStarts Bitmap // units that begin a document
	noNewline Bitmap // units that own no newline
	runs      []byte // longest runs, runClasses bytes a unit
	masks     runMasks

	log     []uint32 // trigram numbers, off-heap
	logged  int
	logEnds []uint32 // by unit: where its trigrams begin in log; the unit before ends there

	hot    []uint16 // row by trigram number; off-heap
	hotIDs []uint32 // trigram number by row; hotIDs[0] is unused
	word   []uint64 // by row: bits of the last units, up to 64; off-heap
	blocks []uint64 // bits by block of the segment, row and word; off-heap

	rows     []rowList // by row, while a segment is encoded; off-heap
	rowLists []byte    // lists of all rows; off-heap
	gathered []Bitmap  // rowGroup rows while they are encoded; off-heap

	counts []uint32 // by trigram number; zero between segments; off-heap
	sorted []uint16 // units of the logged trigrams, sorted by trigram; off-heap
	enc    encoder
	lists  []byte // memory in which enc.lists begins; it grows into the heap; off-heap
	front  []byte // head and columns
}

// New returns a writer.
func New(opt Options) *Writer { return &Writer{opt: opt} }

// Add indexes a document. It returns the number of its first unit (segment<<16 | position; the
// others follow) and how many units it has. A document that does not fit into the current segment
// starts the next one. If limit is above 0, a document with more distinct trigrams gives
// [ErrTrigrams]. A document that is too large gives [ErrTooLarge]. Both leave the writer unchanged.
func (w *Writer) Add(content []byte, limit int) (first, n uint32, err error) {
	if w.err != nil {
		return 0, 0, w.err
	}
	if len(content) > MaxDocument {
		return 0, 0, ErrTooLarge
	}

	if w.hot == nil {
		if w.err = w.allocate(); w.err != nil {
			return 0, 0, w.err
		}
	}

	if w.err = w.extractTrigrams(content); w.err != nil {
		return 0, 0, w.err
	}
	if limit > 0 && len(w.ids) > limit && w.countDistinct() > limit {
		return 0, 0, ErrTrigrams
	}

	// A document must lie in one segment: end the present one if it lacks room.
	n = Units(len(content))
	if w.units+int(n) > SegmentUnits || w.logged+len(w.ids) > logPairs || len(w.t.keys) > maxEscapes {
		if w.units > 0 {
			// Numbers of trigrams with an escape end with the segment, so extract the document
			// again.
			if w.err = w.flush(moreSegments); w.err != nil {
				return 0, 0, w.err
			}
			if w.err = w.extractTrigrams(content); w.err != nil {
				return 0, 0, w.err
			}
		}
		if w.err = w.reserveLog(len(w.ids)); w.err != nil {
			return 0, 0, w.err
		}
	}

	first = w.segment<<16 | uint32(w.units)
	w.docStarts.Set(uint16(w.units))
	w.recordNewlinesAndRuns(content, int(n))
	w.addUnits()
	return first, n, nil
}

// allocate allocates the off-heap memory of the writer and sets row 0 and the start of the log.
func (w *Writer) allocate() (err error) {
	if err = w.t.allocateEpochs(); err != nil {
		return err
	}

	// Memory outside of the heap costs the garbage collector nothing.
	if w.hot, err = allocOffHeap[uint16](maxIDs); err != nil {
		return err
	}
	if w.word, err = allocOffHeap[uint64](hotRows); err != nil {
		return err
	}
	if w.blocks, err = allocOffHeap[uint64](SegmentUnits / blockUnits * hotRows * blockWords); err != nil {
		return err
	}

	// Encoding the rows at the end of a segment needs three more.
	if w.rows, err = allocOffHeap[rowList](hotRows); err != nil {
		return err
	}
	if w.gathered, err = allocOffHeap[Bitmap](rowGroup); err != nil {
		return err
	}
	if w.rowLists, err = allocOffHeap[byte](hotRows * SegmentUnits / 8); err != nil {
		return err
	}

	if w.counts, err = allocOffHeap[uint32](maxIDs + 1); err != nil {
		return err
	}
	if w.lists, err = allocOffHeap[byte](listBytes); err != nil {
		return err
	}

	// Row 0 means no row, so rows count from 1.
	w.enc.lists = w.lists[:0]
	w.hotIDs = append(w.hotIDs[:0], 0)
	w.logEnds = append(w.logEnds[:0], 0)
	return w.reserveLog(logPairs)
}

// reserveLog makes room in the log for that many pairs, at least logPairs. The log must be empty.
func (w *Writer) reserveLog(pairs int) (err error) {
	pairs = max(pairs, logPairs)
	if len(w.log) >= pairs {
		return nil
	}

	// Release the old log first: both together would take hundreds of megabytes.
	freeOffHeap(w.log)
	freeOffHeap(w.sorted)
	w.log, w.sorted = nil, nil

	// One more, because addToRowsOrLog writes each number before it decides whether to keep it.
	if w.log, err = allocOffHeap[uint32](pairs + 1); err != nil {
		return err
	}
	w.sorted, err = allocOffHeap[uint16](pairs)
	return err
}

// Close frees the memory.
func (w *Writer) Close() {
	w.t.close()
	freeOffHeap(w.log)
	freeOffHeap(w.hot)
	freeOffHeap(w.word)
	freeOffHeap(w.blocks)
	freeOffHeap(w.rows)
	freeOffHeap(w.gathered)
	freeOffHeap(w.rowLists)
	freeOffHeap(w.counts)
	freeOffHeap(w.sorted)
	freeOffHeap(w.lists)

	// A later Add gets an error, and does not write into released memory.
	*w = Writer{err: errors.New("trigram: writer is closed")}
}

// extractTrigrams finds the distinct trigrams of each unit of a document, and stores them in w.ids
// and w.ends.
func (w *Writer) extractTrigrams(content []byte) error {
	n := int(Units(len(content)))
	w.ids, w.ends = w.ids[:0], w.ends[:0]
	for u := range n {
		win := w.cutWindow(content, u, n)

		// At most one trigram begins at each byte of the window.
		w.ids = slices.Grow(w.ids, len(win)+1)
		at := len(w.ids)

		k, err := w.t.extractUnit(w.ids[at:at+len(win)+1], win)
		if err != nil {
			return err
		}

		w.ids = w.ids[:at+k]
		w.ends = append(w.ends, uint32(at+k))
	}
	return nil
}

// cutWindow returns the window of unit u of n: the byte before the unit, the unit, and the overlap.
// A virtual newline stands before the document and two after it.
func (w *Writer) cutWindow(content []byte, u, n int) []byte {
	from, to := u*UnitSize, min((u+1)*UnitSize+Overlap, len(content))
	if u > 0 && u < n-1 {
		return content[from-1 : to]
	}

	// A window at an end of the document needs a copy with virtual newlines.
	w.window = w.window[:0]
	if u == 0 {
		w.window = append(w.window, '\n')
	} else {
		from--
	}
	w.window = append(w.window, content[from:to]...)
	if u == n-1 {
		w.window = append(w.window, "\n\n"...)
	}
	return w.window
}

// countDistinct returns the number of distinct trigrams of the document in w.ids.
func (w *Writer) countDistinct() int {
	w.t.startUnit()
	n := 0
	for _, id := range w.ids {
		if w.t.lastEpoch[id] != w.t.epoch {
			w.t.lastEpoch[id] = w.t.epoch
			n++
		}
	}
	return n
}

// recordNewlinesAndRuns records for each of the n units of a document whether it owns a newline, and
// its longest runs.
func (w *Writer) recordNewlinesAndRuns(content []byte, n int) {
	for u := range n {
		from, to := Span(len(content), uint32(u))
		if bytes.IndexByte(content[from:to], '\n') < 0 {
			w.noNewline.Set(uint16(w.units + u))
		}

		window := content[from:min(to+Overlap, len(content))]
		w.runs = w.masks.longestRuns(w.runs, window)
	}
}

// addUnits adds the units of the document to the segment: it writes their trigrams to rows or the
// log. After hotAfter units of the first segment it chooses the rows.
func (w *Writer) addUnits() {
	at := uint32(0)
	for _, end := range w.ends {
		w.addUnit(w.ids[at:end])
		at = end

		w.units++
		w.logEnds = append(w.logEnds, uint32(w.logged))
		if w.units%64 == 0 {
			w.copyWordsToBlock()
		}

		// In the first segment, choose the rows from the log so far.
		if w.units == hotAfter && w.segment == 0 {
			w.chooseHot(w.countLog())
			w.moveLogToRows()
		}
	}
}

// addUnit writes the trigrams of one unit to rows or the log. The caller must have reserved the log.
func (w *Writer) addUnit(ids []uint32) {
	if len(ids) == 0 || w.logged+len(ids) > len(w.log) {
		return
	}

	// addToRowsOrLog checks no indexes. Rows are below hotRows and ids below maxIDs, because only
	// chooseHot and the tables make them. The log has room for ids.
	w.logged += addToRowsOrLog(&ids[0], len(ids), &w.hot[0], &w.word[0], 1<<(w.units&63), &w.log[w.logged])
}

// addToRowsOrLog writes the n trigrams of a unit to rows or the log. If a trigram has a row in hot,
// it sets bit, which stands for the unit, in the word of that row. Otherwise it appends the trigram
// to log. It returns how many it appended; log must have room for n.
//
// It has no branch, because none could be predicted. A trigram without a row also sets a bit, in
// row 0, which nobody reads. A trigram with a row is also logged, but the next one overwrites it.
// Before each trigram,
//
//	log[:logged] = the trigrams without a row so far, and logged <= the trigrams so far
func addToRowsOrLog(ids *uint32, n int, hot *uint16, word *uint64, bit uint64, log *uint32) (logged int) {
	for _, id := range unsafe.Slice(ids, n) {
		row := *(*uint16)(unsafe.Add(unsafe.Pointer(hot), uintptr(id)*2))
		*(*uint64)(unsafe.Add(unsafe.Pointer(word), uintptr(row)*8)) |= bit
		*(*uint32)(unsafe.Add(unsafe.Pointer(log), uintptr(logged)*4)) = id
		next := logged + 1
		if row == 0 {
			logged = next
		}
	}
	return logged
}

// copyWordsToBlock copies the bits of the last 64 units to their block.
func (w *Writer) copyWordsToBlock() {
	at := (w.units - 1) / blockUnits * hotRows * blockWords
	block, k := w.blocks[at:at+hotRows*blockWords], (w.units-1)>>6&(blockWords-1)
	for r := range w.hotIDs {
		block[r*blockWords+k] = w.word[r]
	}
	clear(w.word[:len(w.hotIDs)])
}

// moveLogToRows moves the trigrams for which chooseHot chose a row from the log to the rows.
func (w *Writer) moveLogToRows() {
	clear(w.blocks[:hotAfter/blockUnits*hotRows*blockWords])

	// log[:n] are the trigrams without a row so far. n never passes the position that is read.
	n, from := 0, w.logEnds[0]
	for u, end := range w.logEnds[1:] {
		for _, id := range w.log[from:end] {
			if r := int(w.hot[id]); r != 0 {
				w.blocks[(u/blockUnits*hotRows+r)*blockWords+u>>6&(blockWords-1)] |= 1 << (u & 63)
				continue
			}
			w.log[n] = id
			n++
		}

		from, w.logEnds[u+1] = end, uint32(n)
	}
	w.logged = n
}

// fewLogged is the length of a log up to which sorting its trigrams is faster than reading all
// counts.
const fewLogged = 4096

// countLog counts into w.counts how many units have each logged trigram. It returns the numbers of
// these trigrams, ascending.
func (w *Writer) countLog() []uint32 {
	var ids []uint32
	if w.logged <= fewLogged {
		for _, id := range w.log[:w.logged] {
			if w.counts[id]++; w.counts[id] == 1 {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		return ids
	}

	for _, id := range w.log[:w.logged] {
		w.counts[id]++
	}
	for id := range uint32(directIDs + len(w.t.keys)) {
		if w.counts[id] != 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// chooseHot gives a row to each trigram of ids that is in more than 1/hotShare of the units by
// w.counts. If there are more than hotRows-1, it chooses the most frequent. It clears the counts of
// ids. Trigrams with an escape get no row, because their numbers change with the segment.
func (w *Writer) chooseHot(ids []uint32) {
	type candidate struct{ count, id uint32 }
	var list []candidate
	for _, id := range ids {
		if c := w.counts[id]; id < directIDs && c > uint32(w.units/hotShare) {
			list = append(list, candidate{c, id})
		}
		w.counts[id] = 0
	}

	if len(list) > hotRows-1 {
		slices.SortFunc(list, func(a, b candidate) int {
			if a.count != b.count {
				return int(b.count) - int(a.count)
			}
			return int(a.id) - int(b.id)
		})
		list = list[:hotRows-1]
	}

	slices.SortFunc(list, func(a, b candidate) int { return int(a.id) - int(b.id) })
	for _, id := range w.hotIDs[1:] {
		w.hot[id] = 0
	}

	// encodeLists needs the rows in the order of their trigrams.
	w.hotIDs = w.hotIDs[:1]
	for _, d := range list {
		w.hot[d.id] = uint16(len(w.hotIDs))
		w.hotIDs = append(w.hotIDs, d.id)
	}
}

// Finish emits the last segment. Then the writer is empty and can make another index, starting at
// unit 0.
func (w *Writer) Finish() error {
	if w.err == nil && w.units > 0 {
		w.err = w.flush(lastSegment)
	}
	if w.err != nil {
		return w.err
	}

	// Forget the rows: equal documents must give equal bytes, whatever the index before had.
	w.segment = 0
	for _, id := range w.hotIDs[min(1, len(w.hotIDs)):] {
		w.hot[id] = 0
	}
	w.hotIDs = w.hotIDs[:min(1, len(w.hotIDs))]
	return nil
}
