//go:build !amd64 || purego

package match

// findPairs is findPairsPortable.
func findPairs(dst *[64]uint64, a, b []byte, blocks int, p *pair) uint64 {
	return findPairsPortable(dst, a, b, blocks, p)
}

// findSet is findSetPortable.
func findSet(dst *[64]uint64, src []byte, blocks int, s *byteSet) uint64 {
	return findSetPortable(dst, src, blocks, s)
}

// findTriples is findTriplesPortable.
func findTriples(dst *[64]uint64, src []byte, blocks int, t *[3]nibbles) uint64 {
	return findTriplesPortable(dst, src, blocks, t)
}
