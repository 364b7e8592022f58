//go:build !purego

package pack

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// inflateWide decompresses while at is at most lastIn and out at most lastOut,
// and tells why it stopped: 0 for want of room, 1 at the end of the block, 2
// at damage. It needs BMI2 and what a step may touch after both places, see
// [fastIn] and [fastOut].
//
//go:noescape
func inflateWide(lit, dist *uint32, src *byte, at, lastIn int, dst *byte, out, lastOut int, buf uint64, n uint) (at2, out2 int, buf2 uint64, n2 uint, state int)

// fast decompresses as long as there is room, and reports whether the block
// came to its end.
func (f *inflater) fast(dst []byte, out int, b *stream) (int, bool, error) {
	if f.plain || !cpu.X86.HasBMI2 || !cpu.X86.HasSSSE3 {
		return f.fastPortable(dst, out, b)
	}

	var state int
	b.at, out, b.buf, b.n, state = inflateWide(&f.lit[0], &f.dist[0], unsafe.SliceData(b.src), b.at, len(b.src)-fastIn,
		unsafe.SliceData(dst), out, lastOut(dst), b.buf, b.n)

	// The last step may have gone beyond the end of dst, into the room behind it.
	if state == 2 || out > len(dst) {
		return out, false, errStream
	}
	return out, state == 1, nil
}
