package lz

import "encoding/binary"

// Decode decompresses a block into dst, whose length is the number of wanted bytes: all of the text
// or only its beginning. dict is the dictionary of the encoder.
//
// If slices have capacity after their lengths, Decode copies more at once than it needs. It may
// overwrite up to [Slack] bytes of the capacity of dst after its length. It may also read as many
// after block and dict, without effect.
//
// A damaged block gives [ErrCorrupt] or wrong bytes. A caller that must know keeps checksums.
func Decode(dst, block, dict []byte) error { return decode(dst, block, dict, true) }

// decode does the work of Decode. With fast, short decodes common sequences; it is assembly on
// amd64. Without fast it is the portable way, with which tests compare.
//
// Before each record r of the loop, with o decoded bytes and l the offset of the next literal,
//
//	2 <= r <= end <= l <= len(block), o < len(dst), dst[:o] = text[:o]
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
			if r, l, o = short(dst, block, dict, r, end, l, o); o >= len(dst) {
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

		// After an escape, literals and length follow as numbers. Otherwise the token has them.
		if token == escape {
			if l, lit = more(block, l, 0); lit < 0 {
				return ErrCorrupt
			}
			if l, length = more(block, l, minMatch); length < 0 {
				return ErrCorrupt
			}
		} else if offset < wide && length > offset {
			return ErrCorrupt // it would overlap its own copy, so the encoder writes it in full
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
		if length = match(dst, dict, o, offset, length); length < 0 {
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

// match copies a match of any length from anywhere, but not beyond the end of dst. It returns how
// much it copied; negative if there is no such match.
func match(dst, dict []byte, o, offset, length int) int {
	// The match begins in the dictionary, offset-o bytes before its end.
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
	repeat(dst, o, offset, length)
	return length
}

// repeat copies length bytes from offset before o. If the match overlaps its copy, the repeated
// part doubles with each round: "ab" -> "abab" -> "abababab".
func repeat(dst []byte, o, offset, length int) {
	end := o + length
	for o < end {
		n := copy(dst[o:end], dst[o-offset:o])
		o += n
		offset += n
	}
}

// more reads the rest of a length at offset i of a block and adds it to n. It returns the offset
// after it. The sum is negative if the block ends inside.
func more(block []byte, i, n int) (next, sum int) {
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
