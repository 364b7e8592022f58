//go:build !purego

package lz

import "unsafe"

// decodeShort decodes sequences from record r on, while o is at most lastOut, l is at most lastLit,
// and a match in the dictionary begins at most at span. It stops before the first sequence that
// may read or write beyond a slice, or that has an escape, and returns the new r, l and o.
//
//go:noescape
func decodeShort(dst *byte, o, lastOut int, block *byte, r, end, l, lastLit int, dict *byte, dictLen, span int, lengths *[256]uint16) (r2, l2, o2 int)

// decodeCommon decodes common sequences with decodeShort, which copies wideCopy bytes at once: it
// must stop before such a copy could pass the capacity of a slice. r, l and o are as in decode; it
// returns their new values.
func decodeCommon(dst, block, dict []byte, r, end, l, o int) (int, int, int) {
	lastOut, lastLit := min(len(dst)-1, cap(dst)-Slack), cap(block)-2*wideCopy
	if o > lastOut || l > lastLit {
		return r, l, o
	}

	// If the dictionary is too small for a match, pass an empty one.
	dictStart, dictLen, lastDict := unsafe.SliceData(dict), len(dict), min(len(dict)-1, cap(dict)-2*wideCopy)
	if lastDict < 0 {
		dictStart, dictLen, lastDict = &dst[0], 0, 0
	}
	return decodeShort(&dst[0], o, lastOut, &block[0], r, end, l, lastLit, dictStart, dictLen, lastDict, &lengths)
}
