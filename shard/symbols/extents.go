package symbols

import (
	"encoding/binary"
	"sort"

	"github.com/shoalsearch/shoal/shard/file"
)

// extentWriter writes how far the rows of a document last, for those that last
// longer than their line: the number of rows passed over since the last one that
// does, and the bytes from the name to the end of its last line. Where the
// functions of a file last 300, 0 and 90 bytes that is
//
//	00 ac 02   no row passed over, 300 bytes
//	01 5a      one row passed over, 90 bytes
type extentWriter struct {
	coded  []byte
	passed uint64
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
	passed    uint64 // rows to pass over before the next extent
	begun     bool   // passed is read
	malformed bool   // it ended in bytes that are no extents
}

// next returns the extent of the next row, 0 for none.
func (r *extentReader) next() int {
	// Rows without an extent are counted together: passed of them come first.
	if !r.begun {
		if len(r.b) == 0 {
			return 0
		}
		r.passed, r.begun = r.uint(), true
	}

	if r.passed > 0 {
		r.passed--
		return 0
	}

	r.begun = false
	return int(r.uint() & (1<<40 - 1))
}

func (r *extentReader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.b, r.malformed = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// extentColumn returns the extents of all documents, and where those of each end.
func (c *collector) extentColumn() (extents, ends []byte) {
	for _, coded := range c.extents {
		extents = append(extents, coded...)
		ends = binary.LittleEndian.AppendUint32(ends, uint32(len(extents)))
	}
	return extents, ends
}

// Line is where a line of a document begins, and where it ends without its
// newline.
type Line struct{ Start, End int }

// Around finds for each of some lines of a document, which ascend, what it stands
// in: of the definitions that last longer than their own line and reach the line,
// the one that begins last. It calls use with the index of each line that stands
// in one.
func (y *File) Around(doc int, lines []Line, recent *Recent, use func(line int, s Symbol)) error {
	// Without an extent no row lasts: the rows need not be decoded.
	extents, err := y.extentsOf(doc)
	if len(extents) == 0 || len(lines) == 0 || err != nil {
		return err
	}

	open, at, err := y.openRows(doc, lines, extents, recent)
	if err != nil {
		return err
	}

	for i := range lines {
		if at[i] < 0 {
			continue
		}

		// Only now are names decoded, which costs a page each.
		s, err := y.Symbol(open[at[i]].Row, recent)
		if err != nil {
			return err
		}

		use(i, s)
	}
	return nil
}

// extentsOf returns what extentWriter has written of a document.
func (y *File) extentsOf(doc int) ([]byte, error) {
	coded := file.Entry(y.extents, y.extentEnd, doc)
	if len(coded) == 0 {
		return nil, nil
	}
	extents, ok := y.code.extents.decodeCoded(nil, coded)
	if !ok {
		return nil, y.f.Damaged("extents of document %d", doc)
	}
	return extents, nil
}

// openRow is a row that lasts longer than its line, and where it ends.
type openRow struct {
	Row
	end int
}

// openRows collects the rows that last, and for each line the index of the row
// that it stands in, -1 for none.
func (y *File) openRows(doc int, lines []Line, extents []byte, recent *Recent) (rows []openRow, at []int, err error) {
	r := extentReader{b: extents}
	err = y.Rows(doc, recent, func(row Row) bool {
		// Rows that begin after the last line stand around none.
		if row.Offset >= lines[len(lines)-1].End {
			return false
		}

		if extent := r.next(); extent > 0 {
			rows = append(rows, openRow{row, row.Offset + extent})
		}
		return !r.malformed
	})

	if err == nil && r.malformed {
		err = y.f.Damaged("extents of document %d", doc)
	}
	if err != nil {
		return nil, nil, err
	}

	// Lines ascend, and so do the rows: what has ended before a line has ended for
	// good, and what is then on top of the stack began last.
	at = make([]int, len(lines))
	var stack []int
	next := 0
	for i, line := range lines {
		// Rows that begin before the line ends go on the stack.
		begun := next + sort.Search(len(rows)-next, func(k int) bool { return rows[next+k].Offset >= line.End })
		for ; next < begun; next++ {
			stack = append(stack, next)
		}

		// Those that ended before it come off: rows[top].end > line.Start, or none is left.
		for len(stack) > 0 && rows[stack[len(stack)-1]].end <= line.Start {
			stack = stack[:len(stack)-1]
		}

		// What is on top stands around the line.
		at[i] = -1
		if len(stack) > 0 {
			at[i] = stack[len(stack)-1]
		}
	}
	return rows, at, nil
}
