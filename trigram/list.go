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

// cutSlice takes a slice off the data of a sliced list: its number of units
// and its 1 to 32 bytes.
func cutSlice(data []byte) (n int, slice, rest []byte, ok bool) {
	if len(data) < 2 {
		return 0, nil, nil, false
	}
	n = int(data[0]) + 1
	size := 1 + min(n, 32)
	if len(data) < size {
		return 0, nil, nil, false
	}
	return n, data[1:size], data[size:], true
}

// sliceWords gives a slice as a bitmap.
func sliceWords(n int, slice []byte) (w [4]uint64) {
	if n >= 32 {
		for i := range w {
			w[i] = binary.LittleEndian.Uint64(slice[8*i:])
		}
		return w
	}
	for _, c := range slice {
		w[c>>6] |= 1 << (c & 63)
	}
	return w
}

func (l *list) orSliced(b *Bitmap, units int) error {
	if len(l.data) < 32 {
		return l.corrupt()
	}
	words, data, total := (units+63)/64, l.data[32:], 0
	for i := range 4 {
		for x := binary.LittleEndian.Uint64(l.data[8*i:]); x != 0; x &= x - 1 {
			n, slice, rest, ok := cutSlice(data)
			at := 4 * (i<<6 + bits.TrailingZeros64(x))
			if !ok || at >= words {
				return l.corrupt()
			}
			data, total = rest, total+n
			to := b[at : at+4]
			for k, w := range sliceWords(n, slice) {
				to[k] |= w
			}
		}
	}
	if len(data) != 0 || total != l.n || overrun(b, units) || len(b) > words && b[words] != 0 {
		return l.corrupt()
	}
	return nil
}

func (l *list) andSliced(b *Bitmap, units int) error {
	if len(l.data) < 32 {
		return l.corrupt()
	}
	words, data, total, done := (units+63)/64, l.data[32:], 0, 0
	for i := range 4 {
		for x := binary.LittleEndian.Uint64(l.data[8*i:]); x != 0; x &= x - 1 {
			n, slice, rest, ok := cutSlice(data)
			at := 4 * (i<<6 + bits.TrailingZeros64(x))
			if !ok || at >= words {
				return l.corrupt()
			}
			data, total = rest, total+n
			clear(b[done:at])
			done = at + 4
			to := b[at:done]
			for k, w := range sliceWords(n, slice) {
				to[k] &= w
			}
		}
	}
	clear(b[done:])
	if len(data) != 0 || total != l.n {
		return l.corrupt()
	}
	return nil
}

// andInto removes from a set what is not in the list.
func (l *list) andInto(b *Bitmap, units int, w *Work) error {
	switch l.kind {
	case kindFlat:
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
	case kindSliced:
		if err := l.open(w); err != nil {
			return err
		}
		return l.andSliced(b, units)
	}
	var only Bitmap
	if err := l.orInto(&only, units, w); err != nil {
		return err
	}
	b.And(&only)
	return nil
}
