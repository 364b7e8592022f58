//go:build !purego

package trigram

import "golang.org/x/sys/cpu"

// classMasks sets masks, with runClasses words for each block of 64 bytes of text: which bytes of
// the block are in each run class. It needs AVX2.
//
//go:noescape
func classMasks(text *byte, blocks int, masks *uint64)

// longestRuns appends the longest run of every class in text.
func (m *runMasks) longestRuns(dst []byte, text []byte) []byte {
	if !cpu.X86.HasAVX2 || len(text) > 64*runBlocks {
		return appendRuns(dst, text)
	}

	// Copy the bytes after the last whole block into a block of zeros, which belong to no class.
	blocks, tail := len(text)/64, [64]byte{}
	if blocks > 0 {
		classMasks(&text[0], blocks, &m[0][0])
	}
	if rest := copy(tail[:], text[64*blocks:]); rest > 0 {
		classMasks(&tail[0], 1, &m[blocks][0])
		blocks++
	}

	for c := range runClasses {
		dst = append(dst, m.longestRun(blocks, c))
	}
	return dst
}
