package shard

import (
	"slices"
	"sync"

	"github.com/shoalsearch/shoal/trigram"
)

// candidates caches the candidate units of a shard for recent formulas. A file never changes, so
// entries stay valid.
type candidates struct {
	mu      sync.Mutex // guards the fields below
	entries []namedUnits
	rows    int // in all entries
}

// namedUnits has the candidate units of a formula as rows of the shard, ascending.
type namedUnits struct {
	formula *trigram.Formula // compared by address: [patterns] returns the same pattern for the same text
	rows    []uint32
}

// Limits of the cache of one shard.
const (
	maxCachedFormulas = 32   // formulas
	maxCachedRows     = 1024 // rows over all formulas; a larger shard may cache one row for each unit, a thousandth of the text
)

// get returns the rows of a formula. The caller must not change them.
func (c *candidates) get(f *trigram.Formula) (rows []uint32, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.entries {
		if c.entries[i].formula == f {
			return c.entries[i].rows, true
		}
	}
	return nil, false
}

// put caches the rows of a formula, unless it is cached already. It drops the oldest entries while
// there are more than maxRows rows or more than maxCachedFormulas formulas.
func (c *candidates) put(n namedUnits, maxRows int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.entries, func(k namedUnits) bool { return k.formula == n.formula }) {
		return
	}

	drop := 0 // the oldest entries come first
	for c.rows+len(n.rows) > maxRows || len(c.entries)-drop == maxCachedFormulas {
		c.rows -= len(c.entries[drop].rows)
		drop++
	}

	c.entries = append(slices.Delete(c.entries, 0, drop), n)
	c.rows += len(n.rows)
}
