package shard

import (
	"sync"

	"github.com/shoalsearch/shoal/trigram"
)

// blockCache holds decoded blocks of content. People ask about the same places
// again and again, in a refined query or a repeated one, and copying a block
// costs a tenth of decoding it. Searches that read very many blocks pass it by:
// they would only drive everything out.
//
// A block has one slot where it can be, by its number: that is all the order
// there is, and no lock is held longer than a copy takes.
type blockCache struct{ slots []blockSlot }

// blockSlot is one place of the cache.
type blockSlot struct {
	mu   sync.Mutex // guards the fields below
	f    *file
	row  int
	text []byte
}

const (
	// cacheSlots blocks of at most 4,160 bytes are 34 MB when all are full.
	cacheSlots = 8 << 10
	// cacheCandidates is how many units of a shard an exhaustive search may
	// have to read through the cache.
	cacheCandidates = 2 << 10
	// cacheUnits is how many units of documents of a search that may stop
	// early go through the cache when it has more candidates than that.
	cacheUnits = 4 * pieceUnits
)

func newBlockCache() *blockCache { return &blockCache{slots: make([]blockSlot, cacheSlots)} }

func (c *blockCache) slot(f *file, row int) *blockSlot {
	h := (uint64(row) + uint64(len(f.data))<<20) * 0x9e3779b97f4a7c15
	return &c.slots[h>>32%cacheSlots]
}

// get copies a block to dst if it is there.
func (c *blockCache) get(f *file, row int, dst []byte) bool {
	s := c.slot(f, row)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f != f || s.row != row || len(s.text) != len(dst) {
		return false
	}
	copy(dst, s.text)
	return true
}

// put keeps a copy of a block.
func (c *blockCache) put(f *file, row int, text []byte) {
	s := c.slot(f, row)
	s.mu.Lock()
	defer s.mu.Unlock()
	if cap(s.text) < len(text) {
		s.text = make([]byte, 0, trigram.UnitSize+trigram.Overlap)
	}
	s.f, s.row, s.text = f, row, append(s.text[:0], text...)
}
