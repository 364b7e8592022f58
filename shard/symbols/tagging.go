package symbols

import (
	"bytes"
	"context"
	"math"
	"slices"
)

// tagging tags documents in one goroutine of a collector. It stores names as offsets in one buffer,
// because allocating a string for each name would take most of the time.
type tagging struct {
	c     *collector
	batch int // bytes of text in a batch
	read  func(doc int, dst []byte) (text []byte, path string, err error)
	kinds []taggedKind // the kinds so far

	// The current batch.
	docs     []int      // numbers of its documents
	texts    []Untagged // by index in docs
	contents []byte     // the contents of texts

	// The current document.
	rows    []taggedRow    // its symbols
	parents []taggedParent // the parents of rows
	bytes   []byte         // the names of rows and the keys of parents
	coded   []byte         // buffer for encodeRows
	extents extentWriter
	lineEnd []uint32 // by line: the offset of its end
}

// taggedRow is a symbol of the document.
type taggedRow struct {
	line, offset uint32
	last, extent uint32 // last line, and bytes from offset to its end; 0 if that is the line of the name, or unknown
	at, end      uint32 // its name is tagging.bytes[at:end]
	hash, name   uint32 // hash and number of its name
	kind         uint32 // index in tagging.kinds; assignNumbers replaces it by the collector's number
	parent       uint32 // index in tagging.parents + 1, 0 if it has none; assignNumbers replaces it by the collector's number + 1
}

// taggedParent is a parent of symbols of the document.
type taggedParent struct {
	at, end     uint32 // its key (appendParentKey) is tagging.bytes[at:end]
	name        uint32 // length of the name, which is the start of the key
	kind        string
	numberPlus1 uint32 // the collector's number + 1; 0 while it has none
}

// taggedKind is a kind of symbols.
type taggedKind struct {
	name        string
	numberPlus1 uint32 // the collector's number + 1; 0 while it has none
}

// tagBatch tags the next batch of documents. It returns false if no more are left.
func (w *tagging) tagBatch(ctx context.Context) (more bool, err error) {
	w.docs, w.texts, w.contents = w.docs[:0], w.texts[:0], w.contents[:0]
	for more = true; more && len(w.contents) < w.batch; {
		var doc int
		if doc, more = w.c.takeDocument(ctx); !more {
			break
		}

		if err := w.readDocument(doc); err != nil {
			return false, err
		}
	}

	w.clearRows()
	return more, w.c.tag(ctx, w.texts, w.addDefinition, w.finishText)
}

// readDocument reads the text of a document and adds it to the batch. It counts the attempt to tag it
// in c.tries. It skips a document without a text.
func (w *tagging) readDocument(doc int) error {
	key, ok := w.c.texts.Key(doc)
	if !ok {
		return nil
	}
	from := len(w.contents)
	contents, path, err := w.read(doc, w.contents)
	if err != nil {
		return err
	}

	// If read has moved the contents to a larger slice, earlier texts still refer to the old slice.
	w.contents = contents
	w.docs = append(w.docs, doc)
	w.texts = append(w.texts, Untagged{path, key.Language, contents[from:len(contents):len(contents)], int(w.c.tries[doc])})
	w.c.tries[doc] = min(w.c.tries[doc], math.MaxUint8-1) + 1
	return nil
}

// clearRows drops the symbols of the current document.
func (w *tagging) clearRows() { w.rows, w.parents, w.bytes = w.rows[:0], w.parents[:0], w.bytes[:0] }

// finishText ends text i: it stores the symbols that addDefinition has collected. If err is not nil
// it drops them, so that the symbols of the text stay unknown.
func (w *tagging) finishText(i int, err error) {
	if err == nil {
		w.locateNames(w.texts[i])
		if w.assignNumbers() {
			doc := w.docs[i]
			w.c.docs[doc], w.c.extents[doc] = w.encodeRows()
		}
	}
	w.clearRows()
}

