package lz

import "encoding/binary"

// writer collects the two streams of a block. Every match has at least minMatch bytes, so the
// arrays are always large enough.
type writer struct {
	records  [MaxBlock/minMatch*recordBytes + 8]byte
	literals [2*MaxBlock + wideCopy]byte // the stream of literals, with the lengths after escapes

	recordsLen, literalsLen int // used bytes of records and of literals
}

func (w *writer) reset() { w.recordsLen, w.literalsLen = 0, 0 }

// addSequence adds the literals src[anchor:i] and a match.
func (w *writer) addSequence(src []byte, anchor, i, offset, length int) {
	lit, token := i-anchor, uint8(escape)
	if lit <= maxTokenLiterals && length <= maxTokenMatch && (offset >= wideCopy || length <= offset) {
		token = tokens[lit][length]
	}

	binary.LittleEndian.PutUint32(w.records[w.recordsLen:], uint32(offset)<<8|uint32(token))
	w.recordsLen += recordBytes

	if token == escape {
		w.addLength(lit)
		w.addLength(length - minMatch)
	}

	// Copy a few literals by one copy of fixed size, which also copies some bytes after them.
	if lit <= wideCopy && anchor+wideCopy <= len(src) {
		*(*[wideCopy]byte)(w.literals[w.literalsLen:]) = *(*[wideCopy]byte)(src[anchor:])
		w.literalsLen += lit
		return
	}
	w.addLiterals(src[anchor:i])
}

// addLiterals appends bytes to the stream of literals.
func (w *writer) addLiterals(lit []byte) { w.literalsLen += copy(w.literals[w.literalsLen:], lit) }

// addLength appends a length to the stream of literals, as a series of bytes.
func (w *writer) addLength(n int) {
	for ; n >= 255; n -= 255 {
		w.literals[w.literalsLen] = 255
		w.literalsLen++
	}
	w.literals[w.literalsLen] = byte(n)
	w.literalsLen++
}

// appendBlock adds the literals after the last match and appends the block to dst.
func (w *writer) appendBlock(dst, last []byte) []byte {
	w.addLiterals(last)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(w.recordsLen/recordBytes))
	dst = append(dst, w.records[:w.recordsLen]...)
	return append(dst, w.literals[:w.literalsLen]...)
}
