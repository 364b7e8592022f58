//go:build !purego

package lz

import "unsafe"

// decodeShort decodes sequences from record r on, as long as out is at most lastOut, l
// at most lastLit, and a match in the dictionary begins at most at span. It stops before
// the first sequence that needs more care, and returns where it is.
//
//go:noescape
func decodeShort(dst *byte, o, lastOut int, block *byte, r, end, l, lastLit int, dict *byte, dictLen, span int, lengths *[256]uint16) (r2, l2, o2 int)

// short calls decodeShort with the limits that its wide copies need.
func short(dst, block, dict []byte, r, end, l, o int) (int, int, int) {
	lastOut, lastLit := min(len(dst)-1, cap(dst)-Slack), cap(block)-2*wide
	if o > lastOut || l > lastLit {
		return r, l, o
	}
	far, size, span := unsafe.SliceData(dict), len(dict), min(len(dict)-1, cap(dict)-2*wide)
	if span < 0 { // the dictionary is too small for a match here
		far, size, span = &dst[0], 0, 0
	}
	return decodeShort(&dst[0], o, lastOut, &block[0], r, end, l, lastLit, far, size, span, &lengths)
}
