package git

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"unsafe"
)

// An inflater decompresses streams of zlib, each at once and into memory that
// is exactly as large as the text: what the objects of a pack are, whose sizes
// stand in front of them. Knowing both ends it needs no window and no copy, and
// is several times as fast as a decoder of pieces. The checksum of the text is
// left to the caller, who has better ones.
//
// A table of codes is indexed by the next bits of the input. An entry is
//
//	bits 0 to 5    how many bits it takes, those of its number included
//	bits 8 to 11   how many of these are the code
//	bit 13         more bits are needed: base is where their table begins,
//	               bits 8 to 11 are how many index it
//	bit 14         end of the block
//	bit 15         none of the common kinds: bit 13, bit 14, or no code at all
//	bits 16 to 30  base: a literal, or the least length or distance
//	bit 31         a literal
type inflater struct {
	lit    [litRoom]uint32
	dist   [distRoom]uint32
	length [codeRoom]uint32 // of the codes that tell the lengths of codes
	sizes  [288 + 32]uint8
	fixed  bool // the tables are those of blocks without tables of their own
	plain  bool // take the way of any machine, for comparison
}

const (
	litBits  = 10 // of the input that index the first table
	distBits = 8
	codeBits = 7
	// Rooms for all tables that complete codes can ask for: two codes at least
	// are behind each further table.
	litRoom  = 1<<litBits + 288/2<<(15-litBits)
	distRoom = 1<<distBits + 32/2<<(15-distBits)
	codeRoom = 1 << codeBits

	entryMore    = 1 << 13
	entryEnd     = 1 << 14
	entryRare    = 1 << 15
	entryLiteral = 1 << 31
)

// errStream tells that a compressed stream is damaged.
var errStream = errors.New("damaged zlib stream")

// Bases and extra bits of the codes of lengths and distances.
var (
	lengthBase = [...]uint16{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258}
	lengthMore = [...]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	distBase   = [...]uint16{1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577}
	distMore   = [...]uint8{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13}
)

// Entries of the symbols, but for their codes.
var (
	litEntries  = makeLitEntries()
	distEntries = makeDistEntries()
	codeEntries = makeCodeEntries()
)

func makeLitEntries() (t [288]uint32) {
	for s := range t {
		switch {
		case s < 256:
			t[s] = entryLiteral | uint32(s)<<16
		case s == 256:
			t[s] = entryRare | entryEnd
		case s-257 < len(lengthBase):
			t[s] = uint32(lengthBase[s-257])<<16 | uint32(lengthMore[s-257])
		default:
			t[s] = entryRare
		}
	}
	return t
}

func makeDistEntries() (t [32]uint32) {
	for s := range t {
		t[s] = entryRare
		if s < len(distBase) {
			t[s] = uint32(distBase[s])<<16 | uint32(distMore[s])
		}
	}
	return t
}

func makeCodeEntries() (t [19]uint32) {
	for s := range t {
		t[s] = uint32(s) << 16
	}
	return t
}

// makeTable fills a table of codes, given the length of the code of each
// symbol; first bits index its beginning. Tables of the further bits of longer
// codes all have room for the longest. Codes are dealt with from the shortest
// on: the table of n bits, written twice, is the table of n+1 bits.
func makeTable(table []uint32, first int, sizes []uint8, entries []uint32) error {
	var count, from [16]int
	for _, n := range sizes {
		count[n&15]++
	}
	at, used, longest := 0, 0, 0
	for n := 1; n <= 15; n++ {
		from[n] = at
		at += count[n]
		used += count[n] << (15 - n)
		if count[n] > 0 {
			longest = n
		}
	}
	if used > 1<<15 {
		return errStream
	}
	if used < 1<<15 {
		// A code for one symbol, or for none, need not be complete.
		if used != 0 && (used != 1<<14 || count[1] != 1) {
			return errStream
		}
		table[0] = entryRare
	}
	var sorted [288]uint16 // symbols by length
	for s, n := range sizes {
		if n != 0 {
			sorted[from[n&15]%288] = uint16(s)
			from[n&15]++
		}
	}
	symbols := sorted[:at]
	// Codes come as bits of the input do, lowest first: the next code of a
	// length is found by adding one at the other end.
	code, size := 0, 1
	for n := 1; n <= min(first, longest); n++ {
		copy(table[size:2*size], table[:size])
		size *= 2
		for _, s := range symbols[:count[n]] {
			table[code] = entries[s] + uint32(n)<<8 + uint32(n)
			code = nextCode(code, n)
		}
		symbols = symbols[count[n]:]
	}
	for size < 1<<first {
		copy(table[size:2*size], table[:size])
		size *= 2
	}
	free, low, width := 1<<first, -1, longest-first
	for n := first + 1; n <= longest; n++ {
		for _, s := range symbols[:count[n]] {
			if code&(1<<first-1) != low {
				low = code & (1<<first - 1)
				table[low] = entryRare | entryMore | uint32(free)<<16 | uint32(width)<<8 | uint32(first)
				free += 1 << width
			}
			for i := code >> first; i < 1<<width; i += 1 << (n - first) {
				table[free-1<<width+i] = entries[s] + uint32(n-first)<<8 + uint32(n-first)
			}
			code = nextCode(code, n)
		}
		symbols = symbols[count[n]:]
	}
	return nil
}

