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
// A block has a row of slots where it can be, by its number, and takes the one
// that was not asked for the longest: what several queries read stays, as far
// as there is room. No lock is held longer than a copy takes.
type blockCache struct{ rows []blockRow }

// blockRow is the places of some blocks, the one asked for last first.
type blockRow struct {
	mu    sync.Mutex // guards the field below
	slots [cacheWays]blockSlot
}

// blockSlot is one place of the cache.
type blockSlot struct {
	f    *file
	row  int
	text []byte
}

const (
	// cacheRows rows of cacheWays blocks of at most 4,160 bytes are 51 MB when
	// all are full.
	cacheRows = 3 << 10
	cacheWays = 4
	// cacheCandidates is how many units of a shard an exhaustive search may
	// have to read through the cache.
	cacheCandidates = 5 << 10
	// cacheUnits is how many units of documents of a search that may stop
	// early go through the cache when it has more candidates than that.
	cacheUnits = 4 * pieceUnits
)

func newBlockCache() *blockCache { return &blockCache{rows: make([]blockRow, cacheRows)} }

func (c *blockCache) place(f *file, row int) *blockRow {
	h := (uint64(row) + uint64(len(f.data))<<20) * 0x9e3779b97f4a7c15
	return &c.rows[h>>32%cacheRows]
}

// get copies a block to dst if it is there.
func (c *blockCache) get(f *file, row int, dst []byte) bool {
	r := c.place(f, row)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.slots {
		if s := &r.slots[i]; s.f == f && s.row == row && len(s.text) == len(dst) {
			copy(dst, s.text)
			r.first(i)
			return true
		}
	}
	return false
}

// first puts a slot before those that were asked for later.
func (r *blockRow) first(i int) {
	if i > 0 {
		s := r.slots[i]
		copy(r.slots[1:i+1], r.slots[:i])
		r.slots[0] = s
	}
}

// put keeps a copy of a block.
func (c *blockCache) put(f *file, row int, text []byte) {
	r := c.place(f, row)
	r.mu.Lock()
	defer r.mu.Unlock()
	i := 0
	for i < cacheWays-1 && (r.slots[i].f != f || r.slots[i].row != row) {
		i++
	}
	s := &r.slots[i]
	if cap(s.text) < len(text) {
		s.text = make([]byte, 0, trigram.UnitSize+trigram.Overlap)
	}
	s.f, s.row, s.text = f, row, append(s.text[:0], text...)
	r.first(i)
}
