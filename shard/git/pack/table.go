package pack

import "math/bits"

// The least value and the number of extra bits for each code of a length or distance.
var (
	lengthBase = [...]uint16{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258}
	lengthMore = [...]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	distBase   = [...]uint16{1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577}
	distMore   = [...]uint8{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13}
)

// Entries of the symbols, without their codes.
var (
	litEntries  = makeLitEntries()
	distEntries = makeDistEntries()
	codeEntries = makeCodeEntries()
)

// makeLitEntries makes the entries for literals and lengths.
func makeLitEntries() (t [288]uint32) {
	for s := range t {
		// 0 to 255 are literals, 256 ends the block, the others are lengths.
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

// makeDistEntries makes the entries for distances.
func makeDistEntries() (t [32]uint32) {
	for s := range t {
		t[s] = entryRare
		if s < len(distBase) {
			t[s] = uint32(distBase[s])<<16 | uint32(distMore[s])
		}
	}
	return t
}

// makeCodeEntries makes the entries for lengths of codes.
func makeCodeEntries() (t [19]uint32) {
	for s := range t {
		t[s] = uint32(s) << 16
	}
	return t
}

// makeTable fills a table of codes. sizes has the length of the code of each symbol, entries its
// entry. The first table has 1<<first entries; its index is the next first bits of the input. For
// longer codes it has an entry that leads to a second table, after it, whose index is the bits that
// follow. table must have room for all of them.
//
// The codes are canonical. Sorted by length and then by symbol, each code is the one before plus
// one. With the lengths 1, 2, 3, 3 they are 0, 10, 110, 111.
func makeTable(table []uint32, first int, sizes []uint8, entries []uint32) error {
	var symbols sortedSymbols
	if err := symbols.sort(sizes); err != nil {
		return err
	}
	if symbols.partial {
		table[0] = entryRare // an unused code
	}

	code := symbols.fillFirst(table, first, entries)
	symbols.fillSecond(table, first, code, entries)
	return nil
}

// sortedSymbols has the symbols that have a code, those with the shortest codes first.
type sortedSymbols struct {
	symbols [288]uint16
	count   [16]int // number of codes of each length
	total   int
	longest int
	partial bool // the code is not complete: some bits do not begin with any code
}

// sort orders the symbols by the length of their codes, which is at most 15. It returns an error if
// no prefix code has such lengths. The code must be complete, unless it has at most one symbol:
//
//	sum of 2^-length = 1
func (s *sortedSymbols) sort(sizes []uint8) error {
	for _, n := range sizes {
		s.count[n&15]++
	}

	// With used = sum of 2^(15-length), the sum of 2^-length is used / 2^15.
	var from [16]int // where the symbols of each length begin
	used := 0        // in units of 2^-15
	for n := 1; n <= 15; n++ {
		from[n] = s.total
		s.total += s.count[n]
		used += s.count[n] << (15 - n)
		if s.count[n] > 0 {
			s.longest = n
		}
	}

	s.partial = used < 1<<15
	atMostOne := used == 0 || used == 1<<14 && s.count[1] == 1 // symbols
	if used > 1<<15 || s.partial && !atMostOne {
		return errStream
	}

	// Put the symbols in the order of their codes.
	for symbol, n := range sizes {
		if n != 0 {
			s.symbols[from[n&15]%288] = uint16(symbol)
			from[n&15]++
		}
	}
	return nil
}

// fillFirst fills the first table, from the shortest codes on: the table of n bits, written twice,
// is the table of n+1 bits. It returns the first code that is longer than first bits.
//
// Codes are in the input with their highest bit first, but bits are taken from it lowest first. So
// all codes here have reversed bits.
func (s *sortedSymbols) fillFirst(table []uint32, first int, entries []uint32) int {
	symbols := s.symbols[:s.total]
	code, size := 0, 1
	for n := 1; n <= min(first, s.longest); n++ {
		// Before each length n, the table of size 2^(n-1) has the codes of up to n-1 bits.
		copy(table[size:2*size], table[:size])
		size *= 2

		for _, symbol := range symbols[:s.count[n]] {
			table[code] = entries[symbol] + uint32(n)<<8 + uint32(n)
			code = nextCode(code, n)
		}

		symbols = symbols[s.count[n]:]
	}

	// If all codes have fewer than first bits, repeat the table until it has its full size.
	for size < 1<<first {
		copy(table[size:2*size], table[:size])
		size *= 2
	}
	return code
}

// fillSecond adds a second table for each group of codes that have the same first bits. code is the
// first code of more than first bits.
func (s *sortedSymbols) fillSecond(table []uint32, first, code int, entries []uint32) {
	shorter := 0
	for n := 1; n <= first; n++ {
		shorter += s.count[n]
	}
	if shorter >= s.total {
		return
	}

	symbols := s.symbols[shorter:s.total]
	free := 1 << first         // offset of the next table
	low := -1                  // the first bits of the current table
	width := s.longest - first // bits of its index
	for n := first + 1; n <= s.longest; n++ {
		for _, symbol := range symbols[:s.count[n]] {
			// A code with new first bits begins a new table.
			if code&(1<<first-1) != low {
				low = code & (1<<first - 1)
				table[low] = entryRare | entryMore | uint32(free)<<16 | uint32(width)<<8 | uint32(first)
				free += 1 << width
			}

			for i := code >> first; i < 1<<width; i += 1 << (n - first) {
				table[free-1<<width+i] = entries[symbol] + uint32(n-first)<<8 + uint32(n-first)
			}

			code = nextCode(code, n)
		}
		symbols = symbols[s.count[n]:]
	}
}

// nextCode returns the code of n bits that follows another, both with reversed bits: the highest
// zero becomes one, and the ones above it become zeros. After the last code comes 0.
func nextCode(code, n int) int {
	ones := bits.Len(uint(code ^ (1<<n - 1)))
	if ones == 0 {
		return 0
	}
	return code&(1<<(ones-1)-1) | 1<<(ones-1)
}

// useFixedTables makes the tables of the fixed codes, unless f has them already.
func (f *inflater) useFixedTables() {
	if f.fixed {
		return
	}

	// The format defines these lengths.
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

		// After 288 literals and lengths come the distances.
		default:
			f.sizes[s] = 5
		}
	}

	// Both codes are complete and short, so making their tables cannot fail.
	_ = makeTable(f.lit[:], litBits, f.sizes[:288], litEntries[:])
	_ = makeTable(f.dist[:], distBits, f.sizes[288:], distEntries[:])
	f.fixed = true
}

