package shard

import (
	"encoding/binary"
	"fmt"
)

// encoder appends the small encodings of the meta and side sections: numbers
// as varints, strings with their length in front.
type encoder struct{ b []byte }

func (e *encoder) uint(v uint64) { e.b = binary.AppendUvarint(e.b, v) }

func (e *encoder) text(s string) {
	e.uint(uint64(len(s)))
	e.b = append(e.b, s...)
}

// decoder reads what an encoder wrote. The first error sticks, and every
// later read gives zeros.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrDamaged, what)
	}
	d.b = nil
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail("short number")
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count reads a number of things that take at least one byte each, so that
// damage cannot ask for more memory than the section has.
func (d *decoder) count() int {
	v := d.uint()
	if v > uint64(len(d.b)) {
		d.fail("count beyond the section")
		return 0
	}
	return int(v)
}

func (d *decoder) text() string {
	n := d.count()
	if d.err != nil {
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

// A column is an array of little-endian numbers of fixed width.
type (
	column64 []byte
	column32 []byte
	column16 []byte
)

func (c column64) at(i int) uint64 { return binary.LittleEndian.Uint64(c[i*8:]) }
func (c column32) at(i int) uint32 { return binary.LittleEndian.Uint32(c[i*4:]) }
func (c column16) at(i int) uint16 { return binary.LittleEndian.Uint16(c[i*2:]) }
func (c column64) len() int        { return len(c) / 8 }
func (c column32) len() int        { return len(c) / 4 }
