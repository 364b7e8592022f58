package shard

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// The columns of a .symbols file are bytes of which some come far more often
// than others. They are written in codes of Huffman: one code for a section,
// so that a few hundred bytes can be read on their own.

const (
	codeBits  = 11          // of the longest code
	codeBytes = 1 << 8 >> 1 // of a written code: half a byte for each length
)

// huffmanCode gives each byte its bits, the first one lowermost.
type huffmanCode struct {
	length [1 << 8]uint8 // 0: the byte does not occur
	bits   [1 << 8]uint16
}

// newHuffmanCode makes the code for bytes that occur so often.
func newHuffmanCode(counts *[1 << 8]int) *huffmanCode {
	c := &huffmanCode{}
	c.lengths(counts)
	next := firstCodes(&c.length)
	for b, n := range c.length {
		if n > 0 {
			c.bits[b] = reversed(next[n], n)
			next[n]++
		}
	}
	return c
}

// lengths joins the two rarest until one is left, and counts how often each
// byte was in one of the two.
func (c *huffmanCode) lengths(counts *[1 << 8]int) {
	type tree struct {
		count int
		bytes []byte
	}
	var trees []tree
	for b, n := range counts {
		if n > 0 {
			trees = append(trees, tree{n, []byte{byte(b)}})
		}
	}
	byCount := func(a, b tree) int { return cmp.Compare(b.count, a.count) }
	slices.SortStableFunc(trees, byCount)
	if len(trees) == 1 {
		c.length[trees[0].bytes[0]] = 1
	}
	for len(trees) > 1 {
		a, b := trees[len(trees)-2], trees[len(trees)-1]
		joined := tree{a.count + b.count, slices.Concat(a.bytes, b.bytes)}
		for _, x := range joined.bytes {
			c.length[x]++
		}
		trees = trees[:len(trees)-2]
		at, _ := slices.BinarySearchFunc(trees, joined, byCount)
		trees = slices.Insert(trees, at, joined)
	}
	c.limit()
}

// limit shortens what is longer than codeBits, and makes the next shorter
// codes longer until there is room.
func (c *huffmanCode) limit() {
	used := 0
	for b, n := range c.length {
		if n > codeBits {
			c.length[b] = codeBits
		}
		if n > 0 {
			used += 1 << (codeBits - c.length[b])
		}
	}
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

// firstCodes gives the first code of each length, where those of a length
// follow each other and shorter ones come first.
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

// reversed turns the n bits of a code round.
func reversed(code uint16, n uint8) (out uint16) {
	for range n {
		out = out<<1 | code&1
		code >>= 1
	}
	return out
}

// appendTo writes the lengths, from which reading makes the code again.
func (c *huffmanCode) appendTo(dst []byte) []byte {
	for i := 0; i < len(c.length); i += 2 {
		dst = append(dst, c.length[i]|c.length[i+1]<<4)
	}
	return dst
}

// encode appends the codes of src.
func (c *huffmanCode) encode(dst, src []byte) []byte {
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

// huffmanTable reads a code: for each value of the next tableBits bits what
// they begin with.
type huffmanTable [1 << tableBits]codeEntry

// tableBits is more than codeBits: two short codes are often read at once.
const tableBits = 12

// codeEntry is from below a byte, the byte behind it, the bits of the first, of
// both, and how many they are: 0 where no code begins so, 1 where the second is
// not all there.
type codeEntry uint32

func newEntry(first, second byte, bits, both uint8, n int) codeEntry {
	return codeEntry(first) | codeEntry(second)<<8 | codeEntry(bits)<<16 | codeEntry(both)<<20 | codeEntry(n)<<25
}

func (e codeEntry) bits() uint { return uint(e >> 16 & 15) }
func (e codeEntry) both() uint { return uint(e >> 20 & 31) }
func (e codeEntry) len() int   { return int(e >> 25) }

func newHuffmanTable(written []byte) (*huffmanTable, error) {
	if len(written) != codeBytes {
		return nil, fmt.Errorf("%w: size of a code", ErrDamaged)
	}
	var length [1 << 8]uint8
	used := 0
	for i := range length {
		n := written[i/2] >> (i % 2 * 4) & 15
		if n > codeBits {
			return nil, fmt.Errorf("%w: length of a code", ErrDamaged)
		}
		if length[i] = n; n > 0 {
			used += 1 << (codeBits - n)
		}
	}
	if used > 1<<codeBits {
		return nil, fmt.Errorf("%w: codes overlap", ErrDamaged)
	}
	t := &huffmanTable{}
	next := firstCodes(&length)
	for b, n := range length {
		if n == 0 {
			continue
		}
		for i := int(reversed(next[n], n)); i < len(t); i += 1 << n {
			t[i] = newEntry(byte(b), 0, n, n, 1)
		}
		next[n]++
	}
	t.join()
	return t, nil
}

// join makes entries of two where the bits behind the first are a whole code.
func (t *huffmanTable) join() {
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

// decode fills dst with what src stands for, and tells whether there was
// enough of it.
func (t *huffmanTable) decode(dst, src []byte) bool {
	acc, n := uint64(0), uint(0) // bits that are not yet used
	i := 0
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
		if e == 0 { // and so is each that follows one
			return false
		}
	}
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

// appendCoded appends the size of src and its codes.
func (c *huffmanCode) appendCoded(dst, src []byte) []byte {
	return c.encode(binary.AppendUvarint(dst, uint64(len(src))), src)
}

// decodeCoded reads what appendCoded has written into buf, which grows.
func (t *huffmanTable) decodeCoded(buf, src []byte) ([]byte, bool) {
	size, w := binary.Uvarint(src)
	if w <= 0 || size > 8*uint64(len(src)-w) {
		return nil, false
	}
	buf = slices.Grow(buf[:0], int(size))[:size]
	return buf, t.decode(buf, src[w:])
}
