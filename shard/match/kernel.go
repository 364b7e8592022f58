package match

import (
	"bytes"
	"math/bits"
)

// pair is two bytes at a fixed distance. Each is compared under a mask, which is set if a letter
// matches in either case.
type pair struct{ b1, f1, b2, f2 byte }

// nibbles maps each byte to a set of eight buckets, one bit each: those that lo has for the lower
// four bits of the byte and hi for the upper four. So it may report too many buckets: with 'a'
// (0x61) and 'r' (0x72) in a bucket, 'b' (0x62) and 'q' (0x71) seem to be in it too.
type nibbles struct{ lo, hi [16]byte }

// add puts a byte into a bucket.
func (n *nibbles) add(b, bucket byte) {
	n.lo[b&15] |= bucket
	n.hi[b>>4] |= bucket
}

// buckets returns the buckets of a byte.
func (n *nibbles) buckets(b byte) byte { return n.lo[b&15] & n.hi[b>>4] }

// byteSet is an exact set of bytes below 0x80, with either all bytes from 0x80 on or none. Bytes
// with the same upper four bits share a bucket, so there are no false members.
type byteSet struct {
	table nibbles
	high  uint64 // all ones if it has the bytes from 0x80 on, else 0
}

// add adds b to the set. A byte from 0x80 on adds all of them, because the set cannot tell them
// apart.
func (s *byteSet) add(b byte) {
	if b >= 0x80 {
		s.high = ^uint64(0)
		return
	}
	s.table.add(b, 1<<(b>>4))
}

func (s *byteSet) has(b byte) bool {
	return b < 0x80 && s.table.buckets(b) != 0 || b >= 0x80 && s.high != 0
}

// findPairsPortable sets bit i of dst[k] if the pair is at byte 64k+i of a and b. Bit k of the
// result says that dst[k] is not zero.
func findPairsPortable(dst *[64]uint64, a, b []byte, blocks int, p *pair) (any uint64) {
	clear(dst[:blocks])

	// Search for b1, and for its capital if case is ignored.
	variants := [2]byte{p.b1, p.b1 &^ p.f1}
	n := 1
	if p.f1 != 0 {
		n = 2
	}

	for _, want := range variants[:n] {
		for i := 0; i < 64*blocks; i++ {
			skip := bytes.IndexByte(a[i:64*blocks], want)
			if skip < 0 {
				break
			}
			i += skip

			if b[i]|p.f2 == p.b2 {
				dst[i>>6] |= 1 << (i & 63)
				any |= 1 << (i >> 6)
			}
		}
	}
	return any
}

// findSetPortable sets bit i of dst[k] if byte 64k+i is in the set. Before each k,
//
//	dst[:k] is done, and bit j of any = (dst[j] != 0) for j < k
func findSetPortable(dst *[64]uint64, src []byte, blocks int, s *byteSet) (any uint64) {
	for k := range blocks {
		// Each word is written whole, so dst need not be cleared before.
		var w uint64
		for i, b := range src[64*k : 64*k+64] {
			if s.has(b) {
				w |= 1 << i
			}
		}

		dst[k] = w
		if w != 0 {
			any |= 1 << k
		}
	}
	return any
}

// findTriplesPortable sets bit i of dst[k] if the three bytes from 64k+i on have a common bucket,
// each in its own table.
func findTriplesPortable(dst *[64]uint64, src []byte, blocks int, t *[3]nibbles) (any uint64) {
	for k := range blocks {
		var w uint64
		block := src[64*k : 64*k+66] // the last two positions read beyond the 64 bytes
		for i := range 64 {
			if t[0].buckets(block[i])&t[1].buckets(block[i+1])&t[2].buckets(block[i+2]) != 0 {
				w |= 1 << i
			}
		}

		dst[k] = w
		if w != 0 {
			any |= 1 << k
		}
	}
	return any
}

// A finder fills a window with candidates. It may find too many candidates, but never too few.
type finder interface {
	// fill sets bit i of c.bits[k] for a candidate at byte 64k+i of src, and bit k of the result if
	// bits[k] is not zero. src begins at offset c.base of the text; it has blocks of 64 bytes, and
	// reach more bytes. follows says that it begins where the last filled window ended.
	fill(c *cursor, src []byte, blocks int, follows bool) (any uint64)
	// reach is how many bytes after its last block fill reads, at most maxReach.
	reach() int
}

const maxReach = 128

// newlines replaces the bytes after the end of a text.
var newlines = [64 + maxReach]byte(bytes.Repeat([]byte{'\n'}, 64+maxReach))

// cursor walks the candidates that a finder finds in a text, window by window.
type cursor struct {
	text   []byte
	f      finder
	base   int                   // start of the window
	end    int                   // end of the window
	any    uint64                // bit k: bits[k] is not zero
	blocks int                   // size of the next window, in blocks of 64 bytes
	bits   [64]uint64            // candidates of the window
	regs   [][64]uint64          // for a program
	carry  []uint64              // for a program
	tail   [64*3 + maxReach]byte // the end of the text with newlines after it
}

// reset starts with a new text.
func (c *cursor) reset(text []byte, f finder) {
	c.text, c.f = text, f
	c.base, c.end, c.any = 0, -1, 0
	c.blocks = 4
}

// next returns the first candidate at from or later, or -1.
func (c *cursor) next(from int) int {
	for {
		if from >= c.base && from < c.end { // inside the window
			at := from - c.base
			if w := c.bits[at>>6] >> (at & 63); w != 0 {
				return from + bits.TrailingZeros64(w)
			}

			if rest := c.any &^ (2<<(at>>6) - 1); rest != 0 {
				k := bits.TrailingZeros64(rest)
				return c.base + k<<6 + bits.TrailingZeros64(c.bits[k])
			}

			from = c.end
		}

		if from > len(c.text) {
			return -1
		}
		c.fillWindow(from)
	}
}

// fillWindow finds the candidates of a window that starts at from. The first window has 256 bytes,
// later ones up to 4 KiB, because many texts are short, and often a match comes early. The last
// window goes beyond the end of the text, as if newlines followed.
func (c *cursor) fillWindow(from int) {
	follows := from == c.end
	c.base = from

	// Take whole blocks, as long as the text also has the reach bytes after them.
	if n := (len(c.text) - from - c.f.reach()) >> 6; n > 0 {
		n = min(n, c.blocks)
		c.blocks = min(64, c.blocks*4)
		c.any = c.f.fill(c, c.text[from:], n, follows)
		c.end = from + n<<6
		return
	}

	// Copy the rest of the text and append newlines, because fill reads whole blocks and reach
	// bytes after them.
	n := copy(c.tail[:], c.text[from:])
	blocks := n>>6 + 1
	copy(c.tail[n:blocks<<6+c.f.reach()], newlines[:])
	c.any = c.f.fill(c, c.tail[:], blocks, follows)
	c.end = len(c.text) + 1
}
