package pack

import (
	"encoding/binary"
	"errors"
	"sync"
)

// An inflater decompresses zlib streams into memory that has exactly the size of the text. Objects
// of a pack are such streams, and their sizes stand in front of them. Because both ends are known,
// it needs no window and no copy, and is several times as fast as a streaming decoder. It does not
// check the checksum of the text: the caller checks one of the pack or the id.
//
// The next bits of the input are the index in a table of codes. An entry is
//
//	bits 0 to 5    length of the code and of the extra bits after it
//	bits 8 to 11   length of the code alone
//	bit 13         more bits are needed: base is where a second table begins,
//	               and bits 8 to 11 say how many bits are its index
//	bit 14         end of the block
//	bit 15         a rare entry: bit 13 or bit 14 is set, or it belongs to no code
//	bits 16 to 30  base: a literal, or the least length or distance
//	bit 31         a literal
//
// For example, with the fixed tables,
//
//	8061_0808      the literal 'a' (0x61), a code of 8 bits and no extra bits
//	000d_0708      a length from 13 on, a code of 7 bits and one extra bit
//	0000_c707      the end of the block, a code of 7 bits
type inflater struct {
	lit    [litRoom]uint32
	dist   [distRoom]uint32
	length [codeRoom]uint32 // for the codes that encode the lengths of codes
	sizes  [288 + 32]uint8
	fixed  bool // the fixed tables are loaded
}

// inflaters are shared by all stores: one takes more memory than a small pack.
var inflaters = sync.Pool{New: func() any { return new(inflater) }}

const (
	litBits  = 10 // input bits that index the first table
	distBits = 8
	codeBits = 7
	// Room for the tables of any complete code: each second table has at least two codes.
	litRoom  = 1<<litBits + 288/2<<(15-litBits)
	distRoom = 1<<distBits + 32/2<<(15-distBits)
	codeRoom = 1 << codeBits

	entryMore    = 1 << 13
	entryEnd     = 1 << 14
	entryRare    = 1 << 15
	entryLiteral = 1 << 31
)

// errStream is the error for a damaged stream.
var errStream = errors.New("damaged zlib stream")

// stream reads bits from a slice, the lowest bit of each byte first.
type stream struct {
	src []byte
	at  int    // offset of the next byte
	buf uint64 // bits taken from src but not used yet
	n   uint   // number of bits in buf
}

// fill loads buf with at least 56 bits, or with all bits that are left. take does not return bits of
// buf beyond n.
func (b *stream) fill() {
	if b.at+8 <= len(b.src) {
		b.buf |= binary.LittleEndian.Uint64(b.src[b.at:]) << (b.n & 63)
		b.at += int(63-b.n) >> 3
		b.n |= 56
		return
	}

	// Near the end load byte by byte.
	for b.n < 56 && b.at < len(b.src) {
		b.buf |= uint64(b.src[b.at]) << (b.n & 63)
		b.at++
		b.n += 8
	}
}

// take removes the next n bits from buf and returns them. It returns false if buf has fewer.
func (b *stream) take(n uint) (v uint64, ok bool) {
	if n > b.n {
		return 0, false
	}
	v = b.buf & (1<<n - 1)
	b.buf >>= n
	b.n -= n
	return v, true
}

// inflate decompresses the stream at the beginning of src into dst, and returns the length of the
// stream. The text must be exactly as long as dst. It may overwrite the capacity after dst, and is
// faster if that has fastOut bytes.
func (f *inflater) inflate(dst, src []byte) (int, error) {
	// Check the head of zlib: deflate, a window of at most 32 KiB, no dictionary.
	if len(src) < 2 || src[0]&15 != 8 || src[0]>>4 > 7 || src[1]&0x20 != 0 || binary.BigEndian.Uint16(src)%31 != 0 {
		return 0, errStream
	}

	b := stream{src: src, at: 2}
	out := 0

	// Each block either adds to dst or fails, so damaged input cannot keep the loop going.
	for last := false; !last; {
		b.fill()

		// Read whether the block is the last one, and how it is coded.
		head, ok := b.take(3)
		if !ok {
			return 0, errStream
		}
		last = head&1 != 0

		// The block has stored bytes, the fixed codes, or its own codes.
		var err error
		switch head >> 1 {
		case 0:
			out, err = b.copyStored(dst, out)
		case 1:
			f.useFixedTables()
			out, err = f.inflateBlock(dst, out, &b)
		case 2:
			if err = f.readTables(&b); err == nil {
				out, err = f.inflateBlock(dst, out, &b)
			}
		default:
			err = errStream
		}

		if err != nil {
			return 0, err
		}
	}

	end := b.at - int(b.n>>3) + 4 // the checksum follows
	if out != len(dst) || end > len(src) {
		return 0, errStream
	}
	return end, nil
}

// copyStored copies a block that is not compressed to dst[out:], and returns the new position in
// dst.
func (b *stream) copyStored(dst []byte, out int) (int, error) {
	// Return whole bytes to the input. The remaining bits of a byte are padding.
	at := b.at - int(b.n>>3)
	b.buf, b.n = 0, 0

	if len(b.src)-at < 4 {
		return 0, errStream
	}

	// The length comes twice, the second time with all bits inverted.
	n := int(binary.LittleEndian.Uint16(b.src[at:]))
	if int(^binary.LittleEndian.Uint16(b.src[at+2:])) != n || n > len(b.src)-at-4 || n > len(dst)-out {
		return 0, errStream
	}

	b.at = at + 4 + n
	return out + copy(dst[out:], b.src[at+4:b.at]), nil
}

// inflateBlock decompresses a block to dst[out:], and returns the new position in dst. It uses
// inflateFast while both slices have enough room, and otherwise checks every access.
func (f *inflater) inflateBlock(dst []byte, out int, b *stream) (int, error) {
	for {
		if b.at <= len(b.src)-fastIn && out <= lastOut(dst) {
			var end bool
			var err error
			if out, end, err = f.inflateFast(dst, out, b); end || err != nil {
				return out, err
			}
		}

		// Decode one literal, or one match: a length and a distance.
		b.fill()
		e, code, ok := b.takeCode(f.lit[:], litBits)
		switch {
		case !ok || e&entryRare != 0 && e&entryEnd == 0:
			return 0, errStream
		case e&entryEnd != 0:
			return out, nil

		// A byte beyond the promised end means damage.
		case e&entryLiteral != 0:
			if out == len(dst) {
				return 0, errStream
			}
			dst[out] = byte(e >> 16)
			out++
			continue
		}

		length := int(e>>16) + int(code>>(e>>8&15))

		// Read the distance of the match.
		b.fill()
		if e, code, ok = b.takeCode(f.dist[:], distBits); !ok || e&entryRare != 0 {
			return 0, errStream
		}
		distance := int(e>>16) + int(code>>(e>>8&15))
		if distance > out || length > len(dst)-out {
			return 0, errStream
		}

		// Copy byte by byte: if distance < length, the match repeats the bytes that it writes.
		for range length {
			dst[out] = dst[out-distance]
			out++
		}
	}
}

// takeCode takes the next code and its extra bits from the stream. first is how many bits index the
// first table. It returns the entry of the code, and the bits that it took.
func (b *stream) takeCode(table []uint32, first uint) (e uint32, code uint64, ok bool) {
	e = table[b.buf&(1<<first-1)]
	if e&entryMore != 0 {
		if _, ok := b.take(first); !ok {
			return 0, 0, false
		}
		e = table[int(e>>16&0x7fff)+int(b.buf&(1<<(e>>8&15)-1))]
	}
	code, ok = b.take(uint(e & 63))
	return e, code, ok
}