// nextCode is the code of n bits that follows another, both with their bits
// reversed: the highest zero becomes one, and the ones above it zeros. Behind
// the last code comes 0.
func nextCode(code, n int) int {
	ones := bits.Len(uint(code ^ (1<<n - 1)))
	if ones == 0 {
		return 0
	}
	return code&(1<<(ones-1)-1) | 1<<(ones-1)
}

// stream is an input of which bits are taken, lowest first.
type stream struct {
	src []byte
	at  int    // of the next byte
	buf uint64 // bits taken from src and not yet used
	n   uint   // how many
}

// fill makes sure of 56 bits, or of all that are left; beyond the end come
// zeros, which take notices.
func (b *stream) fill() {
	if b.at+8 <= len(b.src) {
		b.buf |= binary.LittleEndian.Uint64(b.src[b.at:]) << (b.n & 63)
		b.at += int(63-b.n) >> 3
		b.n |= 56
		return
	}
	for b.n < 56 && b.at < len(b.src) {
		b.buf |= uint64(b.src[b.at]) << (b.n & 63)
		b.at++
		b.n += 8
	}
}

// take uses n bits; it reports false when there are not so many.
func (b *stream) take(n uint) (v uint64, ok bool) {
	if n > b.n {
		return 0, false
	}
	v = b.buf & (1<<n - 1)
	b.buf >>= n
	b.n -= n
	return v, true
}

// inflate decompresses the stream at the beginning of src into dst, which it
// fills exactly, and returns the length of the stream. What dst has room for
// behind its end, it may use; it is faster with fastOut bytes there.
func (f *inflater) inflate(dst, src []byte) (int, error) {
	if len(src) < 2 || src[0]&15 != 8 || src[0]>>4 > 7 || src[1]&0x20 != 0 || binary.BigEndian.Uint16(src)%31 != 0 {
		return 0, errStream
	}
	b := stream{src: src, at: 2}
	out := 0
	for last := false; !last; {
		b.fill()
		head, ok := b.take(3)
		if !ok {
			return 0, errStream
		}
		last = head&1 != 0
		var err error
		switch head >> 1 {
		case 0:
			out, err = b.stored(dst, out)
		case 1:
			f.fixedTables()
			out, err = f.block(dst, out, &b)
		case 2:
			if err = f.readTables(&b); err == nil {
				out, err = f.block(dst, out, &b)
			}
		default:
			err = errStream
		}
		if err != nil {
			return 0, err
		}
	}
	end := b.at - int(b.n>>3) + 4 // the checksum
	if out != len(dst) || end > len(src) {
		return 0, errStream
	}
	return end, nil
}

// stored copies a block that is not compressed.
func (b *stream) stored(dst []byte, out int) (int, error) {
	at := b.at - int(b.n>>3)
	b.buf, b.n = 0, 0
	if len(b.src)-at < 4 {
		return 0, errStream
	}
	n := int(binary.LittleEndian.Uint16(b.src[at:]))
	if int(^binary.LittleEndian.Uint16(b.src[at+2:])) != n || n > len(b.src)-at-4 || n > len(dst)-out {
		return 0, errStream
	}
	b.at = at + 4 + n
	return out + copy(dst[out:], b.src[at+4:b.at]), nil
}

