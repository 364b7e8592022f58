package symbols

import (
	"encoding/binary"
	"sort"

	"github.com/shoalsearch/shoal/shard/file"
)

// Row is one symbol of a document.
type Row struct {
	Offset int // of the name in the document
	Name   int // its number
	Kind   int // its number, see [File.Kind]
	Parent int // number of the parent + 1; 0 if it has none
}

// appendRow appends a row as rowReader reads it. before is the row before in the same document, or
// the zero Row. It writes the difference of the offsets with a bit for "kind and parent follow", the
// difference of the names, and then kind and parent if they differ from those of the row before.
func appendRow(dst []byte, before, r Row) []byte {
	gap := uint64(r.Offset-before.Offset) << 1
	if r.Kind != before.Kind || r.Parent != before.Parent {
		gap |= 1
	}

	dst = binary.AppendUvarint(dst, gap)
	dst = binary.AppendVarint(dst, int64(r.Name)-int64(before.Name))

	if gap&1 != 0 {
		dst = binary.AppendUvarint(dst, uint64(r.Kind))
		dst = binary.AppendUvarint(dst, uint64(r.Parent))
	}
	return dst
}

// rowReader reads the rows of a document.
type rowReader struct {
	b         []byte
	row       Row
	malformed bool // the bytes are damaged: reading stopped
}

// next reads the next row into r.row. It returns false at the end, or if the bytes are damaged.
func (r *rowReader) next() bool {
	if len(r.b) == 0 {
		return false
	}
	gap, step := r.readUint(), r.readUint()
	if gap&1 != 0 {
		r.row.Kind, r.row.Parent = int(r.readUint()&(1<<40-1)), int(r.readUint()&(1<<40-1))
	}

	r.row.Offset += int(gap >> 1 & (1<<40 - 1))
	r.row.Name += int(int64(step>>1) ^ -int64(step&1))
	return !r.malformed
}

// readUint reads a number; most have one byte. If the bytes are damaged it sets malformed and
// returns 0.
func (r *rowReader) readUint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := r.b[0]
		r.b = r.b[1:]
		return uint64(v)
	}

	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.b, r.malformed = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// Rows calls use with the symbols of a document, by offset, until use returns false.
func (y *File) Rows(doc int, recent *Recent, use func(Row) bool) error {
	return y.RowsFrom(doc, 0, recent, use)
}

// RowsFrom calls use with the symbols of a document whose names begin at or after an offset, until
// use returns false.
func (y *File) RowsFrom(doc, offset int, recent *Recent, use func(Row) bool) error {
	rows, err := y.decodeRows(doc, recent)
	if err != nil {
		return err
	}

	for _, row := range rows[sort.Search(len(rows), func(i int) bool { return rows[i].Offset >= offset }):] {
		if !use(row) {
			break
		}
	}
	return nil
}

// decodeRows decodes the symbols of a document, sorted by offset. They are valid until the next
// call.
func (y *File) decodeRows(doc int, recent *Recent) ([]Row, error) {
	coded := file.Entry(y.docs, y.docEnd, doc)
	if len(coded) == 0 {
		return nil, nil
	}

	// A search asks for the rows of a document once for each of its chunks.
	if recent.switchTo(y); recent.docPlus1 == doc+1 {
		return recent.rows, nil
	}

	recent.docPlus1 = 0 // decoding overwrites the rows, even if it fails
	var ok bool
	if recent.coded, ok = y.code.docs.decodeCoded(recent.coded, coded); !ok {
		return nil, y.f.Damaged("symbols of document %d", doc)
	}

	recent.rows = recent.rows[:0]
	r := rowReader{b: recent.coded}
	for r.next() {
		// Callers use these numbers as indexes without a check.
		if uint(r.row.Name) >= uint(y.names) || r.row.Kind >= len(y.kinds) || r.row.Parent > len(y.parents) || r.row.Offset > maxOffset {
			r.malformed = true
			break
		}
		recent.rows = append(recent.rows, r.row)
	}

	if r.malformed {
		return nil, y.f.Damaged("symbols of document %d", doc)
	}
	recent.docPlus1 = doc + 1
	return recent.rows, nil
}

// Kind returns the name of a kind in universal-ctags.
func (y *File) Kind(number int) string { return y.kinds[number] }

// Symbol returns the name, kind and parent of a row as text.
func (y *File) Symbol(r Row, recent *Recent) (Symbol, error) {
	name, err := y.decodeName(r.Name, recent)
	s := Symbol{Name: name, Kind: y.kinds[r.Kind]}
	if r.Parent > 0 {
		s.ParentName, s.ParentKind = y.parents[r.Parent-1].name, y.parents[r.Parent-1].kind
	}
	return s, err
}
