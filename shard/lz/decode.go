package lz

import "encoding/binary"

// Decode decompresses a block into dst, whose length is how many bytes are
// wanted: the length of the text, or less to decode only its beginning. dict
// is the dictionary of the encoder.
//
// It copies more at once than is asked for where slices have room behind
// their lengths: up to [Slack] bytes of the capacity of dst behind its length
// are overwritten, and as much is read, to no effect, behind block and dict.
func Decode(dst, block, dict []byte) error {
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
		if r, l, o = short(dst, block, dict, r, end, l, o); o >= len(dst) {
			return nil
		}
		if r == end || l > len(block) {
			break
		}
		token, offset := int(block[r]), int(block[r+1])|int(block[r+2])<<8
		r += recordBytes
		lit, length := int(lengths[token]&0xff), int(lengths[token]>>8)
		if token == escape {
			if l, lit = more(block, l, 0); lit < 0 {
				return ErrCorrupt
			}
			if l, length = more(block, l, minMatch); length < 0 {
				return ErrCorrupt
			}
		}
		if lit > len(block)-l {
			return ErrCorrupt
		}
		o += copy(dst[o:], block[l:l+lit])
		l += lit
		if o == len(dst) {
			return nil
		}
		if length = match(dst, dict, o, offset, length); length < 0 {
			return ErrCorrupt
		}
		if o += length; o == len(dst) {
			return nil
		}
	}
	if len(dst)-o > len(block)-l {
		return ErrCorrupt
	}
	copy(dst[o:], block[l:])
	return nil
}

// match copies a match of any length and from anywhere, as far as dst goes,
// and tells how much it was; it is negative when there is no such match.
func match(dst, dict []byte, o, offset, length int) int {
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

// repeat copies length bytes from offset before o, which may overlap.
func repeat(dst []byte, o, offset, length int) {
	end := o + length
	for o < end {
		n := copy(dst[o:end], dst[o-offset:o])
		o += n
		offset += n
	}
}

// more adds a length that stands in a block at i to n; it is negative when the
// block ends in it.
func more(block []byte, i, n int) (int, int) {
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
