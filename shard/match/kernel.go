package match

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// pair is two bytes at a fixed distance, b1 and b2. A byte of text matches b1 if it is b1 after or-ing
// it with f1, which is 0x20 for a letter that matches in either case, else 0. f2 is the same for b2.
type pair struct{ b1, f1, b2, f2 byte }

// nibbles maps each byte to a set of eight buckets, one bit each. A byte is in the buckets that both
// lo has for its lower four bits and hi for its upper four. So it may report too many buckets: with
// 'a' (0x61) and 'r' (0x72) in a bucket, 'b' (0x62) and 'q' (0x71) seem to be in it too.
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

// has reports whether the set has a byte.
func (s *byteSet) has(b byte) bool {
	return b < 0x80 && s.table.buckets(b) != 0 || b >= 0x80 && s.high != 0
}

// The portable kernels look at eight bytes of text at once, in a word. ones has the lowest bit of
// each byte, tops the highest.
const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)

// wordAt returns the eight bytes at 8*i of a block.
func wordAt(block *[64]byte, i int) uint64 { return binary.LittleEndian.Uint64(block[8*(i&7):]) }

// packBits returns the lowest bits of the eight bytes of w in one byte. All other bits of w must be
// zero: each of the eight summands of the product moves one bit to its place in the highest byte.
func packBits(w uint64) uint64 { return w * 0x0102040810204080 >> 56 }

// bitsOfZeros returns bit i if byte i of w is zero.
func bitsOfZeros(w uint64) uint64 {
	// Adding 0x7f to the lower seven bits of a byte sets its highest one, unless they are all zero.
	nonZero := (w&^tops + ^uint64(tops)) | w
	return packBits(^nonZero & tops >> 7)
}

// findPairsPortable sets bit i of dst[k] if the pair is at byte 64k+i of a and b. Bit k of the
// result says that dst[k] is not zero.
func findPairsPortable(dst *[64]uint64, a, b []byte, blocks int, p *pair) (any uint64) {
	if p.f1 == 0 {
		return findExactPairs(dst, a[:64*blocks], b, p)
	}

	b1, f1, b2, f2 := uint64(p.b1)*ones, uint64(p.f1)*ones, uint64(p.b2)*ones, uint64(p.f2)*ones
	for k := range blocks {
		first, second := (*[64]byte)(a[64*k:]), (*[64]byte)(b[64*k:])

		// A byte that is zero in w is a hit. Subtracting one sets the highest bit of the lowest zero byte.
		var some uint64
		for i := range 8 {
			w := (wordAt(first, i) | f1 ^ b1) | (wordAt(second, i) | f2 ^ b2)
			some |= (w - ones) &^ w
		}

		var found uint64
		if some&tops != 0 {
			for i := range 8 {
				w := (wordAt(first, i) | f1 ^ b1) | (wordAt(second, i) | f2 ^ b2)
				found = found>>8 | bitsOfZeros(w)<<56
			}
		}
		if dst[k] = found; found != 0 {
			any |= 1 << k
		}
	}
	return any
}

// findExactPairs is findPairsPortable for a first byte that has no other case. It searches for that
// byte, which is the rarer one and which most machines find fast.
func findExactPairs(dst *[64]uint64, a, b []byte, p *pair) (any uint64) {
	clear(dst[:len(a)/64])
	for i := 0; ; i++ {
		skip := bytes.IndexByte(a[i:], p.b1)
		if skip < 0 {
			return any
		}
		if i += skip; b[i]|p.f2 == p.b2 {
			dst[i>>6] |= 1 << (i & 63)
			any |= 1 << (i >> 6)
		}
	}
}

// asciiRange is a range of bytes below 0x80, prepared for words of eight bytes. Adding from to a word
// sets the highest bit of each byte that is in the range or above it; adding after sets that of each
// byte above it.
type asciiRange struct{ from, after uint64 }

// ranges appends the ranges of the bytes of the set that are below 0x80.
func (s *byteSet) ranges(list []asciiRange) []asciiRange {
	// Bit i of row h says that the set has the byte 16h+i.
	lo1, lo2 := binary.LittleEndian.Uint64(s.table.lo[:8]), binary.LittleEndian.Uint64(s.table.lo[8:])
	var rows [2]uint64
	for h := range 8 {
		rows[h/4] |= (packBits(lo1>>h&ones) | packBits(lo2>>h&ones)<<8) << (h % 4 * 16)
	}

	for half, row := range rows {
		for row != 0 {
			first := bits.TrailingZeros64(row)
			end := first + bits.TrailingZeros64(^(row >> first))
			row &^= 1<<end - 1
			first, end = first+64*half, end+64*half
			list = append(list, asciiRange{from: uint64(0x80-first) * ones, after: uint64(0x80-end) * ones})
		}
	}
	return list
}

