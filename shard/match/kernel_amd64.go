//go:build !purego

package match

import "golang.org/x/sys/cpu"

// The kernels take 1 to 64 blocks of 64 bytes and set bit i of dst[k] if they find something at
// byte 64k+i. Bit k of the result says that dst[k] is not zero. They read every block whole.

//go:noescape
func pairAVX2(dst *uint64, a, b *byte, blocks int, b1, f1, b2, f2 byte) (any uint64)

//go:noescape
func setAVX2(dst *uint64, src *byte, blocks int, t *nibbles, high uint64) (any uint64)

//go:noescape
func tripleAVX2(dst *uint64, src *byte, blocks int, t *[3]nibbles) (any uint64)

// findPairs is findPairsPortable, with the instructions of AVX2 if there are any.
func findPairs(dst *[64]uint64, a, b []byte, blocks int, p *pair) uint64 {
	_, _ = a[64*blocks-1], b[64*blocks-1]
	if !cpu.X86.HasAVX2 {
		return findPairsPortable(dst, a, b, blocks, p)
	}
	return pairAVX2(&dst[0], &a[0], &b[0], blocks, p.b1, p.f1, p.b2, p.f2)
}

// findSet is findSetPortable, with the instructions of AVX2 if there are any.
func findSet(dst *[64]uint64, src []byte, blocks int, s *byteSet) uint64 {
	_ = src[64*blocks-1]
	if !cpu.X86.HasAVX2 {
		return findSetPortable(dst, src, blocks, s)
	}
	return setAVX2(&dst[0], &src[0], blocks, &s.table, s.high)
}

// findTriples is findTriplesPortable, with the instructions of AVX2 if there are any.
func findTriples(dst *[64]uint64, src []byte, blocks int, t *[3]nibbles) uint64 {
	_ = src[64*blocks+1]
	if !cpu.X86.HasAVX2 {
		return findTriplesPortable(dst, src, blocks, t)
	}
	return tripleAVX2(&dst[0], &src[0], blocks, t)
}
