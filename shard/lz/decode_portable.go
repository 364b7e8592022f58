//go:build !amd64 || purego

package lz

import (
	"encoding/binary"
	"unsafe"
)

// decodeCommon decodes common sequences. It copies 16 bytes of literals and 32 of a match, however
// long they are, so it stops before such a copy could pass the capacity of a slice. r, l and o are as
// in decode; it returns their new values.
func decodeCommon(dst, block, dict []byte, r, end, l, o int) (int, int, int) {
	lastOut, lastLit, lastDict := min(len(dst)-1, cap(dst)-Slack), cap(block)-2*wideCopy, cap(dict)-2*wideCopy
	if lastDict < 0 {
		dict, lastDict = nil, 0 // too small to copy from, so no match is in it
	}
	literals := unsafe.Pointer(unsafe.SliceData(block))
	texts := [2]unsafe.Pointer{unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(dict))}

	for records := block[:end]; r < len(records) && o <= lastOut && l <= lastLit; r += recordBytes {
		record := records[r : r+recordBytes : r+recordBytes]
		token := record[0]
		if token == escape {
			break
		}
		lit, length := int(lengths[token]&0xff), int(lengths[token]>>8)

		// The match is in the text or, if at is negative, in the dictionary. Which one is hard to
		// predict, so the choice is no branch.
		at := o + lit - int(binary.LittleEndian.Uint16(record[1:]))
		negative := at >> 63 // all ones or zero
		if uint((at+len(dict))&negative) > uint(lastDict) {
			break
		}
		from := unsafe.Add(texts[negative&1], at+len(dict)&negative)

		to := unsafe.Add(texts[0], o)
		copy16(to, unsafe.Add(literals, l))
		to = unsafe.Add(to, lit)
		copy16(to, from)
		copy16(unsafe.Add(to, wideCopy), unsafe.Add(from, wideCopy))
		l, o = l+lit, o+lit+length
	}
	return r, l, o
}

// copy16 copies 16 bytes.
func copy16(to, from unsafe.Pointer) { *(*[wideCopy]byte)(to) = *(*[wideCopy]byte)(from) }
