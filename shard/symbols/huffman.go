package symbols

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/shoalsearch/shoal/shard/file"
)

// In the columns of a .symbols file some bytes are much more frequent than others. They are
// written in Huffman codes, one code for a section, so that a few hundred bytes can be read
// alone. With a: 0, b: 10, c: 11 (the first bit is the lowest),
//
//	"abac"   0, 10, 0, 11   ->   bits 0 1 0 0 1 1 from the lowest up   ->   byte 0x32

const (
	codeBits  = 11          // bits of the longest code
	codeBytes = 1 << 8 >> 1 // bytes of the written lengths of all codes: half a byte each
)

// huffmanCode has the code of each byte, whose first bit is the lowest.
type huffmanCode struct {
	length [1 << 8]uint8 // 0: the byte does not occur
	bits   [1 << 8]uint16
}

// newHuffmanCode makes a code for bytes with these counts.
func newHuffmanCode(counts *[1 << 8]int) *huffmanCode {
	c := &huffmanCode{}
	c.setLengths(counts)

	next := firstCodes(&c.length)
	for b, n := range c.length {
		if n > 0 {
			c.bits[b] = reverseBits(next[n], n)
			next[n]++
		}
	}
	return c
}

// setLengths sets the lengths of the codes by Huffman's algorithm: it merges the two rarest trees
// until one is left. Each merge makes the codes of their bytes one bit longer. It shortens codes
// above codeBits.
func (c *huffmanCode) setLengths(counts *[1 << 8]int) {
	type tree struct {
		count int
		bytes []byte
	}

	// Begin with a tree of one leaf for each byte that occurs.
	var trees []tree // sorted by count, the rarest last
	for b, n := range counts {
		if n > 0 {
			trees = append(trees, tree{n, []byte{byte(b)}})
		}
	}
	byCount := func(a, b tree) int { return cmp.Compare(b.count, a.count) }
	slices.SortStableFunc(trees, byCount)

	// A single byte gets a code of one bit.
	if len(trees) == 1 {
		c.length[trees[0].bytes[0]] = 1
	}

	for len(trees) > 1 {
		a, b := trees[len(trees)-2], trees[len(trees)-1]
		merged := tree{a.count + b.count, slices.Concat(a.bytes, b.bytes)}
		for _, x := range merged.bytes {
			c.length[x]++
		}

		trees = trees[:len(trees)-2]
		at, _ := slices.BinarySearchFunc(trees, merged, byCount)
		trees = slices.Insert(trees, at, merged)
	}

	c.limitLengths()
}

// limitLengths shortens codes that are longer than codeBits, and lengthens others until a prefix
// code with these lengths exists, by Kraft's inequality:
//
//	sum of 1<<(codeBits-length) over all bytes <= 1<<codeBits
func (c *huffmanCode) limitLengths() {
	used := 0 // left side of the inequality
	for b, n := range c.length {
		if n > codeBits {
			c.length[b] = codeBits
		}
		if n > 0 {
			used += 1 << (codeBits - c.length[b])
		}
	}

	// Lengthen the longest codes below the limit, because their bytes are the rarest.
	for n := uint8(codeBits - 1); used > 1<<codeBits && n > 0; {
		b := slices.Index(c.length[:], n)
		if b < 0 {
			n--
			continue
		}
		c.length[b]++
		used -= 1 << (codeBits - n - 1)
	}
}

// firstCodes returns the first code of each length. The code is canonical: the codes of one length
// are consecutive numbers, and shorter codes come before longer ones.
func firstCodes(length *[1 << 8]uint8) (next [codeBits + 1]uint16) {
	var count [codeBits + 1]uint16
	for _, n := range length {
		count[n]++
	}

	code := uint16(0)
	for n := 1; n <= codeBits; n++ {
		next[n] = code
		code = (code + count[n]) << 1
	}
	return next
}

// reverseBits returns a code of n bits in reverse order, so that its first bit is the lowest.
func reverseBits(code uint16, n uint8) (out uint16) {
	for range n {
		out = out<<1 | code&1
		code >>= 1
	}
	return out
}

// appendLengths appends the lengths of the codes, from which a reader computes the canonical code.
func (c *huffmanCode) appendLengths(dst []byte) []byte {
	for i := 0; i < len(c.length); i += 2 {
		dst = append(dst, c.length[i]|c.length[i+1]<<4)
	}
	return dst
}

// encode appends the codes of the bytes of src to dst, and fills up the last byte with zeros.
func (c *huffmanCode) encode(dst, src []byte) []byte {
	// acc has n bits that are not in dst yet. Once it has 48, write six bytes: append eight, and drop
	// the last two. n < 48 before each byte, so acc never has more than 47 + codeBits bits.
	acc, n := uint64(0), uint(0)
	for _, b := range src {
		acc |= uint64(c.bits[b]) << n
		if n += uint(c.length[b]); n >= 48 {
			dst = binary.LittleEndian.AppendUint64(dst, acc)
			dst = dst[:len(dst)-2]
			acc, n = acc>>48, n-48
		}
	}

	for ; n > 0; n -= min(n, 8) {
		dst = append(dst, byte(acc))
		acc >>= 8
	}
	return dst
}