func (f *inflater) fixedTables() {
	if f.fixed {
		return
	}
	for s := range f.sizes {
		switch {
		case s < 144:
			f.sizes[s] = 8
		case s < 256:
			f.sizes[s] = 9
		case s < 280:
			f.sizes[s] = 7
		case s < 288:
			f.sizes[s] = 8
		default:
			f.sizes[s] = 5
		}
	}
	// Both codes are complete and short: making their tables cannot fail.
	_ = makeTable(f.lit[:], litBits, f.sizes[:288], litEntries[:])
	_ = makeTable(f.dist[:], distBits, f.sizes[288:], distEntries[:])
	f.fixed = true
}

// codeOrder is the order in which the lengths of the codes of lengths come.
var codeOrder = [...]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// readTables reads the codes of a block that brings its own.
func (f *inflater) readTables(b *stream) error {
	f.fixed = false
	head, ok := b.take(14)
	lits, dists, codes := int(head&31)+257, int(head>>5&31)+1, int(head>>10)+4
	if !ok || lits > 286 || dists > 30 {
		return errStream
	}
	var sizes [19]uint8
	for _, s := range codeOrder[:codes] {
		b.fill()
		v, ok := b.take(3)
		if !ok {
			return errStream
		}
		sizes[s] = uint8(v)
	}
	if err := makeTable(f.length[:], codeBits, sizes[:], codeEntries[:]); err != nil {
		return err
	}
	for i := 0; i < lits+dists; {
		b.fill()
		e := f.length[b.buf&(1<<codeBits-1)]
		if _, ok := b.take(uint(e & 63)); !ok || e&entryRare != 0 {
			return errStream
		}
		s := uint8(e >> 16)
		if s < 16 {
			f.sizes[i] = s
			i++
			continue
		}
		more, least, value := uint(7), 11, uint8(0)
		switch {
		case s == 16 && i > 0:
			more, least, value = 2, 3, f.sizes[i-1]
		case s == 16:
			return errStream
		case s == 17:
			more, least = 3, 3
		}
		v, ok := b.take(more)
		n := least + int(v)
		if !ok || n > lits+dists-i {
			return errStream
		}
		for range n {
			f.sizes[i] = value
			i++
		}
	}
	if f.sizes[256] == 0 {
		return errStream
	}
	if err := makeTable(f.lit[:], litBits, f.sizes[:lits], litEntries[:]); err != nil {
		return err
	}
	return makeTable(f.dist[:], distBits, f.sizes[lits:lits+dists], distEntries[:])
}

// block decompresses a block into dst from out on: fast where there is room on
// both sides for all that a step can touch, else with care.
func (f *inflater) block(dst []byte, out int, b *stream) (int, error) {
	for {
		if b.at <= len(b.src)-fastIn && out <= lastOut(dst) {
			var end bool
			var err error
			if out, end, err = f.fast(dst, out, b); end || err != nil {
				return out, err
			}
		}
		b.fill()
		e := f.lit[b.buf&(1<<litBits-1)]
		if e&entryMore != 0 {
			if _, ok := b.take(litBits); !ok {
				return 0, errStream
			}
			e = f.lit[int(e>>16&0x7fff)+int(b.buf&(1<<(e>>8&15)-1))]
		}
		code, ok := b.take(uint(e & 63))
		switch {
		case !ok || e&entryRare != 0 && e&entryEnd == 0:
			return 0, errStream
		case e&entryEnd != 0:
			return out, nil
		case e&entryLiteral != 0:
			if out == len(dst) {
				return 0, errStream
			}
			dst[out] = byte(e >> 16)
			out++
			continue
		}
		length := int(e>>16) + int(code>>(e>>8&15))
		b.fill()
		if e = f.dist[b.buf&(1<<distBits-1)]; e&entryMore != 0 {
			if _, ok := b.take(distBits); !ok {
				return 0, errStream
			}
			e = f.dist[int(e>>16&0x7fff)+int(b.buf&(1<<(e>>8&15)-1))]
		}
		if code, ok = b.take(uint(e & 63)); !ok || e&entryRare != 0 {
			return 0, errStream
		}
		distance := int(e>>16) + int(code>>(e>>8&15))
		if distance > out || length > len(dst)-out {
			return 0, errStream
		}
		for range length {
			dst[out] = dst[out-distance]
			out++
		}
	}
}

// What a step of fast may read and write beyond where it is: eight bytes of
// input three times, three literals and a match of 258 bytes copied in steps.
const (
	fastIn  = 32
	fastOut = 3 + 258 + 32
)

