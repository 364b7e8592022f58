package shard

import (
	"sync"
	"sync/atomic"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/trigram"
)

// blockCache caches decoded blocks of content, and pages of the names of symbols. Searches often
// read the same files again, and copying a block takes a tenth of the time of decoding it. A search
// that reads very many blocks bypasses the cache, because it would only evict all others.
//
// It is set-associative: the hash of a block selects a row of four slots. In a row, a new block
// replaces the least recently used one. No lock is held longer than a copy takes.
type blockCache struct {
	rows  []blockRow
	bytes atomic.Int64 // allocated by all slots
}

// blockRow is the slots that some blocks share, the most recently used first.
type blockRow struct {
	mu    sync.Mutex // guards the field below
	slots [cacheWays]blockSlot
}

// blockSlot holds one block. It is empty while f is nil.
type blockSlot struct {
	f    *file.File
	row  int
	text []byte
}

const (
	// cacheRows rows of cacheWays blocks of at most 4,160 bytes are 51 MB.
	cacheRows  = 3 << 10
	cacheWays  = 4
	cacheBlock = trigram.UnitSize + trigram.Overlap
)

func newBlockCache() *blockCache { return &blockCache{rows: make([]blockRow, cacheRows)} }

// rowOf returns the only row of the cache that may hold a block.
func (c *blockCache) rowOf(f *file.File, row int) *blockRow {
	h := (uint64(row) + uint64(f.Size())<<20) * 0x9e3779b97f4a7c15
	return &c.rows[h>>32%cacheRows]
}

// get copies a block to dst and reports whether the cache has it.
func (c *blockCache) get(f *file.File, row int, dst []byte) bool {
	r := c.rowOf(f, row)
	r.mu.Lock()
	defer r.mu.Unlock()

	cached, ok := r.find(f, row)
	if !ok || len(cached) != len(dst) {
		return false
	}
	copy(dst, cached)
	return true
}

// find returns a block of the row and moves it to the front. The caller must hold the lock until
// the block is copied.
func (r *blockRow) find(f *file.File, row int) (text []byte, ok bool) {
	for i := range r.slots {
		if s := &r.slots[i]; s.f == f && s.row == row {
			text = s.text
			r.moveToFront(i)
			return text, true
		}
	}
	return nil, false
}

// Page implements symbols.PageCache: it appends a page of names to dst. A page is no larger than a
// block.
func (c *blockCache) Page(f *file.File, number int, dst []byte) ([]byte, bool) {
	r := c.rowOf(f, number)
	r.mu.Lock()
	defer r.mu.Unlock()
	text, ok := r.find(f, number)
	return append(dst, text...), ok
}

// KeepPage implements symbols.PageCache: it stores a copy of a page.
func (c *blockCache) KeepPage(f *file.File, number int, text []byte) { c.put(f, number, text) }

// moveToFront moves a slot to the front.
func (r *blockRow) moveToFront(i int) {
	if i > 0 {
		s := r.slots[i]
		copy(r.slots[1:i+1], r.slots[:i])
		r.slots[0] = s
	}
}

// put stores a copy of a block.
func (c *blockCache) put(f *file.File, row int, text []byte) {
	r := c.rowOf(f, row)
	r.mu.Lock()
	defer r.mu.Unlock()

	// Replace an older copy of the block, else the least recently used block.
	i := 0
	for i < cacheWays-1 && (r.slots[i].f != f || r.slots[i].row != row) {
		i++
	}

	s := &r.slots[i]
	if cap(s.text) < len(text) {
		s.text = make([]byte, 0, cacheBlock)
		c.bytes.Add(cacheBlock)
	}

	s.f, s.row, s.text = f, row, append(s.text[:0], text...)
	r.moveToFront(i)
}
