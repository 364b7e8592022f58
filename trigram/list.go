package trigram

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// orInto adds the units of a list to a set. The list is checked: exactly n
// units, ascending, below units.
func (l *list) orInto(b *Bitmap, units int, w *Work) error {
	if err := l.open(w); err != nil {
		return err
	}
	switch l.kind {
	case kindFlat:
		return l.orFlat(b, units)
	case kindSliced:
		return l.orSliced(b, units)
	}
	return l.each(units, func(id uint16) { b.Set(id) })
}

// open counts the list and makes sure that its bytes may be believed.
func (l *list) open(w *Work) error {
	w.Lists++
	w.Bytes += int64(len(l.data))
	if l.kind < kindVarint {
		return nil // a part of the entry
	}
	return l.s.touch(l.s.number, l.s.listsAt+l.at, len(l.data))
}

func (l *list) corrupt() error { return fmt.Errorf("%w: list of %06x", ErrCorrupt, l.key) }

// each calls f for the units of a list that is inline or of differences.
func (l *list) each(units int, f func(uint16)) error {
	if l.n == 0 {
		return nil
	}
	if l.kind != kindVarint {
		last := -1
		for i := range l.n {
			id := int(binary.LittleEndian.Uint16(l.data[2*i:]))
			if id <= last || id >= units {
				return l.corrupt()
			}
			f(uint16(id))
			last = id
		}
		return nil
	}
	next, data := 0, l.data
	for range l.n {
		d, shift := 0, 0
		for {
			if len(data) == 0 || shift > 14 {
				return l.corrupt()
			}
			c := data[0]
			data = data[1:]
			d |= int(c&0x7f) << shift
			if c < 0x80 {
				break
			}
			shift += 7
		}
		next += d
		if next >= units {
			return l.corrupt()
		}
		f(uint16(next))
		next++
	}
	if len(data) != 0 {
		return l.corrupt()
	}
	return nil
}

func (l *list) orFlat(b *Bitmap, units int) error {
	words := (units + 63) / 64
	if len(l.data) != 8*words {
		return l.corrupt()
	}
	data, n := l.data, 0
	for i := range words {
		x := binary.LittleEndian.Uint64(data[8*i:])
		n += bits.OnesCount64(x)
		b[i] |= x
	}
	if n != l.n || overrun(b, units) {
		return l.corrupt()
	}
	return nil
}

// overrun reports whether the last word of a set has units that do not exist.
func overrun(b *Bitmap, units int) bool {
	return units&63 != 0 && b[units>>6]>>(units&63) != 0
}

// slices walks the slices of a sliced list: f gets the number of the slice,
// its count and its 1 to 32 bytes.
func (l *list) slices(f func(slice, n int, data []byte)) error {
	if len(l.data) < 32 {
		return l.corrupt()
	}
	present, data, total := l.data[:32], l.data[32:], 0
	for i := range 4 {
		for x := binary.LittleEndian.Uint64(present[8*i:]); x != 0; x &= x - 1 {
			if len(data) < 2 {
				return l.corrupt()
			}
			n := int(data[0]) + 1
			size := min(n, 32)
			if len(data) < 1+size {
				return l.corrupt()
			}
			f(i<<6+bits.TrailingZeros64(x), n, data[1:1+size])
			data = data[1+size:]
			total += n
		}
	}
	if len(data) != 0 || total != l.n {
		return l.corrupt()
	}
	return nil
}

func (l *list) orSliced(b *Bitmap, units int) error {
	words := (units + 63) / 64
	bad := false
	err := l.slices(func(slice, n int, data []byte) {
		if slice*4 >= words {
			bad = true
			return
		}
		to := b[slice*4 : slice*4+4]
		if n >= 32 {
			for i := range to {
				to[i] |= binary.LittleEndian.Uint64(data[8*i:])
			}
			return
		}
		for _, c := range data {
			to[c>>6] |= 1 << (c & 63)
		}
	})
	if err != nil {
		return err
	}
	if bad || overrun(b, units) || len(b) > words && b[words] != 0 {
		return l.corrupt()
	}
	return nil
}

// andInto removes from a set what is not in the list. tmp is a buffer.
func (l *list) andInto(b, tmp *Bitmap, units int, w *Work) error {
	if l.kind == kindFlat {
		if err := l.open(w); err != nil {
			return err
		}
		if len(l.data) != 8*((units+63)/64) {
			return l.corrupt()
		}
		for i := range len(l.data) / 8 {
			b[i] &= binary.LittleEndian.Uint64(l.data[8*i:])
		}
		return nil
	}
	tmp.Clear()
	if err := l.orInto(tmp, units, w); err != nil {
		return err
	}
	b.And(tmp)
	return nil
}
