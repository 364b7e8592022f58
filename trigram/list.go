package trigram

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// orInto adds the units of a list to a set. It returns an error unless the list has as many units
// as its entry says, ascending, and all below units, the number of units in the segment.
func (l *list) orInto(b *Bitmap, units int, w *Work) error {
	if err := l.countAndCheck(w); err != nil {
		return err
	}

	switch l.kind {
	case kindFlat:
		return l.orFlat(b, units)
	case kindSliced:
		return l.orSliced(b, units)
	}
	return l.forEach(units, func(id uint16) { b.Set(id) })
}

// countAndCheck counts the list as read, and returns an error if its bytes are damaged.
func (l *list) countAndCheck(w *Work) error {
	w.Lists++
	w.Bytes += int64(len(l.data))
	if l.kind < kindVarint {
		return nil // the list is in the entry
	}
	return l.s.touch(l.s.number, l.s.listsAt+l.at, len(l.data))
}

func (l *list) corruptError() error { return fmt.Errorf("%w: list of %06x", ErrCorrupt, l.key) }

// forEach calls f for each unit of an inline or varint list.
func (l *list) forEach(units int, f func(uint16)) error {
	if l.n == 0 {
		return nil
	}
	if l.kind != kindVarint {
		return l.forEachInline(units, f)
	}

	// Each number is a varint: the difference to the least id that could follow.
	next, data := 0, l.data
	for range l.n {
		d, shift := 0, 0
		for {
			if len(data) == 0 || shift > 14 { // ids have 16 bits: at most three bytes
				return l.corruptError()
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
			return l.corruptError()
		}
		f(uint16(next))
		next++
	}

	if len(data) != 0 {
		return l.corruptError()
	}
	return nil
}

// forEachInline calls f for each unit of a list that is stored in its entry.
func (l *list) forEachInline(units int, f func(uint16)) error {
	last := -1
	for i := range l.n {
		id := int(binary.LittleEndian.Uint16(l.data[2*i:]))
		if id <= last || id >= units {
			return l.corruptError()
		}
		f(uint16(id))
		last = id
	}
	return nil
}

// orFlat adds the units of a list of kind kindFlat to b.
func (l *list) orFlat(b *Bitmap, units int) error {
	words := (units + 63) / 64
	if len(l.data) != 8*words {
		return l.corruptError()
	}

	data, n := l.data, 0
	for i := range words {
		x := binary.LittleEndian.Uint64(data[8*i:])
		n += bits.OnesCount64(x)
		b[i] |= x
	}

	// The number in the entry and the number of bits must agree.
	if n != l.n || hasUnitsBeyond(b, units) {
		return l.corruptError()
	}
	return nil
}

// hasUnitsBeyond reports whether a set has units that are not below units. It looks only up to the
// end of the slice of 256 units that contains the last unit, because no list can reach farther.
func hasUnitsBeyond(b *Bitmap, units int) bool {
	words := (units + 63) / 64
	for _, w := range b[words : (words+3)&^3] {
		if w != 0 {
			return true
		}
	}
	return units&63 != 0 && b[units>>6]>>(units&63) != 0
}

// cutSlice splits the first slice off the data of a sliced list. It returns the number of its units,
// its 1 to 32 bytes, and the data after it. ok is false if data is too short.
func cutSlice(data []byte) (n int, slice, rest []byte, ok bool) {
	if len(data) < 2 {
		return 0, nil, nil, false
	}
	n = int(data[0]) + 1
	size := 1 + min(n, sliceBytes)
	if len(data) < size {
		return 0, nil, nil, false
	}
	return n, data[1:size], data[size:], true
}

// sliceToBitmap returns the bitmap of a slice with n units.
func sliceToBitmap(n int, slice []byte) (w [wordsPerSlice]uint64) {
	if n >= sliceBytes {
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

// orSliced adds the units of a list of kind kindSliced to b.
func (l *list) orSliced(b *Bitmap, units int) error {
	if len(l.data) < directoryBytes {
		return l.corruptError()
	}
	words, data, total := (units+63)/64, l.data[directoryBytes:], 0

	for i := range directoryBytes / 8 {
		for x := binary.LittleEndian.Uint64(l.data[8*i:]); x != 0; x &= x - 1 {
			n, slice, rest, ok := cutSlice(data)
			at := wordsPerSlice * (i<<6 + bits.TrailingZeros64(x))
			if !ok || at >= words {
				return l.corruptError()
			}
			data, total = rest, total+n

			to := b[at : at+wordsPerSlice]
			for k, w := range sliceToBitmap(n, slice) {
				to[k] |= w
			}
		}
	}

	// All data must be used, and no unit may lie beyond the end or count twice.
	if len(data) != 0 || total != l.n || hasUnitsBeyond(b, units) {
		return l.corruptError()
	}
	return nil
}

// andSliced removes from b the units that are not in a list of kind kindSliced. Before each slice,
// b[:done] is the result. Units between two slices are not in the list, so it clears them.
func (l *list) andSliced(b *Bitmap, units int) error {
	if len(l.data) < directoryBytes {
		return l.corruptError()
	}
	words, data, total, done := (units+63)/64, l.data[directoryBytes:], 0, 0
	for i := range directoryBytes / 8 {
		for x := binary.LittleEndian.Uint64(l.data[8*i:]); x != 0; x &= x - 1 {
			n, slice, rest, ok := cutSlice(data)
			at := wordsPerSlice * (i<<6 + bits.TrailingZeros64(x))
			if !ok || at >= words {
				return l.corruptError()
			}

			data, total = rest, total+n
			clear(b[done:at])
			done = at + wordsPerSlice

			to := b[at:done]
			for k, w := range sliceToBitmap(n, slice) {
				to[k] &= w
			}
		}
	}

	// No slice has the units behind the last one.
	clear(b[done:])
	if len(data) != 0 || total != l.n {
		return l.corruptError()
	}
	return nil
}

// andInto removes from a set the units that are not in the list.
func (l *list) andInto(b *Bitmap, units int, w *Work) error {
	switch l.kind {
	case kindFlat:
		if err := l.countAndCheck(w); err != nil {
			return err
		}

		if len(l.data) != 8*((units+63)/64) {
			return l.corruptError()
		}

		for i := range len(l.data) / 8 {
			b[i] &= binary.LittleEndian.Uint64(l.data[8*i:])
		}
		return nil
	case kindSliced:
		if err := l.countAndCheck(w); err != nil {
			return err
		}
		return l.andSliced(b, units)
	}

	// Turn a list of another kind into a bitmap first.
	var members Bitmap
	if err := l.orInto(&members, units, w); err != nil {
		return err
	}
	b.And(&members)
	return nil
}

// appendIDs appends the units of a list to ids, ascending.
func (l *list) appendIDs(units int, w *Work, ids *[]uint16) error {
	// Flat and sliced lists do not give ids one by one, but a bitmap gives them in order.
	if l.kind == kindFlat || l.kind == kindSliced {
		var b Bitmap
		if err := l.orInto(&b, units, w); err != nil {
			return err
		}
		*ids = b.appendTo(*ids)
		return nil
	}

	if err := l.countAndCheck(w); err != nil {
		return err
	}
	return l.forEach(units, func(id uint16) { *ids = append(*ids, id) })
}

// filterIDs returns the ids that are in the list. It reuses the memory of ids.
func (l *list) filterIDs(ids []uint16, units int, w *Work) ([]uint16, error) {
	if err := l.countAndCheck(w); err != nil {
		return nil, err
	}

	found := ids[:0]
	switch l.kind {
	case kindFlat:
		// A flat list has a bit for each unit, in whole words.
		if len(l.data) != 8*((units+63)/64) {
			return nil, l.corruptError()
		}

		for _, id := range ids {
			if l.data[id>>3]&(1<<(id&7)) != 0 {
				found = append(found, id)
			}
		}
		return found, nil
	case kindSliced:
		return l.filterSliced(ids)
	}

	// Both ascend: ids[i] is the least id that may still be in the list.
	i := 0
	err := l.forEach(units, func(id uint16) {
		for i < len(ids) && ids[i] < id {
			i++
		}
		if i < len(ids) && ids[i] == id {
			found = append(found, id)
			i++
		}
	})
	return found, err
}

// filterSliced returns the ids that are in a list of kind kindSliced. It skips slices without an
// id.
func (l *list) filterSliced(ids []uint16) ([]uint16, error) {
	if len(l.data) < directoryBytes {
		return nil, l.corruptError()
	}
	found, data := ids[:0], l.data[directoryBytes:]

	for word := 0; word < directoryBytes/8 && len(ids) > 0; word++ {
		for x := binary.LittleEndian.Uint64(l.data[8*word:]); x != 0 && len(ids) > 0; x &= x - 1 {
			if len(data) < 2 || len(data) < 1+min(int(data[0])+1, sliceBytes) {
				return nil, l.corruptError()
			}

			// Take the ids of this slice. Smaller ids are in no slice.
			slice, size := uint16(word<<6+bits.TrailingZeros64(x)), min(int(data[0])+1, sliceBytes)
			for len(ids) > 0 && ids[0]>>8 < slice {
				ids = ids[1:]
			}
			for len(ids) > 0 && ids[0]>>8 == slice {
				if inSlice(data[1:1+size], byte(ids[0])) {
					found = append(found, ids[0])
				}
				ids = ids[1:]
			}

			data = data[1+size:]
		}
	}
	return found, nil
}

// inSlice reports whether a slice has a low byte. data is 1 to 31 low bytes, or a bitmap of 32
// bytes.
func inSlice(data []byte, low byte) bool {
	if len(data) == sliceBytes {
		return data[low>>3]&(1<<(low&7)) != 0
	}
	return slices.Contains(data, low)
}
