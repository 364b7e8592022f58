package lz

import "encoding/binary"

const (
	chainBits  = 15
	chainDepth = 8  // positions that are compared
	chainGood  = 48 // a match of that length ends the search, also for the bytes in it
)

// chains finds long matches by hash chains: for every position the one before with the
// same hash is kept. Positions count from the beginning of the dictionary; the block
// lies after it.
type chains struct {
	dict []byte
	text []byte   // dictionary and block
	head []int32  // by hash: the last position, -1 for none
	prev []uint16 // by position: distance to the position before with the same hash, 0 for none
	undo []int32  // hashes whose head the present block has changed
	old  []int32  // what these heads were

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

	// The dictionary is in the chains from the beginning, and is never taken out.
	for i := 0; i+4 <= len(dict); i++ {
		c.insert(i, false)
	}
	return c
}

// insert makes position i the head of its chain.
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

// longest returns the longest match at position i, of at least minMatch bytes, and how
// far back it is; 0 if there is none.
func (c *chains) longest(i int) (offset, length int) {
	end := len(c.text)
	if i+4 > end {
		return 0, 0
	}

	h := binary.LittleEndian.Uint32(c.text[i:]) * 2654435761 >> (32 - chainBits)
	at := int(c.head[h])
	for depth := chainDepth; at >= 0 && depth > 0 && i-at <= maxOffset; depth-- {
		// A match in the dictionary ends there.
		limit := end
		if at < len(c.dict) {
			limit = min(end, i+len(c.dict)-at)
		}

		// Only a match that goes one byte beyond the best so far is worth comparing.
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

// choice is the cheapest way on from a position.
type choice struct {
	cost   int32
	length uint16 // of the match taken here; 0 for a literal
	offset uint16
}

// encode takes the cheapest way through the block, by dynamic programming from its end:
//
//	cost(i) = min(8 + cost(i+1), 24 + cost(i+length) for each length of the match at i)
//
// in bits, where a length too large for a token costs bytes more. It returns where the
// last literals begin.
func (c *chains) encode(out *writer, src []byte) (anchor int) {
	// Literals up to the next match go with it; those after the last one are the caller's.
	ways := c.cheapest(c.search(src))

	for i := 0; i < len(src); {
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

// search returns the longest match at each position of the block, and leaves the chains
// as they were.
func (c *chains) search(src []byte) []found {
	base, n := len(c.dict), len(src)
	c.text = append(c.text[:base], src...)
	c.matches = append(c.matches[:0], make([]found, n)...)

	matches := c.matches
	for i := range n {
		// Inside a very long match, the rest of that match is good enough.
		if i > 0 && matches[i-1].length >= chainGood {
			matches[i] = found{matches[i-1].offset, matches[i-1].length - 1}
		} else {
			matches[i].offset, matches[i].length = c.longest(base + i)
		}

		if base+i+4 <= len(c.text) {
			c.insert(base+i, true)
		}
	}

	// Undo what the block inserted, last first.
	for i := len(c.undo) - 1; i >= 0; i-- {
		c.head[c.undo[i]] = c.old[i]
	}
	c.undo, c.old = c.undo[:0], c.old[:0]
	return matches
}

// cheapest returns the cheapest way on from each position.
func (c *chains) cheapest(matches []found) []choice {
	n := len(matches)
	c.ways = append(c.ways[:0], make([]choice, n+1)...)

	ways := c.ways

	// From the end: the ways from i+1 on are known when that from i is chosen.
	for i := n - 1; i >= 0; i-- {
		ways[i] = choice{cost: ways[i+1].cost + 8}
		m := matches[i]

		// Not each length: the longest, and shorter ones in steps that become smaller.
		for length := m.length; length >= minMatch; length-- {
			cost := ways[i+length].cost + 24
			if length > maxShortCopy || m.offset < min(length, wide) {
				cost += 8 * int32(2+(length-minMatch)/255)
			}
			if cost < ways[i].cost {
				ways[i] = choice{cost, uint16(length), uint16(m.offset)}
			}
			// Far above the minimum neighbours cost the same: a few of them are enough.
			if length > 20 {
				length -= length >> 2
			}
		}
	}
	return ways
}
