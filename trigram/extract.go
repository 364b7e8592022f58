package trigram

import "unsafe"

// tables find the distinct trigrams of each unit, and number the trigrams with an escape. Each unit
// has an epoch, a number from 1 to 255. A trigram is new in a unit if
//
//	lastEpoch[number] != epoch
//
// so nothing has to be cleared between units.
type tables struct {
	lastEpoch []uint8  // by number: the epoch of the last unit with the trigram
	epoch     uint8    // of the present unit
	escapeIDs []uint32 // by 24-bit key: number of a trigram with an escape, 0 for none; allocated on first use
	keys      []uint32 // keys[i] is the key of number directIDs+i
}

// maxIDs is an upper bound for all trigram numbers.
const maxIDs = directIDs + 1<<24

// allocateEpochs allocates lastEpoch.
func (t *tables) allocateEpochs() (err error) {
	t.lastEpoch, err = allocOffHeap[uint8](maxIDs)
	return err
}

// close frees the tables.
func (t *tables) close() {
	freeOffHeap(t.lastEpoch)
	freeOffHeap(t.escapeIDs)
	*t = tables{}
}

// forgetEscapes drops the numbers of trigrams with an escape. The writer calls it at the end of a
// segment.
func (t *tables) forgetEscapes() {
	for i, k := range t.keys {
		t.escapeIDs[k] = 0
		t.lastEpoch[directIDs+i] = 0
	}
	t.keys = t.keys[:0]
}

// startUnit starts the next unit with the next epoch. After epoch 255 it clears lastEpoch and starts
// again at 1.
func (t *tables) startUnit() {
	if t.epoch == 255 {
		clear(t.lastEpoch[:directIDs+len(t.keys)])
		t.epoch = 0
	}
	t.epoch++
}

// extractUnit writes the distinct trigram numbers of a window into ids and returns how many there
// are. ids must have room for one number a byte. extractDirect, which is faster, does it for most
// windows, because they have no escape.
func (t *tables) extractUnit(ids []uint32, window []byte) (int, error) {
	t.startUnit()
	n, escapes := t.extractDirect(ids, window)
	if escapes&escape == 0 {
		return n, nil
	}
	return t.extractEscapes(ids, window)
}

// extractDirect extracts the trigrams of a window without an escape, into ids[:n]. escapes is the
// bitwise or of all classes: if it has the bit escape, the numbers in ids are wrong. It writes every
// number to ids[n], but increments n only for a number that is new in the unit. A branch on that
// would be mispredicted all the time. Before each trigram
//
//	ids[:n] = the distinct numbers so far, and first = stride3 * class of its first byte
func (t *tables) extractDirect(ids []uint32, window []byte) (n int, escapes uint32) {
	if len(window) < 3 || len(ids) < len(window) {
		return 0, 0
	}

	c0, c1 := uint32(classOf[window[0]]), uint32(classOf[window[1]])
	escapes = c0 | c1
	seen, out, epoch := unsafe.Pointer(&t.lastEpoch[0]), unsafe.Pointer(&ids[0]), t.epoch
	first := c0 * stride3 // of the next trigram

	for _, b := range window[2:] {
		c := uint32(classOf[b])
		escapes |= c
		id := first + c1*stride2 + c
		first, c1 = c1*stride3, c

		// id is below directIDs and n below len(window), so both tables have room.
		p := (*uint8)(unsafe.Add(seen, id))
		old := *p
		*p = epoch
		*(*uint32)(unsafe.Add(out, n*4)) = id
		m := n + 1
		if old != epoch {
			n = m
		}
	}
	return n, escapes
}

// extractEscapes extracts the trigrams of a window with an escape, and returns how many there are.
// It starts the unit again, because extractDirect has marked wrong numbers in lastEpoch.
func (t *tables) extractEscapes(ids []uint32, window []byte) (int, error) {
	if t.escapeIDs == nil {
		extra, err := allocOffHeap[uint32](1 << 24)
		if err != nil {
			return 0, err
		}
		t.escapeIDs = extra
	}

	t.startUnit()

	// As in extractDirect, but with folded bytes, and a trigram with an escape gets a number on
	// demand.
	n := 0
	b0, b1 := foldByte[window[0]], foldByte[window[1]]
	c0, c1 := uint32(classOf[b0]), uint32(classOf[b1])
	for _, b := range window[2:] {
		b2 := foldByte[b]
		c2 := uint32(classOf[b2])
		id := c0*stride3 + c1*stride2 + c2

		// A trigram with an escape gets its own number.
		if (c0|c1|c2)&escape != 0 {
			id = t.escapeID(uint32(b0)<<16 | uint32(b1)<<8 | uint32(b2))
		}

		if t.lastEpoch[id] != t.epoch {
			t.lastEpoch[id] = t.epoch
			ids[n] = id
			n++
		}
		b0, b1, c0, c1 = b1, b2, c1, c2
	}
	return n, nil
}

// escapeID returns the number of a trigram with an escape, and numbers a new one.
func (t *tables) escapeID(key uint32) uint32 {
	id := t.escapeIDs[key]
	if id == 0 {
		id = directIDs + uint32(len(t.keys))
		t.keys = append(t.keys, key)
		t.escapeIDs[key] = id
	}
	return id
}
