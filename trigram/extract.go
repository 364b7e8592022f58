package trigram

import "unsafe"

// tables are the state of extraction. They know for every trigram number the epoch of the last unit
// with that trigram, and the numbers of trigrams with an escape. A trigram is new in a unit if
//
//	seen[number] != epoch
//
// so nothing has to be cleared between units.
type tables struct {
	lastEpoch []uint8  // by number: the epoch of the last unit with the trigram
	epoch     uint8    // of the present unit
	extra     []uint32 // by 24-bit key: number of a trigram with an escape, 0 for none; allocated on first use
	keys      []uint32 // keys[i] is the key of number directIDs+i
}

// maxIDs is an upper bound for all trigram numbers.
const maxIDs = directIDs + 1<<24

func (t *tables) open() (err error) {
	t.lastEpoch, err = offheap[uint8](maxIDs)
	return err
}

func (t *tables) close() {
	release(t.lastEpoch)
	release(t.extra)
	*t = tables{}
}

// forget drops the numbers of trigrams with an escape. Call it at the end of a segment.
func (t *tables) forget() {
	for i, k := range t.keys {
		t.extra[k] = 0
		t.lastEpoch[directIDs+i] = 0
	}
	t.keys = t.keys[:0]
}

// next starts the next unit.
func (t *tables) next() {
	if t.epoch == 255 {
		clear(t.lastEpoch[:directIDs+len(t.keys)])
		t.epoch = 0
	}
	t.epoch++
}

// unit writes the distinct trigram numbers of a window into ids and returns how many there are. ids
// must have room for one number a byte. Most windows have no escape and take the fast way.
func (t *tables) unit(ids []uint32, window []byte) (int, error) {
	t.next()
	n, escapes := t.direct(ids, window)
	if escapes&escape == 0 {
		return n, nil
	}
	return t.exact(ids, window)
}

// direct is the fast way. Its result is right unless the window has an escape, which it reports. It
// stores every number, but keeps only new ones by advancing: a branch on "new" would be
// mispredicted all the time. Before each trigram
//
//	ids[:n] = the distinct numbers so far, and first = stride3 * class of its first byte
func (t *tables) direct(ids []uint32, window []byte) (n int, escapes uint32) {
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

// exact is the slow way, for windows with an escape. It starts the unit again, since direct did not
// see all trigrams of the window.
func (t *tables) exact(ids []uint32, window []byte) (int, error) {
	if t.extra == nil {
		extra, err := offheap[uint32](1 << 24)
		if err != nil {
			return 0, err
		}
		t.extra = extra
	}

	t.next()

	// As in direct, but with folded bytes and with numbers made on demand.
	n := 0
	b0, b1 := foldByte[window[0]], foldByte[window[1]]
	c0, c1 := uint32(classOf[b0]), uint32(classOf[b1])
	for _, b := range window[2:] {
		b2 := foldByte[b]
		c2 := uint32(classOf[b2])
		id := c0*stride3 + c1*stride2 + c2

		// A trigram with an escape gets its own number.
		if (c0|c1|c2)&escape != 0 {
			id = t.extraID(uint32(b0)<<16 | uint32(b1)<<8 | uint32(b2))
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

// extraID returns the number of a trigram with an escape, and numbers a new one.
func (t *tables) extraID(key uint32) uint32 {
	id := t.extra[key]
	if id == 0 {
		id = directIDs + uint32(len(t.keys))
		t.keys = append(t.keys, key)
		t.extra[key] = id
	}
	return id
}
