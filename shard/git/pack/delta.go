package pack

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// resolve appends an object that is stored as a delta to another object.
//
//	entry ──▶ base ──▶ base ──▶ ... ──▶ whole text, or a cached one
//	chain[0]  chain[1]  ...
//
// Then it applies the deltas, from the last of the chain to the first, each to the text that the
// one before made. No text on the way may be larger than maxText, or larger than an object of the
// kind may be.
func (s *Store) resolve(dst []byte, kind Kind, f *file, e entry) ([]byte, error) {
	most := min(mostOf(kind), maxText)
	text, err := s.climb(kind, f, e)
	if err != nil {
		return dst, err
	}

	for k := len(s.chain) - 1; k > 0; k-- {
		// The text is in the other buffer, or in the cache of bases.
		to := &s.buf[(len(s.chain)-k)&1]
		if *to, err = s.apply((*to)[:0], text, f, s.chain[k], most); err != nil {
			return dst, err
		}
		text = *to
		s.bases.put(f, s.chain[k].at, text)
	}

	from := len(dst)
	if dst, err = s.apply(dst, text, f, s.chain[0], most); err == nil {
		s.bases.put(f, s.chain[0].at, dst[from:])
	}
	return dst, err
}

// climb fills the chain of deltas from an entry up to a whole text, and returns that text.
func (s *Store) climb(kind Kind, f *file, e entry) ([]byte, error) {
	s.chain = s.chain[:0]
	for e.kind != kind {
		if !e.isDelta() || len(s.chain) > maxChain { // of another kind than requested, or a circle
			return nil, errDamaged
		}

		s.chain = append(s.chain, e)
		if text, known := s.bases.get(f, e.base); known {
			return text, nil
		}

		// The text is not cached: go one step up.
		var err error
		if e, err = f.entry(e.base); err != nil {
			return nil, err
		}
	}

	var err error
	if s.buf[0], _, err = s.inflate(s.buf[0][:0], f, e, min(mostOf(kind), maxText)); err != nil {
		return nil, err
	}

	s.bases.put(f, e.at, s.buf[0])
	return s.buf[0], nil
}

// apply appends the result of applying the delta of an entry to a text.
func (s *Store) apply(dst, text []byte, f *file, e entry, most int) (_ []byte, err error) {
	if s.delta, _, err = s.inflate(s.delta[:0], f, e, maxText); err != nil {
		return dst, err
	}
	return applyDelta(dst, text, s.delta, most)
}

// applyDelta appends the result of applying a delta to its base, if that has at most most bytes:
//
//	size of the base, size of the result, each 7 bits a byte, the lowest first
//	0nnnnnnn              the n bytes that follow
//	1lllaaaa              bytes of the base: four bits say which bytes of the
//	                      place follow, three which of the length; 0 is 64 KiB
//
// For example 05 07 90 03 04 21 22 23 24 makes of "hello" the text `hel!"#$`.
func applyDelta(dst, base, delta []byte, most int) ([]byte, error) {
	size, delta, err := deltaSizes(base, delta, most)
	if err != nil {
		return dst, err
	}

	from := len(dst)
	dst = slices.Grow(dst, size)

	// dst[from:] is the result so far, at most size bytes.
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

// deltaSizes reads the head of a delta: the size of its result, and its operations.
func deltaSizes(base, delta []byte, most int) (size int, rest []byte, err error) {
	of, n := binary.Uvarint(delta)

	// The size is all that a delta says about its base. Another size means that it was made for
	// another base.
	if n <= 0 || of != uint64(len(base)) {
		return 0, nil, errDamaged
	}

	made, m := binary.Uvarint(delta[n:])
	if m <= 0 {
		return 0, nil, errDamaged
	}

	// Check before allocating: a few bytes may promise any size.
	if made > uint64(most) {
		return 0, nil, errLarge
	}
	return int(made), delta[n+m:], nil
}

// bases caches the latest base texts, because objects that are read one after the other often have
// the same base.
type bases struct {
	texts map[baseKey][]byte
	order []baseKey // in the order in which they came
	bytes int
}

type baseKey struct {
	f  *file
	at int
}

const (
	basesBytes = 8 << 20
	baseMost   = 1 << 20 // bytes; a larger text is not cached
	baseCost   = 200     // bytes that a cached text takes besides its own
)

func (b *bases) get(f *file, at int) ([]byte, bool) {
	text, ok := b.texts[baseKey{f, at}]
	return text, ok
}

// put caches a copy of a text.
func (b *bases) put(f *file, at int, text []byte) {
	key := baseKey{f, at}
	if _, known := b.texts[key]; known || len(text) > baseMost {
		return
	}

	// Make room: drop the oldest texts.
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
