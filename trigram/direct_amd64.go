//go:build !purego

package trigram

import "golang.org/x/sys/cpu"

// classify writes the class of each byte of text, blocks of 32 bytes, and returns
// whether any is escape. It needs AVX2.
//
//go:noescape
func classify(classes, text *byte, blocks int) (escapes uint32)

// distinctNumbers writes the numbers of the n trigrams that begin at classes and are new
// in this epoch, and marks them. It needs AVX2 and n of at least 16, and reads 32
// classes beyond n.
//
//go:noescape
func distinctNumbers(ids *uint32, classes *byte, n int, seen *uint8, epoch uint8) (count int)

// direct is the fast way: right unless the window has an escape, which it reports.
func (t *tables) direct(ids []uint32, window []byte) (n int, escapes uint32) {
	// What the assembly takes for granted; the portable way does for the rest.
	n = len(window) - 2
	if !cpu.X86.HasAVX2 || n < 16 || len(window) > longestWindow || len(ids) < len(window) {
		return t.directPortable(ids, window)
	}

	blocks := len(window) / 32
	if blocks > 0 {
		escapes = classify(&t.classes[0], &window[0], blocks)
	}

	// Padded with blanks, which are no escape. The trigrams that they make are beyond n.
	if rest := window[32*blocks:]; len(rest) > 0 {
		var tail [32]byte
		for i := copy(tail[:], rest); i < len(tail); i++ {
			tail[i] = ' '
		}
		escapes |= classify(&t.classes[32*blocks], &tail[0], 1)
	}

	if escapes != 0 {
		return 0, escape
	}
	return distinctNumbers(&ids[0], &t.classes[0], n, &t.seen[0], t.epoch), 0
}

// dealOut is dealOutPortable in assembly.
//
//go:noescape
func dealOut(ids *uint32, n int, hot *uint16, word *uint64, bit uint64, log *uint32) (logged int)
