package shard

import "math/bits"

// docSet is a set of documents of one shard. A nil set holds every document.
type docSet []uint64

func newDocSet(documents int) docSet { return make(docSet, (documents+63)/64) }

func (d docSet) add(i int)      { d[i>>6] |= 1 << (i & 63) }
func (d docSet) has(i int) bool { return d == nil || d[i>>6]&(1<<(i&63)) != 0 }

// and returns the intersection. It may change d. The result may share memory with d or o.
func (d docSet) and(o docSet) docSet {
	if d == nil {
		return o
	}
	if o == nil {
		return d
	}

	for i := range d {
		d[i] &= o[i]
	}
	return d
}

// or returns the union. It may change d.
func (d docSet) or(o docSet) docSet {
	if d == nil || o == nil {
		return nil
	}
	for i := range d {
		d[i] |= o[i]
	}
	return d
}

// not returns the complement in a shard with the given number of documents.
func (d docSet) not(documents int) docSet {
	out := newDocSet(documents)
	if d == nil {
		return out
	}

	// Clear the bits after the last document.
	for i := range out {
		out[i] = ^d[i]
	}
	if tail := documents & 63; tail != 0 {
		out[len(out)-1] &= 1<<tail - 1
	}
	return out
}

// next returns the least member that is at least i, or -1, in a shard with that many documents.
func (d docSet) next(i, documents int) int {
	if d == nil {
		if i < documents {
			return i
		}
		return -1
	}

	w := i >> 6
	if w >= len(d) {
		return -1
	}

	// Skip the bits below i.
	word := d[w] >> (i & 63) << (i & 63)
	for word == 0 {
		if w++; w == len(d) {
			return -1
		}
		word = d[w]
	}
	return w<<6 + bits.TrailingZeros64(word)
}
