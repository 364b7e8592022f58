// Package trigram narrows a search to the places where a match can be.
//
// A document is cut into units: windows of 4 KiB, each reaching 64 bytes into its successor. The
// index has the set of trigrams of every unit (three bytes in a row, ASCII letters in lower case).
// A regular expression becomes a [Formula] over trigrams. The units that satisfy the formula are
// the candidates, which the caller must read and verify.
//
//	document   |<------ unit 0 ------>|<------ unit 1 ------>|<- unit 2 ->|
//	windows   [.......................+64]                        -1 and +1:
//	                                [-1.......................+64]  a virtual
//	                                                       [-1...........]  newline
//
// 65,536 units make a segment, so that inside a segment a unit is 16 bits and a set of units is a
// flat bitmap of 8 KiB ([Bitmap]). A document never lies in two segments. Segments are independent
// byte strings. The writer hands each one out when it is full, and the caller stores it anywhere.
//
// The package knows bytes, units and formulas. Documents, paths, repositories
// and the files that hold the bytes are the business of package shard.
package trigram

import (
	"errors"
	"math/bits"
)

const (
	// UnitSize is the number of document bytes that belong to one unit.
	UnitSize = 4096
	// Overlap is the number of bytes that a unit's window reaches beyond the unit.
	Overlap = 64
	// SegmentUnits is the greatest number of units in a segment. The number
	// of a unit is segment<<16 | position in the segment; a segment may end
	// early, so numbers have gaps.
	SegmentUnits = 1 << 16
	// MaxDocument is the greatest size of a document in bytes.
	MaxDocument = SegmentUnits * UnitSize
)

// ErrCorrupt is the kind of every error about a segment that contradicts itself.
var ErrCorrupt = errors.New("trigram: corrupt segment")

// ErrTooLarge is the error for a document of more than [MaxDocument] bytes.
var ErrTooLarge = errors.New("trigram: document too large")

// Units returns how many units a document of size bytes has. It has at least one. A tail of at most
// [Overlap] bytes has no unit of its own.
func Units(size int) uint32 {
	if size <= UnitSize+Overlap {
		return 1
	}
	return uint32((size - Overlap + UnitSize - 1) / UnitSize)
}

// Span returns the bytes [from, to) of a document of size bytes that unit u owns, counted from 0
// inside the document. Each byte belongs to one unit, though the window of the unit before may
// reach over it. The last unit owns the tail.
func Span(size int, u uint32) (from, to int) {
	from = int(u) * UnitSize
	if u+1 >= Units(size) {
		return from, size
	}
	return from, from + UnitSize
}

// Bitmap is a set of units of one segment.
type Bitmap [SegmentUnits / 64]uint64

// Has reports whether unit u is in the set.
func (b *Bitmap) Has(u uint16) bool { return b[u>>6]&(1<<(u&63)) != 0 }

// Set adds unit u.
func (b *Bitmap) Set(u uint16) { b[u>>6] |= 1 << (u & 63) }

// Clear empties the set.
func (b *Bitmap) Clear() { *b = Bitmap{} }

// Count returns the number of units in the set.
func (b *Bitmap) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// Next returns the least unit of the set that is at least u, or -1.
func (b *Bitmap) Next(u int) int {
	if u >= SegmentUnits {
		return -1
	}

	// Skip the units below u.
	i := u >> 6
	w := b[i] >> (u & 63) << (u & 63)
	for w == 0 {
		if i++; i == len(b) {
			return -1
		}
		w = b[i]
	}
	return i<<6 + bits.TrailingZeros64(w)
}

// And removes the units that are not in o.
func (b *Bitmap) And(o *Bitmap) {
	for i := range b {
		b[i] &= o[i]
	}
}

// Or adds the units of o.
func (b *Bitmap) Or(o *Bitmap) {
	for i := range b {
		b[i] |= o[i]
	}
}

// AddRange adds the units in [lo, hi).
func (b *Bitmap) AddRange(lo, hi int) {
	hi = min(hi, SegmentUnits)
	for u := lo; u < hi; {
		n := min(64-u&63, hi-u)
		b[u>>6] |= (^uint64(0) >> (64 - n)) << (u & 63)
		u += n
	}
}
