package lz

import "encoding/binary"

const (
	chainBits  = 15
	chainDepth = 8
	chainGood  = 48 // a match of that length ends the search, and the next bytes are not searched
)

// chains finds long matches: for every position the one before with the same
// hash is kept. Positions count from the start of the dictionary on, the block
// behind it.
type chains struct {
	dict []byte
	text []byte // dictionary and block
	head []int32
	prev []uint16 // distance to the position before, 0 for none
	undo []int32  // hashes whose head the present block has changed
	old  []int32  // and what it was

	matches []found
	ways    []choice
}

// found is a match.
type found struct{ offset, length int }

func newChains(dict []byte) *chains {
	c := &chains{dict: dict, text: make([]byte, len(dict), len(dict)+MaxBlock), head: make([]int32, 1<<chainBits)}
	copy(c.text, dict)
	c.prev = make([]uint16, len(dict)+MaxBlock)
	for i := range c.head {
		c.head[i] = -1
	}
	for i := 0; i+4 <= len(dict); i++ {
		c.insert(i, false)
	}
	return c
}

func (c *chains) insert(i int, undo bool) {
	h := int32(binary.LittleEndian.Uint32(c.text[i:]) * 2654435761 >> (32 - chainBits))
	c.prev[i] = 0
	if p := c.head[h]; p >= 0 && i-int(p) <= maxOffset {
		c.prev[i] = uint16(i - int(p))
	}
	if undo {
		c.undo, c.old = append(c.undo, h), append(c.old, c.head[h])
	}
	c.head[h] = int32(i)
}

// longest gives the longest match at position i, at least minMatch bytes, and
// how far back it is; 0 when there is none.
func (c *chains) longest(i int) (offset, length int) {
	end := len(c.text)
	if i+4 > end {
		return 0, 0
	}
	h := binary.LittleEndian.Uint32(c.text[i:]) * 2654435761 >> (32 - chainBits)
	at := int(c.head[h])
	for depth := chainDepth; at >= 0 && depth > 0 && i-at <= maxOffset; depth-- {
		limit := end
		if at < len(c.dict) {
			limit = min(end, i+len(c.dict)-at)
		}
		if n := limit - i; n > length && (length == 0 || c.text[at+length] == c.text[i+length]) {
			if k := matchLength(c.text[i:limit], c.text[at:]); k > length && k >= minMatch {
				if offset, length = i-at, k; k >= chainGood {
					break
				}
			}
		}
		d := int(c.prev[at])
		if d == 0 {
			break
		}
		at -= d
	}
	return offset, length
}

// choice is the best way on from a position.
type choice struct {
	cost   int32
	length uint16 // of the match taken here; 0 for a literal
	offset uint16
}

// encode takes the cheapest way through the block: the cost of the rest is
// known behind each position when working from its end. It returns where the
// last literals begin.
func (c *chains) encode(out *writer, src []byte) (anchor int) {
	base := len(c.dict)
	c.text = append(c.text[:base], src...)
	n := len(src)
	matches := append(c.matches[:0], make([]found, n)...)
	c.matches = matches
	for i := range n {
		if i > 0 && matches[i-1].length >= chainGood {
			matches[i] = found{matches[i-1].offset, matches[i-1].length - 1}
		} else {
			matches[i].offset, matches[i].length = c.longest(base + i)
		}
		if base+i+4 <= len(c.text) {
			c.insert(base+i, true)
		}
	}
	for i := len(c.undo) - 1; i >= 0; i-- {
		c.head[c.undo[i]] = c.old[i]
	}
	c.undo, c.old = c.undo[:0], c.old[:0]

	ways := append(c.ways[:0], make([]choice, n+1)...)
	c.ways = ways
	for i := n - 1; i >= 0; i-- {
		ways[i] = choice{cost: ways[i+1].cost + 8}
		m := matches[i]
		// Lengths just below the steps of the format and the full one.
		for length := m.length; length >= minMatch; length-- {
			cost := ways[i+length].cost + 24
			if length > maxShortCopy || m.offset < min(length, wide) {
				cost += 8 * int32(2+(length-minMatch)/255)
			}
			if cost < ways[i].cost {
				ways[i] = choice{cost, uint16(length), uint16(m.offset)}
			}
			if length > 20 {
				length -= length >> 2
			}
		}
	}
	for i := 0; i < n; {
		w := ways[i]
		if w.length == 0 {
			i++
			continue
		}
		out.sequence(src, anchor, i, int(w.offset), int(w.length))
		i += int(w.length)
		anchor = i
	}
	return anchor
}
