package symbols

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
)

// interner numbers distinct names in the order in which they come. There are millions of names, so
// neither the chunks that store them nor the hash table has pointers: the garbage collector need
// not scan them.
type interner struct {
	seed   maphash.Seed
	chunks [][]byte // for each name its length in two bytes, then its bytes
	at     []uint32 // by number: its position in chunks, which is index of the chunk * chunkBytes + offset
	slots  []uint64 // hash table with open addressing: hash, and in the lower half number + 1; 0 is free
}

// chunkBytes is the size of a chunk. The first chunks start smaller and grow, because a small
// repository has few names.
const (
	chunkBytes = 1 << 16
	firstChunk = 1 << 10
)

func newInterner() *interner {
	return &interner{seed: maphash.MakeSeed(), slots: make([]uint64, 1<<10)}
}

// hash returns the hash of a name, which the caller passes to intern.
func (t *interner) hash(name []byte) uint32 { return uint32(maphash.Bytes(t.seed, name) >> 32) }

// intern returns the number of a name, and adds the name if it is new. It returns false if there is
// no room for it.
func (t *interner) intern(name []byte, hash uint32) (uint32, bool) {
	// Linear probing ends at a free slot: at least an eighth of the slots are free.
	mask := uint32(len(t.slots) - 1)
	i := hash & mask
	for ; t.slots[i] != 0; i = (i + 1) & mask {
		if s := t.slots[i]; uint32(s>>32) == hash && bytes.Equal(t.name(uint32(s)-1), name) {
			return uint32(s) - 1, true
		}
	}

	at, ok := t.appendName(name)
	if !ok {
		return 0, false
	}

	t.at = append(t.at, at)
	t.slots[i] = uint64(hash)<<32 | uint64(len(t.at))

	if len(t.at) > len(t.slots)/8*7 {
		t.grow()
	}
	return uint32(len(t.at) - 1), true
}

// appendName appends a name to the chunks and returns its position, or false if there is no room.
func (t *interner) appendName(name []byte) (at uint32, ok bool) {
	if 2+len(name) > chunkBytes {
		return 0, false
	}

	// A name lies in one chunk: begin the next if there is no room.
	last := len(t.chunks) - 1
	if last < 0 || len(t.chunks[last])+2+len(name) > chunkBytes {
		if last++; last == 1<<32/chunkBytes {
			return 0, false
		}
		t.chunks = append(t.chunks, make([]byte, 0, min(chunkBytes, firstChunk<<(8*last))))
	}

	c := t.chunks[last]
	at = uint32(last*chunkBytes + len(c))
	c = binary.LittleEndian.AppendUint16(c, uint16(len(name)))
	t.chunks[last] = append(c, name...)
	return at, true
}

// grow doubles the number of slots of the hash table.
func (t *interner) grow() {
	slots := make([]uint64, 2*len(t.slots))
	mask := uint32(len(slots) - 1)
	for _, s := range t.slots {
		if s == 0 {
			continue
		}

		// All names in the table are different, so take the first free slot.
		i := uint32(s>>32) & mask
		for slots[i] != 0 {
			i = (i + 1) & mask
		}

		slots[i] = s
	}
	t.slots = slots
}

func (t *interner) len() int { return len(t.at) }

// name returns the bytes of a name by its number.
func (t *interner) name(n uint32) []byte {
	at := t.at[n]
	c := t.chunks[at/chunkBytes][at%chunkBytes:]
	end := 2 + int(binary.LittleEndian.Uint16(c))
	return c[2:end:end]
}

// dropTable frees the hash table. After that no name can be added.
func (t *interner) dropTable() { t.slots = nil }
