package lz

import "encoding/binary"

// Decode decompresses a block into dst, whose length is how many bytes are wanted: all
// of the text, or only its beginning. dict is the dictionary of the encoder.
//
// Where slices have room after their lengths, more is copied at once than is asked
// for: up to [Slack] bytes of the capacity of dst after its length are overwritten,
// and as many are read, to no effect, after block and dict.
//
// A damaged block gives [ErrCorrupt] or wrong bytes: whoever must know keeps
// checksums.
func Decode(dst, block, dict []byte) error { return decode(dst, block, dict, true) }

// decode is Decode. With fast, common sequences are decoded by short, which is assembly
// on amd64; without, it is what runs on any machine, and what tests compare with.
//
// Before each record r of the loop, with o bytes decoded and l the place of the next
// literal,
//
//	2 <= r <= end <= l <= len(block), o < len(dst), dst[:o] = text[:o]
//
// except that l may be beyond the block after a damaged record.
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

		// What the record says.
		token, offset := int(block[r]), int(block[r+1])|int(block[r+2])<<8
		r += recordBytes
		lit, length := int(lengths[token]&0xff), int(lengths[token]>>8)

		// An escape: literals and length follow as numbers, else they are in the token.
		if token == escape {
			if l, lit = more(block, l, 0); lit < 0 {
				return ErrCorrupt
			}
			if l, length = more(block, l, minMatch); length < 0 {
				return ErrCorrupt
			}
		} else if offset < wide && length > offset {
			return ErrCorrupt // it would overlap its own copy: the encoder writes it in full
		}

		if lit > len(block)-l {
			return ErrCorrupt
		}

		o += copy(dst[o:], block[l:l+lit])
		l += lit
		if o == len(dst) {
			return nil
		}

		// The match: it may be cut by the end of the text.
		if length = match(dst, dict, o, offset, length); length < 0 {
			return ErrCorrupt
		}
		if o += length; o == len(dst) {
			return nil
		}
	}

	// The literals after the last match.
	if len(dst)-o > len(block)-l {
		return ErrCorrupt
	}
	copy(dst[o:], block[l:])
	return nil
}

// match copies a match of any length from anywhere, as far as dst goes, and returns how
// much it copied; negative if there is no such match.
func match(dst, dict []byte, o, offset, length int) int {
	// It begins in the dictionary: offset-o bytes before the end of that.
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

// repeat copies length bytes from offset before o. Where they overlap their copy, the
// part that repeats doubles with each round: "ab" -> "abab" -> "abababab".
func repeat(dst []byte, o, offset, length int) {
	end := o + length
	for o < end {
		n := copy(dst[o:end], dst[o-offset:o])
		o += n
		offset += n
	}
}

// more adds up a length that stands in a block at i, from n on, and returns the place
// after it; the sum is negative if the block ends in it.
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
