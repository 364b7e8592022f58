package pack

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// readDelta appends the text of an object that is stored as a delta to another object. It follows the
// deltas up to a text:
//
//	entry ──▶ base ──▶ base ──▶ ... ──▶ whole text, or a cached one
//	chain[0]  chain[1]  ...
//
// Then it applies the deltas, from the last of the chain to the first, each to the result of the
// delta before. It fails if a result is larger than maxText or than maxSizeOf(kind).
func (s *Store) readDelta(dst []byte, kind Kind, f *file, e entry) ([]byte, error) {
	maxSize := min(maxSizeOf(kind), maxText)
	text, err := s.readChain(kind, f, e)
	if err != nil {
		return dst, err
	}

	for k := len(s.chain) - 1; k > 0; k-- {
		// Write to the buffer that text is not in.
		to := &s.buf[(len(s.chain)-k)&1]
		if *to, err = s.applyEntry((*to)[:0], text, f, s.chain[k], maxSize); err != nil {
			return dst, err
		}
		text = *to
		s.bases.put(f, s.chain[k].at, text)
	}

	from := len(dst)
	if dst, err = s.applyEntry(dst, text, f, s.chain[0], maxSize); err == nil {
		s.bases.put(f, s.chain[0].at, dst[from:])
	}
	return dst, err
}

// readChain sets s.chain to the deltas from an entry to the first base that is cached or stored
// whole, and returns the text of that base.
func (s *Store) readChain(kind Kind, f *file, e entry) ([]byte, error) {
	s.chain = s.chain[:0]
	for e.kind != kind {
		if !e.isDelta() || len(s.chain) > maxChain { // an object of another kind, or a cycle
			return nil, errDamaged
		}

		s.chain = append(s.chain, e)
		if text, known := s.bases.get(f, e.base); known {
			return text, nil
		}

		var err error
		if e, err = f.readEntry(e.base); err != nil {
			return nil, err
		}
	}

	var err error
	if s.buf[0], _, err = s.inflate(s.buf[0][:0], f, e, min(maxSizeOf(kind), maxText)); err != nil {
		return nil, err
	}

	s.bases.put(f, e.at, s.buf[0])
	return s.buf[0], nil
}

// applyEntry reads the delta of an entry, applies it to a base text and appends the result, which
// may have maxSize bytes.
func (s *Store) applyEntry(dst, text []byte, f *file, e entry, maxSize int) (_ []byte, err error) {
	if s.delta, _, err = s.inflate(s.delta[:0], f, e, maxText); err != nil {
		return dst, err
	}
	return applyDelta(dst, text, s.delta, maxSize)
}

// applyDelta applies a delta to its base and appends the result. It returns errLarge if the result
// has more than maxSize bytes. A delta is
//
//	size of the base, size of the result, each 7 bits a byte, the lowest first
//	0nnnnnnn              the n bytes that follow
//	1lllaaaa              bytes of the base: four bits say which bytes of the
//	                      offset follow, three which of the length; 0 is 64 KiB
//
// For example 05 07 90 03 04 21 22 23 24 makes of "hello" the text `hel!"#$`.
func applyDelta(dst, base, delta []byte, maxSize int) ([]byte, error) {
	size, delta, err := readDeltaSizes(base, delta, maxSize)
	if err != nil {
		return dst, err
	}

	from := len(dst)
	dst = slices.Grow(dst, size)

	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]

		// Copy the bytes that follow.
		if op&0x80 == 0 {
			if op == 0 || int(op) > len(delta) || int(op) > size-(len(dst)-from) {
				return dst[:from], errDamaged
			}
			dst = append(dst, delta[:op]...)
			delta = delta[op:]
			continue
		}

		// Copy from the base. The low bits say which of the seven bytes follow.
		var v [7]int
		for k := range v {
			if op>>k&1 != 0 {
				if len(delta) == 0 {
					return dst[:from], errDamaged
				}
				v[k], delta = int(delta[0]), delta[1:]
			}
		}

		at, length := v[0]|v[1]<<8|v[2]<<16|v[3]<<24, v[4]|v[5]<<8|v[6]<<16
		if length == 0 {
			length = 1 << 16
		}

		if at > len(base) || length > len(base)-at || length > size-(len(dst)-from) {
			return dst[:from], errDamaged
		}

		dst = append(dst, base[at:at+length]...)
	}

	if len(dst)-from != size {
		return dst[:from], errDamaged
	}
	return dst, nil
}

// readDeltaSizes reads the sizes at the start of a delta. It returns the size of the result, and
// the operations that follow. It returns an error if base has another size, or if the result would
// have more than maxSize bytes.
func readDeltaSizes(base, delta []byte, maxSize int) (size int, ops []byte, err error) {
	baseSize, n := binary.Uvarint(delta)
	if n <= 0 || baseSize != uint64(len(base)) {
		return 0, nil, errDamaged
	}

	resultSize, m := binary.Uvarint(delta[n:])
	if m <= 0 {
		return 0, nil, errDamaged
	}
	if resultSize > uint64(maxSize) {
		return 0, nil, errLarge
	}
	return int(resultSize), delta[n+m:], nil
}

// bases caches the latest texts to which deltas were applied, because objects that are read one
// after the other often have the same base.
type bases struct {
	texts map[baseKey][]byte
	order []baseKey // keys of texts, in the order in which they came
	bytes int       // memory of all texts, with baseCost for each
}

type baseKey struct {
	f  *file
	at int
}

const (
	basesBytes = 8 << 20 // greatest value of bases.bytes
	maxBase    = 1 << 20 // size of the largest text that is cached
	baseCost   = 200     // bytes of memory for an entry of the cache, besides the text
)

// get returns the cached text of the object at an offset of a file.
func (b *bases) get(f *file, at int) ([]byte, bool) {
	text, ok := b.texts[baseKey{f, at}]
	return text, ok
}

// put caches a copy of a text, unless it is cached already or is larger than maxBase. It drops the
// oldest texts for which there is no room.
func (b *bases) put(f *file, at int, text []byte) {
	key := baseKey{f, at}
	if _, known := b.texts[key]; known || len(text) > maxBase {
		return
	}

	for b.bytes+len(text)+baseCost > basesBytes {
		old := b.texts[b.order[0]]
		delete(b.texts, b.order[0])
		b.order = b.order[1:]
		b.bytes -= len(old) + baseCost
	}

	if b.texts == nil {
		b.texts = map[baseKey][]byte{}
	}

	b.texts[key] = bytes.Clone(text)
	b.order = append(b.order, key)
	b.bytes += len(text) + baseCost
}
