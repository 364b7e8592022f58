package file

import (
	"encoding/binary"
	"fmt"
)

// Encoder appends the encodings of small lists: numbers as varints, strings after their length.
type Encoder struct{ B []byte }

// Uint appends a number.
func (e *Encoder) Uint(v uint64) { e.B = binary.AppendUvarint(e.B, v) }

// Text appends a string.
func (e *Encoder) Text(s string) {
	e.Uint(uint64(len(s)))
	e.B = append(e.B, s...)
}

// Decoder reads the bytes of an Encoder. After the first error every read returns zeros.
type Decoder struct {
	b   []byte
	err error
}

// NewDecoder returns a Decoder that reads b.
func NewDecoder(b []byte) *Decoder { return &Decoder{b: b} }

// Err returns the first error, which matches [ErrDamaged].
func (d *Decoder) Err() error { return d.err }

// Fail records an error, unless there is one already.
func (d *Decoder) Fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrDamaged, what)
	}
	d.b = nil
}

// Uint reads a number.
func (d *Decoder) Uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.Fail("short number")
		return 0
	}
	d.b = d.b[n:]
	return v
}

// Count reads the number of elements that follow. Each has at least one byte, so a number
// larger than that of the remaining bytes is an error. So damaged bytes cannot make a reader allocate
// too much memory.
func (d *Decoder) Count() int {
	v := d.Uint()
	if v > uint64(len(d.b)) {
		d.Fail("count beyond the section")
		return 0
	}
	return int(v)
}

// Text reads a string.
func (d *Decoder) Text() string {
	n := d.Count()
	if d.err != nil {
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

// A column is an array of little-endian numbers of one width.
type (
	Column64 []byte // of eight bytes
	Column32 []byte // of four bytes
	Column16 []byte // of two bytes
)

// At returns number i.
func (c Column64) At(i int) uint64 { return binary.LittleEndian.Uint64(c[i*8:]) }

// At returns number i.
func (c Column32) At(i int) uint32 { return binary.LittleEndian.Uint32(c[i*4:]) }

// At returns number i.
func (c Column16) At(i int) uint16 { return binary.LittleEndian.Uint16(c[i*2:]) }

// Len returns how many numbers there are.
func (c Column64) Len() int { return len(c) / 8 }

// Len returns how many numbers there are.
func (c Column32) Len() int { return len(c) / 4 }

// Entry returns entry i of blob, which has entries one after the other. ends has the offset of the end of each.
func Entry(blob []byte, ends Column32, i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = ends.At(i - 1)
	}
	return blob[from:ends.At(i)]
}
