package symbols

import (
	"encoding/binary"
	"sort"

	"github.com/shoalsearch/shoal/shard/file"
)

// extentWriter writes the extents of the rows of a document. The extent of a definition that spans
// several lines is the number of bytes from its name to the end of its last line; others have none.
// For each row with an extent it writes how many rows without one come before it, and then the
// extent. If the functions of a file have extents of 300, none and 90 bytes, that is
//
//	00 ac 02   no row before, 300 bytes
//	01 5a      one row before, 90 bytes
type extentWriter struct {
	coded  []byte
	passed uint64 // number of rows without an extent since the last row with one
}

func (w *extentWriter) reset() { w.coded, w.passed = w.coded[:0], 0 }

// add writes the extent of the next row, 0 for none.
func (w *extentWriter) add(extent int) {
	if extent == 0 {
		w.passed++
		return
	}
	w.coded = binary.AppendUvarint(w.coded, w.passed)
	w.coded = binary.AppendUvarint(w.coded, uint64(extent))
	w.passed = 0
}

// extentReader reads what extentWriter writes.
type extentReader struct {
	b         []byte
	passed    uint64 // rows without an extent before the next one with an extent
	hasPassed bool   // passed has been read
	malformed bool   // the bytes are damaged: reading stopped
}

// next returns the extent of the next row, 0 for none.
func (r *extentReader) next() int {
	if !r.hasPassed {
		if len(r.b) == 0 {
			return 0
		}
		r.passed, r.hasPassed = r.readUint(), true
	}

	if r.passed > 0 {
		r.passed--
		return 0
	}

	r.hasPassed = false
	return int(r.readUint() & (1<<40 - 1))
}

// readUint reads a number. It returns 0 and sets malformed if there is none.
func (r *extentReader) readUint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.b, r.malformed = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// extentColumn returns the extents of all documents, and where the extents of each document end.
func (c *collector) extentColumn() (extents, ends []byte) {
	for _, coded := range c.extents {
		extents = append(extents, coded...)
		ends = binary.LittleEndian.AppendUint32(ends, uint32(len(extents)))
	}
	return extents, ends
}

// Line is where a line of a document begins, and where it ends without its newline.
type Line struct{ Start, End int }

// Around finds the innermost definition around each of some ascending lines: of the definitions
// that span several lines and include the line, the one that begins last. For each line with such a
// definition it calls use with the index of the line.
func (y *File) Around(doc int, lines []Line, recent *Recent, use func(line int, s Symbol)) error {
	open, err := y.openRows(doc, recent)
	if err != nil {
		return err
	}

	for i, line := range lines {
		// Begin with the last row that begins before the end of the line. Go outward to the first
		// row around it that ends after the start of the line.
		at := sort.Search(len(open), func(k int) bool { return open[k].Offset >= line.End }) - 1
		for at >= 0 && open[at].end <= line.Start {
			at = open[at].longer
		}
		if at < 0 {
			continue
		}

		s, err := y.Symbol(open[at].Row, recent)
		if err != nil {
			return err
		}
		use(i, s)
	}
	return nil
}

// openRow is a row that spans several lines. longer is the index of the last earlier row that ends
// after it; -1 if there is none. A line after the end of a row cannot be in any row between the row
// and the longer one.
//
//	func f() {        0: ends at 9, longer -1
//	  for ... {       1: ends at 4, longer 0
//	  }
//	  switch ... {    2: ends at 8, longer 0
type openRow struct {
	Row
	end    int
	longer int
}

// openRows returns the rows of a document that span several lines. They are valid until the next
// call.
func (y *File) openRows(doc int, recent *Recent) ([]openRow, error) {
	if recent.switchTo(y); recent.openDocPlus1 == doc+1 {
		return recent.open, nil
	}

	recent.openDocPlus1 = 0
	extents, err := y.decodeExtents(doc, recent.extents)
	if len(extents) == 0 || err != nil {
		return nil, err
	}
	recent.extents = extents
	rows, err := y.decodeRows(doc, recent)
	if err != nil {
		return nil, err
	}

	recent.open = recent.open[:0]
	if !recent.setOpen(rows, &extentReader{b: extents}) {
		return nil, y.f.Damaged("extents of document %d", doc)
	}
	recent.openDocPlus1 = doc + 1
	return recent.open, nil
}

// decodeExtents decodes the extents of a document's symbols into buf. extentWriter describes the
// format.
func (y *File) decodeExtents(doc int, buf []byte) ([]byte, error) {
	coded := file.Entry(y.extents, y.extentEnd, doc)
	if len(coded) == 0 {
		return nil, nil
	}
	extents, ok := y.code.extents.decodeCoded(buf, coded)
	if !ok {
		return nil, y.f.Damaged("extents of document %d", doc)
	}
	return extents, nil
}

// setOpen sets h.open to the rows that have an extent, with their links to longer rows. It returns
// false if the extents are damaged.
func (h *Recent) setOpen(rows []Row, extents *extentReader) bool {
	stack, dst := h.nested[:0], h.open
	for _, row := range rows {
		extent := extents.next()
		if extents.malformed {
			return false
		}
		if extent == 0 {
			continue
		}

		// stack has the rows of dst to which a later row may link. Each ends before the row below it
		// in the stack. Remove the rows that end no later than this row.
		end := row.Offset + extent
		for len(stack) > 0 && dst[stack[len(stack)-1]].end <= end {
			stack = stack[:len(stack)-1]
		}
		longer := -1
		if len(stack) > 0 {
			longer = stack[len(stack)-1]
		}

		stack = append(stack, len(dst))
		dst = append(dst, openRow{row, end, longer})
	}

	h.nested, h.open = stack, dst
	return true
}
