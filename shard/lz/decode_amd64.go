package lz

import "unsafe"

// decodeShort decodes sequences of the common kind: fewer than 15 literals, a
// match of fewer than 19 bytes from at least 16 before, as long as o is at
// most last, i at most lastIn, and a match in the dictionary begins at most at
// lastDict. It stops before the first sequence that is not, and tells where.
//
//go:noescape
func decodeShort(dst *byte, o, last int, block *byte, i, lastIn int, dict *byte, dictLen, lastDict int) (i2, o2 int)

// short is decodeShort with the room that its wide copies need: 48 bytes from
// o on in dst, 20 from i on in block, 32 in dict.
func short(dst, block, dict []byte, i, o int) (int, int) {
	if len(dst)-o < 48 || len(block)-i < 20 {
		return i, o
	}
	far, size, last := unsafe.SliceData(dict), len(dict), len(dict)-32
	if last < 0 {
		far, size, last = &dst[0], 0, 0
	}
	return decodeShort(&dst[0], o, len(dst)-48, &block[0], i, len(block)-20, far, size, last)
}
