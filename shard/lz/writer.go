package lz

import "encoding/binary"

// writer collects the two streams of a block. Matches have at least minMatch bytes, so the arrays
// are always large enough.
type writer struct {
	records [MaxBlock/minMatch*recordBytes + 8]byte
	rest    [2*MaxBlock + wide]byte // lengths and literals
	n, m    int                     // used bytes of records and of rest
}

func (w *writer) reset() { w.n, w.m = 0, 0 }

// sequence adds the literals src[anchor:i] and a match.
func (w *writer) sequence(src []byte, anchor, i, offset, length int) {
	lit, token := i-anchor, uint8(escape)
	if lit <= maxShort && length <= maxShortCopy && (offset >= wide || length <= offset) {
		token = tokens[lit][length]
	}

	binary.LittleEndian.PutUint32(w.records[w.n:], uint32(offset)<<8|uint32(token))
	w.n += recordBytes

	if token == escape {
		w.addLength(lit)
		w.addLength(length - minMatch)
	}

	// Copy few literals at once, together with the bytes that follow.
	if lit <= wide && anchor+wide <= len(src) {
		*(*[wide]byte)(w.rest[w.m:]) = *(*[wide]byte)(src[anchor:])
		w.m += lit
		return
	}
	w.literals(src[anchor:i])
}

// literals adds literals.
func (w *writer) literals(lit []byte) { w.m += copy(w.rest[w.m:], lit) }

// addLength adds a length as a series of bytes.
func (w *writer) addLength(n int) {
	for ; n >= 255; n -= 255 {
		w.rest[w.m] = 255
		w.m++
	}
	w.rest[w.m] = byte(n)
	w.m++
}

// finish appends the block to dst. last are the literals after the last match.
func (w *writer) finish(dst, last []byte) []byte {
	w.literals(last)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(w.n/recordBytes))
	dst = append(dst, w.records[:w.n]...)
	return append(dst, w.rest[:w.m]...)
}