// huffmanTable decodes. Its index is the next tableBits bits of the input; the entry has the one or
// two codes with which these bits begin.
type huffmanTable [1 << tableBits]codeEntry

// tableBits is more than codeBits, so that often two short codes are decoded at once.
const tableBits = 12

// codeEntry has one or two decoded bytes, packed from the lowest bits up: the first byte (8 bits),
// the second (8), the length of the code of the first (4), the length of both codes (5), and the
// number of bytes: 0 if no code begins with these bits, 1 if only the first code is complete.
type codeEntry uint32

// newEntry packs the parts of an entry; n is the number of bytes.
func newEntry(first, second byte, bits, both uint8, n int) codeEntry {
	return codeEntry(first) | codeEntry(second)<<8 | codeEntry(bits)<<16 | codeEntry(both)<<20 | codeEntry(n)<<25
}

func (e codeEntry) bits() uint { return uint(e >> 16 & 15) }
func (e codeEntry) both() uint { return uint(e >> 20 & 31) }
func (e codeEntry) len() int   { return int(e >> 25) }

// readLengths reads the lengths of the codes that appendLengths has written; 0 means that the byte
// does not occur. It returns [file.ErrDamaged] if no code has such lengths.
func readLengths(written []byte) (*[1 << 8]uint8, error) {
	if len(written) != codeBytes {
		return nil, fmt.Errorf("%w: size of a code", file.ErrDamaged)
	}

	// A length has four bits. Lengths of a code satisfy Kraft's inequality, as in limitLengths.
	length, used := new([1 << 8]uint8), 0
	for i := range length {
		n := written[i/2] >> (i % 2 * 4) & 15
		if n > codeBits {
			return nil, fmt.Errorf("%w: length of a code", file.ErrDamaged)
		}
		if length[i] = n; n > 0 {
			used += 1 << (codeBits - n)
		}
	}

	if used > 1<<codeBits {
		return nil, fmt.Errorf("%w: codes overlap", file.ErrDamaged)
	}
	return length, nil
}

// newHuffmanTable makes the table of a code whose lengths appendLengths has written.
func newHuffmanTable(written []byte) (*huffmanTable, error) {
	length, err := readLengths(written)
	if err != nil {
		return nil, err
	}

	t := &huffmanTable{}
	next := firstCodes(length)
	for b, n := range length {
		if n == 0 {
			continue
		}

		// Set all entries whose index ends in these n bits.
		for i := int(reverseBits(next[n], n)); i < len(t); i += 1 << n {
			t[i] = newEntry(byte(b), 0, n, n, 1)
		}
		next[n]++
	}
	t.joinPairs()
	return t, nil
}

// joinPairs adds a second code to each entry in which a whole code follows the first.
func (t *huffmanTable) joinPairs() {
	single := *t
	for i, e := range single {
		if e == 0 {
			continue
		}

		next := single[i>>e.bits()]
		if both := e.bits() + next.bits(); next != 0 && both <= tableBits {
			t[i] = newEntry(byte(e), byte(next), uint8(e.bits()), uint8(both), 2)
		}
	}
}

// decode decompresses src into dst. It returns false if src is too short or damaged. In both loops
// dst[:i] is decoded, and acc has the next n bits of src, the first one lowest.
func (t *huffmanTable) decode(dst, src []byte) bool {
	acc, n := uint64(0), uint(0)
	i := 0

	// While both slices have eight bytes left, fill acc without a branch to at least 56 bits, which
	// four entries never exceed.
	for len(dst)-i >= 8 && len(src) >= 8 {
		acc |= binary.LittleEndian.Uint64(src) << n
		src = src[(63-n)/8:]
		n |= 56

		var e codeEntry
		for range 4 { // of at most 48 bits and 8 bytes
			e = t[acc%(1<<tableBits)]
			binary.LittleEndian.PutUint16(dst[i:], uint16(e))
			i += e.len()
			acc >>= e.both()
			n -= e.both()
		}
		if e == 0 { // an entry 0 consumes no bits, so all later entries are 0 as well
			return false
		}
	}

	// Decode the last bytes one at a time.
	for ; i < len(dst); i++ {
		for n <= 56 && len(src) > 0 {
			acc |= uint64(src[0]) << n
			src = src[1:]
			n += 8
		}

		e := t[acc%(1<<tableBits)]
		if e == 0 || e.bits() > n {
			return false
		}

		dst[i] = byte(e)
		acc >>= e.bits()
		n -= e.bits()
	}
	return true
}

// appendCoded appends the length of src and then the codes of its bytes.
func (c *huffmanCode) appendCoded(dst, src []byte) []byte {
	return c.encode(binary.AppendUvarint(dst, uint64(len(src))), src)
}

// decodeCoded decodes what appendCoded has written, into buf or a larger slice. It returns false if
// src is damaged.
func (t *huffmanTable) decodeCoded(buf, src []byte) ([]byte, bool) {
	size, w := binary.Uvarint(src)
	if w <= 0 || size > 8*uint64(len(src)-w) {
		return nil, false
	}
	buf = slices.Grow(buf[:0], int(size))[:size]
	return buf, t.decode(buf, src[w:])
}
