package pack

import (
	"encoding/binary"
	"math/bits"
	"strings"
)

// For each commit, the commit graph has a Bloom filter of the paths that the commit changed
// compared with its first parent, and of the directories above them. A path sets these bits in a
// filter of size bits; the file gives the number of hashes:
//
//	(murmur3(seed1, path) + n * murmur3(seed2, path)) mod size     0 <= n < hashes

// PathKey has the hashes of a path with which [Graph.Unchanged] looks it up in filters: by version
// of the filter (1 or 2), the two hashes of the path and of each directory above it.
type PathKey [3][][2]uint32

// NewPathKey returns the key of a path, which has no slash at its ends.
func NewPathKey(path string) *PathKey {
	k := &PathKey{}
	for {
		// Each prefix of the path that ends at a slash has two hashes in either version.
		for version := 1; version <= 2; version++ {
			k[version] = append(k[version], [2]uint32{
				murmur3(0x293ae76f, path, version == 1), murmur3(0x7e646e2c, path, version == 1),
			})
		}

		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return k
		}
		path = path[:i]
	}
}

// Unchanged reports whether a path is certainly the same in the commit at pos as in its first
// parent. False means unknown.
func (g *Graph) Unchanged(pos uint32, k *PathKey) bool {
	l, i := g.findLayer(pos)
	if l.ends == nil {
		return false
	}

	// A filter begins where the one before ends.
	from, to := uint32(0), binary.BigEndian.Uint32(l.ends[4*i:])
	if i > 0 {
		from = binary.BigEndian.Uint32(l.ends[4*i-4:])
	}

	if from >= to || int(to) > len(l.filters) {
		return false // the commit has no filter
	}

	filter := l.filters[from:to]
	size := uint64(len(filter)) * 8

	// A bit that is not set proves that the path is not in the filter.
	for _, h := range k[l.version] {
		for n := range l.hashes {
			bit := uint64(h[0]+n*h[1]) % size
			if filter[bit/8]&(1<<(bit%8)) == 0 {
				return true
			}
		}
	}
	return false
}

// murmur3 is the hash of the filters. With signed it reads bytes as signed numbers, as the first
// version of the filters does.
func murmur3(seed uint32, s string, signed bool) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	at := func(i int) uint32 {
		if signed {
			return uint32(int32(int8(s[i])))
		}
		return uint32(s[i])
	}
	mix := func(k uint32) uint32 { return bits.RotateLeft32(k*c1, 15) * c2 }

	// Mix four bytes at a time.
	i := 0
	for ; i+4 <= len(s); i += 4 {
		seed ^= mix(at(i) | at(i+1)<<8 | at(i+2)<<16 | at(i+3)<<24)
		seed = bits.RotateLeft32(seed, 13)*5 + 0xe6546b64
	}

	// Mix the last bytes, at most three.
	var k uint32
	switch len(s) - i {
	case 3:
		k ^= at(i+2) << 16
		fallthrough
	case 2:
		k ^= at(i+1) << 8
		fallthrough
	case 1:
		k ^= at(i)
		seed ^= mix(k)
	}

	// Mix the length, then all bits once more.
	seed ^= uint32(len(s))
	seed = (seed ^ seed>>16) * 0x85ebca6b
	seed = (seed ^ seed>>13) * 0xc2b2ae35
	return seed ^ seed>>16
}
