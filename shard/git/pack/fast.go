package pack

import "unsafe"

// How far a step of inflateFast may read and write beyond its position.
const (
	fastIn  = 32           // it reads eight bytes, three times
	fastOut = 3 + 258 + 32 // it writes three literals and a match of 258 bytes, in 16 bytes at once
)

// lastOut returns the last position of dst from which inflateFast may make a step. A step may use
// the capacity after the end of dst, so that steps make nearly all of a text. The caller must check
// with checkEnd whether a step went beyond the end.
func lastOut(dst []byte) int { return min(len(dst), cap(dst)-fastOut) }

// inflateFast decompresses a block in steps, while both slices have room for a step. It returns the
// new position in dst and whether it reached the end of the block. Before each step
//
//	at  + fastIn  <= len(src)
//	out + fastOut <= cap(dst)      out <= len(dst)
//	buf has n bits of src that were not used, n < 64, and src[at] comes next
//
// so that a step need not check any bound. A step takes at most
// 56 bits at once: three codes of literals are at most 30 bits, and two codes with a length at most
// 20 more. Then it refills the bits for the distance, which has at most 15 and 13.
func (f *inflater) inflateFast(dst []byte, out int, b *stream) (int, bool, error) {
	in, to := unsafe.Pointer(unsafe.SliceData(b.src)), unsafe.Pointer(unsafe.SliceData(dst))
	at, buf, n := b.at, b.buf, b.n
	lastIn, lastOut, lit, dist := len(b.src)-fastIn, lastOut(dst), &f.lit, &f.dist

	for at <= lastIn && out <= lastOut {
		// Refill to at least 56 bits.
		buf |= *(*uint64)(unsafe.Add(in, at)) << (n & 63)
		at += int(63-n) >> 3
		n |= 56

		// Decode up to three literals. They take at most 30 of 56 bits, so no refill is needed.
		e := lit[buf&(1<<litBits-1)]
		if e&entryLiteral != 0 {
			*(*byte)(unsafe.Add(to, out)) = byte(e >> 16)
			buf, n, out = buf>>(e&63), n-uint(e&63), out+1
			if e = lit[buf&(1<<litBits-1)]; e&entryLiteral != 0 {
				*(*byte)(unsafe.Add(to, out)) = byte(e >> 16)
				buf, n, out = buf>>(e&63), n-uint(e&63), out+1
				if e = lit[buf&(1<<litBits-1)]; e&entryLiteral != 0 {
					*(*byte)(unsafe.Add(to, out)) = byte(e >> 16)
					buf, n, out = buf>>(e&63), n-uint(e&63), out+1
					continue
				}
			}
		}

		// The entry is not common: a long code, the end of the block, or no code.
		if e&entryRare != 0 {
			if e&entryMore != 0 {
				buf, n = buf>>litBits, n-litBits
				e = lit[e>>16&0x7fff+uint32(buf&(1<<(e>>8&15)-1))]
			}

			if e&entryLiteral != 0 {
				*(*byte)(unsafe.Add(to, out)) = byte(e >> 16)
				buf, n, out = buf>>(e&63), n-uint(e&63), out+1
				continue
			}

			if e&entryRare != 0 {
				b.at, b.buf, b.n = at, buf>>(e&63), n-uint(e&63)
				if e&entryEnd == 0 || out > len(dst) {
					return out, false, errStream
				}
				return out, true, nil
			}
		}

		// Decode a match: first its length,
		length := int(e>>16) + int(buf&(1<<(e&63)-1)>>(e>>8&15))
		buf, n = buf>>(e&63), n-uint(e&63)
		buf |= *(*uint64)(unsafe.Add(in, at)) << (n & 63)
		at += int(63-n) >> 3
		n |= 56

		// then its distance.
		e = dist[buf&(1<<distBits-1)]
		if e&entryRare != 0 {
			if e&entryMore == 0 {
				return out, false, errStream
			}
			buf, n = buf>>distBits, n-distBits
			if e = dist[e>>16&0x7fff+uint32(buf&(1<<(e>>8&15)-1))]; e&entryRare != 0 {
				return out, false, errStream
			}
		}

		distance := int(e>>16) + int(buf&(1<<(e&63)-1)>>(e>>8&15))
		buf, n = buf>>(e&63), n-uint(e&63)
		if distance > out {
			return out, false, errStream
		}
		copyMatch(unsafe.Add(to, out), unsafe.Add(to, out-distance), distance, length)
		out += length
	}

	b.at, b.buf, b.n = at, buf, n
	return out, false, checkEnd(dst, out)
}

// checkEnd returns an error if inflateFast has written beyond the end of dst.
func checkEnd(dst []byte, out int) error {
	if out > len(dst) {
		return errStream
	}
	return nil
}

// copyMatch copies length bytes from distance bytes before to, and up to 15 more. If distance is
// less than length, it repeats the bytes that it writes.
func copyMatch(to, from unsafe.Pointer, distance, length int) {
	if distance >= 16 {
		for k := 0; k < length; k += 16 {
			*(*[16]byte)(unsafe.Add(to, k)) = *(*[16]byte)(unsafe.Add(from, k))
		}
		return
	}

	// At this distance steps of eight bytes do not overlap.
	if distance >= 8 {
		for k := 0; k < length; k += 8 {
			*(*uint64)(unsafe.Add(to, k)) = *(*uint64)(unsafe.Add(from, k))
		}
		return
	}

	for k := range length {
		*(*byte)(unsafe.Add(to, k)) = *(*byte)(unsafe.Add(from, k))
	}
}
