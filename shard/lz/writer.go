package lz

import "encoding/binary"

// writer collects the two streams of a block. Matches have at least minMatch bytes, so the arrays
// are always large enough.
type writer struct {
	records  [MaxBlock/minMatch*recordBytes + 8]byte
	literals [2*MaxBlock + wideCopy]byte // the stream of literals, with the lengths after escapes
	n, m     int                         // used bytes of records and of literals
}

func (w *writer) reset() { w.n, w.m = 0, 0 }

// addSequence adds the literals src[anchor:i] and a match.
func (w *writer) addSequence(src []byte, anchor, i, offset, length int) {
	lit, token := i-anchor, uint8(escape)
	if lit <= maxShort && length <= maxShortCopy && (offset >= wideCopy || length <= offset) {
		token = tokens[lit][length]
	}

	binary.LittleEndian.PutUint32(w.records[w.n:], uint32(offset)<<8|uint32(token))
	w.n += recordBytes

	if token == escape {
		w.addLength(lit)
		w.addLength(length - minMatch)
	}

	// Copy few literals at once, together with the bytes that follow.
	if lit <= wideCopy && anchor+wideCopy <= len(src) {
		*(*[wideCopy]byte)(w.literals[w.m:]) = *(*[wideCopy]byte)(src[anchor:])
		w.m += lit
		return
	}
	w.addLiterals(src[anchor:i])
}

// addLiterals adds literals.
func (w *writer) addLiterals(lit []byte) { w.m += copy(w.literals[w.m:], lit) }

// addLength adds a length as a series of bytes.
func (w *writer) addLength(n int) {
	for ; n >= 255; n -= 255 {
		w.literals[w.m] = 255
		w.m++
	}
	w.literals[w.m] = byte(n)
	w.m++
}

// appendBlock adds the literals after the last match and appends the block to dst.
func (w *writer) appendBlock(dst, last []byte) []byte {
	w.addLiterals(last)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(w.n/recordBytes))
	dst = append(dst, w.records[:w.n]...)
	return append(dst, w.literals[:w.m]...)
}
