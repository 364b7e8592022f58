package lz

import "unsafe"

// wide is what the fast ways of copying read and write at once. They are taken
// only where that many bytes are left on both sides, because beyond dst lies
// text of others and beyond block is unknown land.
const wide = 16

// Decode decompresses a block into dst, whose length is how many bytes are
// wanted: the length of the text, or less to decode only its beginning. dict
// is the dictionary of the encoder. Nothing is written beyond dst.
func Decode(dst, block, dict []byte) error {
	if len(dst) == 0 {
		return nil
	}
	if len(block) == 0 {
		return ErrCorrupt
	}
	in, out := unsafe.Pointer(&block[0]), unsafe.Pointer(&dst[0])
	far := unsafe.Pointer(unsafe.SliceData(dict))
	i, o, n, m := 0, 0, len(block), len(dst)
	for {
		if i, o = short(dst, block, dict, i, o); i >= n {
			return ErrCorrupt
		}
		token := int(*(*byte)(unsafe.Add(in, i)))
		i++
		lit := token >> 4
		if lit < 15 && i+wide <= n && o+wide <= m {
			copyWide(unsafe.Add(out, o), unsafe.Add(in, i))
		} else {
			if lit == 15 {
				if i, lit = more(block, i, lit); lit < 0 {
					return ErrCorrupt
				}
			}
			if lit > n-i {
				return ErrCorrupt
			}
			lit = min(lit, m-o)
			copy(dst[o:o+lit], block[i:i+lit])
		}
		i, o = i+lit, o+lit
		if o >= m {
			return nil
		}
		if i+2 > n {
			return ErrCorrupt
		}
		offset := int(*(*byte)(unsafe.Add(in, i))) | int(*(*byte)(unsafe.Add(in, i+1)))<<8
		i += 2
		length := token & 15
		if length == 15 {
			if i, length = more(block, i, length); length < 0 {
				return ErrCorrupt
			}
		}
		length += minMatch
		// Where the match is is not to be predicted: no branch for it.
		from, at, last := out, o-offset, m-wide
		if at < 0 {
			from, at, last = far, at+len(dict), len(dict)-wide
		}
		if length <= wide && offset >= wide && at >= 0 && at <= last && o+wide <= m {
			copyWide(unsafe.Add(out, o), unsafe.Add(from, at))
		} else if length = match(dst, dict, o, offset, length); length < 0 {
			return ErrCorrupt
		}
		o += length
		if o >= m {
			return nil
		}
	}
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
	if offset >= wide && o+length+wide <= len(dst) {
		from, to := unsafe.Pointer(&dst[o-offset]), unsafe.Pointer(&dst[o])
		for k := 0; k < length; k += wide {
			copyWide(unsafe.Add(to, k), unsafe.Add(from, k))
		}
		return length
	}
	length = min(length, len(dst)-o)
	repeat(dst, o, offset, length)
	return length
}

func copyWide(to, from unsafe.Pointer) {
	*(*[wide]byte)(to) = *(*[wide]byte)(from)
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

// more reads the rest of a length; it is negative when the block ends in it.
func more(block []byte, i, length int) (int, int) {
	for i < len(block) {
		b := int(block[i])
		i++
		length += b
		if b != 255 {
			return i, length
		}
	}
	return i, -1
}