// findSetPortable sets bit i of dst[k] if byte 64k+i is in the set.
func findSetPortable(dst *[64]uint64, src []byte, blocks int, s *byteSet) (any uint64) {
	var buf [8]asciiRange
	ranges := s.ranges(buf[:0])
	for k := range blocks {
		block := (*[64]byte)(src[64*k:])
		var found uint64
		for i := 0; i < 8; i += 4 {
			// Compare four words with each range, so that a range is read once for 32 bytes.
			w0, w1, w2, w3 := wordAt(block, i), wordAt(block, i+1), wordAt(block, i+2), wordAt(block, i+3)
			l0, l1, l2, l3 := w0&^tops, w1&^tops, w2&^tops, w3&^tops
			var in0, in1, in2, in3 uint64
			for _, r := range ranges {
				in0 |= (l0 + r.from) &^ (l0 + r.after)
				in1 |= (l1 + r.from) &^ (l1 + r.after)
				in2 |= (l2 + r.from) &^ (l2 + r.after)
				in3 |= (l3 + r.from) &^ (l3 + r.after)
			}
			in0, in1, in2, in3 = in0&^w0|w0&s.high, in1&^w1|w1&s.high, in2&^w2|w2&s.high, in3&^w3|w3&s.high
			found = found>>32 | (packBits(in0&tops>>7)|packBits(in1&tops>>7)<<8|packBits(in2&tops>>7)<<16|packBits(in3&tops>>7)<<24)<<32
		}

		if dst[k] = found; found != 0 {
			any |= 1 << k
		}
	}
	return any
}

// bucketTable returns the buckets of each byte.
func (n *nibbles) bucketTable() (table [256]byte) {
	lo1, lo2 := binary.LittleEndian.Uint64(n.lo[:8]), binary.LittleEndian.Uint64(n.lo[8:])
	for h, buckets := range n.hi {
		binary.LittleEndian.PutUint64(table[16*h:], lo1&(uint64(buckets)*ones))
		binary.LittleEndian.PutUint64(table[16*h+8:], lo2&(uint64(buckets)*ones))
	}
	return table
}

// findTriplesPortable sets bit i of dst[k] if the three bytes from 64k+i on have a common bucket,
// each in its own table.
func findTriplesPortable(dst *[64]uint64, src []byte, blocks int, t *[3]nibbles) (any uint64) {
	t0, t1, t2 := t[0].bucketTable(), t[1].bucketTable(), t[2].bucketTable()
	for k := range blocks {
		block := (*[66]byte)(src[64*k:]) // the last two positions read beyond the 64 bytes
		var found uint64
		for i := 0; i < 64; i += 8 {
			b := (*[10]byte)(block[i:])
			w := uint64(t0[b[0]]&t1[b[1]]&t2[b[2]]) | uint64(t0[b[1]]&t1[b[2]]&t2[b[3]])<<8 |
				uint64(t0[b[2]]&t1[b[3]]&t2[b[4]])<<16 | uint64(t0[b[3]]&t1[b[4]]&t2[b[5]])<<24 |
				uint64(t0[b[4]]&t1[b[5]]&t2[b[6]])<<32 | uint64(t0[b[5]]&t1[b[6]]&t2[b[7]])<<40 |
				uint64(t0[b[6]]&t1[b[7]]&t2[b[8]])<<48 | uint64(t0[b[7]]&t1[b[8]]&t2[b[9]])<<56
			if w != 0 {
				found |= (^bitsOfZeros(w) & 0xff) << i
			}
		}

		if dst[k] = found; found != 0 {
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
	any    uint64                // bit k is set if bits[k] is not zero
	blocks int                   // size of the next window, in blocks of 64 bytes
	bits   [64]uint64            // candidates of the window
	regs   [][64]uint64          // for a program: its registers
	carry  []uint64              // for a program: a carry by slot
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

			if later := c.any &^ (2<<(at>>6) - 1); later != 0 {
				k := bits.TrailingZeros64(later)
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
// because many texts are short, and often a match comes early; later windows have up to 4 KiB. The
// last window goes beyond the end of the text, as if newlines followed.
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

	// Copy the text from here on and append newlines, because fill reads whole blocks and reach
	// bytes after them.
	n := copy(c.tail[:], c.text[from:])
	blocks := n>>6 + 1
	copy(c.tail[n:blocks<<6+c.f.reach()], newlines[:])
	c.any = c.f.fill(c, c.tail[:], blocks, follows)
	c.end = len(c.text) + 1
}