// lastOut is the last place of dst from where a step may write. What dst has
// room for behind its end is room for a step, so that nearly all of a text can
// be made in steps; who stepped over the end finds out.
func lastOut(dst []byte) int { return min(len(dst), cap(dst)-fastOut) }

// fastPortable is fast on any machine.
func (f *inflater) fastPortable(dst []byte, out int, b *stream) (int, bool, error) {
	in, to := unsafe.Pointer(unsafe.SliceData(b.src)), unsafe.Pointer(unsafe.SliceData(dst))
	at, buf, n := b.at, b.buf, b.n
	lastIn, lastOut := len(b.src)-fastIn, lastOut(dst)
	lit, dist := &f.lit, &f.dist
	for at <= lastIn && out <= lastOut {
		buf |= *(*uint64)(unsafe.Add(in, at)) << (n & 63)
		at += int(63-n) >> 3
		n |= 56
		e := lit[buf&(1<<litBits-1)]
		// Three literals take at most 30 bits of 56, and what follows 20.
		if e&entryLiteral != 0 {
			*(*byte)(unsafe.Add(to, out)) = byte(e >> 16)
			buf, n, out = buf>>(e&63), n-uint(e&63), out+1
			if e = lit[buf&(1<<litBits-1)]; e&entryLiteral != 0 {
				*(*byte)(unsafe.Add(to, out)) = byte(e >> 16)
				buf, n, out = buf>>(e&63), n-uint(e&63), out+1
				if e = lit[buf&(1<<litBits-1)]; e&entryLiteral != 0 {
					*(*byte)(unsafe.Add(to, out)) = byte(e >> 16)
					buf, n, out = buf>>(e&63), n-uint(e&63), out+1
					continue
				}
			}
		}
		if e&entryRare != 0 {
			if e&entryMore != 0 {
				buf, n = buf>>litBits, n-litBits
				e = lit[e>>16&0x7fff+uint32(buf&(1<<(e>>8&15)-1))]
			}
			if e&entryLiteral != 0 {
				*(*byte)(unsafe.Add(to, out)) = byte(e >> 16)
				buf, n, out = buf>>(e&63), n-uint(e&63), out+1
				continue
			}
			if e&entryRare != 0 {
				b.at, b.buf, b.n = at, buf>>(e&63), n-uint(e&63)
				if e&entryEnd == 0 || out > len(dst) {
					return out, false, errStream
				}
				return out, true, nil
			}
		}
		length := int(e>>16) + int(buf&(1<<(e&63)-1)>>(e>>8&15))
		buf, n = buf>>(e&63), n-uint(e&63)
		buf |= *(*uint64)(unsafe.Add(in, at)) << (n & 63)
		at += int(63-n) >> 3
		n |= 56
		e = dist[buf&(1<<distBits-1)]
		if e&entryRare != 0 {
			if e&entryMore == 0 {
				return out, false, errStream
			}
			buf, n = buf>>distBits, n-distBits
			if e = dist[e>>16&0x7fff+uint32(buf&(1<<(e>>8&15)-1))]; e&entryRare != 0 {
				return out, false, errStream
			}
		}
		distance := int(e>>16) + int(buf&(1<<(e&63)-1)>>(e>>8&15))
		buf, n = buf>>(e&63), n-uint(e&63)
		if distance > out {
			return out, false, errStream
		}
		copyMatch(unsafe.Add(to, out), unsafe.Add(to, out-distance), distance, length)
		out += length
	}
	b.at, b.buf, b.n = at, buf, n
	if out > len(dst) {
		return out, false, errStream
	}
	return out, false, nil
}

// copyMatch copies length bytes that may overlap, and up to 15 more.
func copyMatch(to, from unsafe.Pointer, distance, length int) {
	if distance >= 16 {
		for k := 0; k < length; k += 16 {
			*(*[16]byte)(unsafe.Add(to, k)) = *(*[16]byte)(unsafe.Add(from, k))
		}
		return
	}
	if distance >= 8 {
		for k := 0; k < length; k += 8 {
			*(*uint64)(unsafe.Add(to, k)) = *(*uint64)(unsafe.Add(from, k))
		}
		return
	}
	for k := range length {
		*(*byte)(unsafe.Add(to, k)) = *(*byte)(unsafe.Add(from, k))
	}
}
