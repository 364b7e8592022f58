package lz

import "encoding/binary"

// Decode decompresses a block into dst. The length of dst is the number of bytes to decode: all of
// the text or only its beginning. dict is the dictionary of the encoder.
//
// If slices have capacity after their lengths, Decode copies more at once than it needs. It may
// overwrite up to [Slack] bytes of the capacity of dst after its length. It may also read as many
// after block and dict, without effect.
//
// A damaged block gives [ErrCorrupt] or wrong bytes. To detect all damage, a caller needs
// checksums.
func Decode(dst, block, dict []byte) error { return decode(dst, block, dict, useFastCode) }

// useFastCode makes decode leave common sequences to decodeCommon, which does not check each byte.
// Tests also run decode without it and compare the results.
const useFastCode = true

// decode does the work of Decode.
//
// Before each round of the loop, r is the offset of the next record and l that of the next literal
// in the block, and the first o bytes of dst are decoded:
//
//	2 <= r <= end <= l <= len(block), o < len(dst)
//
// except that a damaged record may move l beyond the block.
func decode(dst, block, dict []byte, fast bool) error {
	if len(dst) == 0 {
		return nil
	}

	if len(block) < 2 {
		return ErrCorrupt
	}

	end := 2 + recordBytes*int(binary.LittleEndian.Uint16(block))
	if end > len(block) {
		return ErrCorrupt
	}

	r, l, o := 2, end, 0
	for r < end {
		if fast {
			if r, l, o = decodeCommon(dst, block, dict, r, end, l, o); o >= len(dst) {
				return nil
			}
			if r == end || l > len(block) {
				break
			}
		}

		// Read the record.
		token, offset := int(block[r]), int(block[r+1])|int(block[r+2])<<8
		r += recordBytes
		lit, length := int(lengths[token]&0xff), int(lengths[token]>>8)

		// After an escape, literals and length follow as numbers. Otherwise the token encodes both.
		if token == escape {
			if l, lit = readLength(block, l, 0); lit < 0 {
				return ErrCorrupt
			}
			if l, length = readLength(block, l, minMatch); length < 0 {
				return ErrCorrupt
			}
		} else if offset < wideCopy && length > offset {
			// The copy of this match would overlap its source within wideCopy bytes. The encoder
			// writes the lengths of such a match after an escape.
			return ErrCorrupt
		}

		if lit > len(block)-l {
			return ErrCorrupt
		}

		o += copy(dst[o:], block[l:l+lit])
		l += lit
		if o == len(dst) {
			return nil
		}

		// Copy the match. The end of dst may cut it.
		if length = copyMatch(dst, dict, o, offset, length); length < 0 {
			return ErrCorrupt
		}
		if o += length; o == len(dst) {
			return nil
		}
	}

	// Copy the literals after the last match.
	if len(dst)-o > len(block)-l {
		return ErrCorrupt
	}
	copy(dst[o:], block[l:])
	return nil
}

// copyMatch copies a match of length bytes to dst[o:], from offset bytes before o. If that is
// before the start of dst, it copies from the dictionary. It stops at the end of dst. It returns
// how many bytes it copied, or -1 if the match begins before the dictionary or goes beyond its end.
func copyMatch(dst, dict []byte, o, offset, length int) int {
	// If the match begins in the dictionary, that is offset-o bytes before its end.
	if offset > o {
		at := len(dict) - (offset - o)
		if at < 0 || length > len(dict)-at {
			return -1
		}
		return copy(dst[o:], dict[at:at+length])
	}

	if offset == 0 {
		return -1
	}

	length = min(length, len(dst)-o)
	copyRepeating(dst, o, offset, length)
	return length
}

// copyRepeating copies length bytes within dst to dst[o:], from offset bytes before o. If that
// overlaps the copy, each round copies twice as much as the one before: "ab" -> "abab" ->
// "abababab".
func copyRepeating(dst []byte, o, offset, length int) {
	end := o + length
	for o < end {
		n := copy(dst[o:end], dst[o-offset:o])
		o += n
		offset += n
	}
}

// readLength reads the bytes of a length that begin at offset i of the block, and adds them to n.
// It returns the offset after them and the sum, which is -1 if the block ends before the length
// does.
func readLength(block []byte, i, n int) (next, sum int) {
	for i < len(block) {
		b := int(block[i])
		i++
		n += b
		if b != 255 {
			return i, n
		}
	}
	return i, -1
}