// addDefinition adds a definition that the tagger reports for the current document.
func (w *tagging) addDefinition(d Definition) {
	// A page has one name per line, and sort keys end in zeros: a name must have neither.
	if len(d.Name) == 0 || len(d.Name) > MaxName || bytes.IndexByte(d.Name, '\n') >= 0 || bytes.IndexByte(d.Name, 0) >= 0 {
		return
	}

	row := taggedRow{line: d.Line, last: d.End, kind: w.kindIndex(d.Kind), at: uint32(len(w.bytes))}
	w.bytes = append(w.bytes, d.Name...)
	row.end = uint32(len(w.bytes))

	if len(d.ParentName) > 0 && len(d.ParentName) <= MaxName {
		row.parent = w.parentIndex(d.ParentName, d.ParentKind)
	}
	w.rows = append(w.rows, row)
}

// kindIndex returns the index of a kind in w.kinds, and adds it if it is new.
func (w *tagging) kindIndex(kind string) uint32 {
	if len(kind) > maxKind { // no kind of ctags is so long
		kind = ""
	}

	for i := range w.kinds {
		if w.kinds[i].name == kind {
			return uint32(i)
		}
	}

	w.kinds = append(w.kinds, taggedKind{name: kind})
	return uint32(len(w.kinds) - 1)
}

// parentIndex returns the index of a parent in w.parents, plus 1. It adds the parent unless that of
// the symbol before is the same, which is the most frequent case.
func (w *tagging) parentIndex(name []byte, kind string) uint32 {
	if len(kind) > maxKind {
		kind = ""
	}

	// w.parents may have one parent several times: parentNumberLocked gives all of them one number.
	if n := len(w.parents); n > 0 {
		if p := w.parents[n-1]; p.kind == kind && bytes.Equal(w.bytes[p.at:p.at+p.name], name) {
			return uint32(n)
		}
	}

	p := taggedParent{at: uint32(len(w.bytes)), name: uint32(len(name)), kind: kind}
	w.bytes = appendParentKey(w.bytes, name, kind)
	p.end = uint32(len(w.bytes))
	w.parents = append(w.parents, p)
	return uint32(len(w.parents))
}

func (w *tagging) name(r *taggedRow) []byte { return w.bytes[r.at:r.end] }

// assignNumbers replaces the names, kinds and parents of the rows by the collector's numbers. It
// returns false if an interner has no room for more.
func (w *tagging) assignNumbers() bool {
	c := w.c

	for i := range w.rows {
		w.rows[i].hash = c.names.hash(w.name(&w.rows[i]))
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range w.rows {
		r, ok := &w.rows[i], true
		if r.name, ok = c.names.intern(w.name(r), r.hash); !ok {
			return false
		}

		if r.parent > 0 {
			number, ok := w.parentNumberLocked(&w.parents[r.parent-1])
			if !ok {
				return false
			}
			r.parent = number + 1
		}

		r.kind = w.kindNumberLocked(r.kind)
	}
	return true
}

// parentNumberLocked returns the collector's number of a parent. It returns false if the interner
// has no room for more. The caller holds w.c.mu.
func (w *tagging) parentNumberLocked(p *taggedParent) (uint32, bool) {
	if p.numberPlus1 == 0 {
		key := w.bytes[p.at:p.end]
		n, ok := w.c.parents.intern(key, w.c.parents.hash(key))
		if !ok {
			return 0, false
		}
		p.numberPlus1 = n + 1
	}
	return p.numberPlus1 - 1, true
}

// kindNumberLocked returns the collector's number of w.kinds[i]. The caller holds w.c.mu.
func (w *tagging) kindNumberLocked(i uint32) uint32 {
	k := &w.kinds[i]
	if k.numberPlus1 == 0 {
		k.numberPlus1 = w.c.kindNumberLocked(k.name) + 1
	}
	return k.numberPlus1 - 1
}

// encodeRows returns the rows and their extents as the collector stores them, without duplicates.
func (w *tagging) encodeRows() (rows, extents []byte) {
	w.coded = w.coded[:0]
	w.extents.reset()
	before := Row{}

	// The rows are sorted by offset and name, so a symbol that was reported twice is next to
	// itself.
	for i, r := range w.rows {
		row := Row{int(r.offset), int(r.name), int(r.kind), int(r.parent)}
		if i > 0 && row == before {
			continue
		}

		w.coded = appendRow(w.coded, before, row)
		w.extents.add(int(r.extent))
		before = row
	}

	// The next document reuses the buffers. The results are exactly as large as needed.
	return append(make([]byte, 0, len(w.coded)), w.coded...), slices.Clone(w.extents.coded)
}