// codeOrder is the order in which the lengths of the code of lengths are stored.
var codeOrder = [...]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// readTables reads the codes at the start of a block and makes their tables. The lengths of the
// codes are written in a code of their own, which comes first.
func (f *inflater) readTables(b *stream) error {
	f.fixed = false
	head, ok := b.take(14)
	lits, dists, codes := int(head&31)+257, int(head>>5&31)+1, int(head>>10)+4

	if !ok || lits > 286 || dists > 30 {
		return errStream
	}

	// Read the code of lengths, with three bits for each length.
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
	if err := f.readSizes(b, lits+dists); err != nil {
		return err
	}

	if f.sizes[256] == 0 { // such a block could not end
		return errStream
	}

	// The lengths of both codes follow each other: first literals, then distances.
	if err := makeTable(f.lit[:], litBits, f.sizes[:lits], litEntries[:]); err != nil {
		return err
	}
	return makeTable(f.dist[:], distBits, f.sizes[lits:lits+dists], distEntries[:])
}

// readSizes reads the lengths of total codes. 0 to 15 is a length; 16 repeats the length before 3
// to 6 times, 17 repeats zero 3 to 10 times, 18 repeats zero 11 to 138 times.
func (f *inflater) readSizes(b *stream, total int) error {
	for i := 0; i < total; {
		b.fill()
		e := f.length[b.buf&(1<<codeBits-1)]
		if _, ok := b.take(uint(e & 63)); !ok || e&entryRare != 0 {
			return errStream
		}

		// Read a length, or a repetition of one.
		s := uint8(e >> 16)
		if s < 16 {
			f.sizes[i] = s
			i++
			continue
		}

		// The count follows as some bits to add to the least count. value is the length to repeat.
		countBits, least, value := uint(7), 11, uint8(0)
		switch {
		case s == 16 && i > 0:
			countBits, least, value = 2, 3, f.sizes[i-1]
		case s == 16:
			return errStream
		case s == 17:
			countBits, least = 3, 3
		}

		v, ok := b.take(countBits)
		n := least + int(v)
		if !ok || n > total-i {
			return errStream
		}

		for range n {
			f.sizes[i] = value
			i++
		}
	}
	return nil
}
