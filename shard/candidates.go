package shard

import (
	"slices"
	"sync"

	"github.com/shoalsearch/shoal/trigram"
)

// candidates remembers which units the postings of a shard named for the latest
// formulas. A file never changes, so nothing remembered can be out of date.
type candidates struct {
	mu   sync.Mutex // guards the fields below
	kept []namedUnits
	rows int // in kept
}

// namedUnits is what the postings named for a formula: unit rows, sorted.
type namedUnits struct {
	formula *trigram.Formula // of a pattern that is remembered too
	rows    []uint32
}

// The bounds of what is kept for a shard.
const (
	keepNamed = 32   // formulas
	keepRows  = 1024 // rows of all formulas; in a larger shard as many as it has units, a thousandth of the text
)

// get returns the rows for a formula. They must not be changed.
func (c *candidates) get(f *trigram.Formula) (rows []uint32, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.kept {
		if c.kept[i].formula == f {
			return c.kept[i].rows, true
		}
	}
	return nil, false
}

// put keeps the rows for a formula. All of them together are at most most rows; the
// oldest go.
func (c *candidates) put(n namedUnits, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.kept, func(k namedUnits) bool { return k.formula == n.formula }) {
		return
	}

	// The order is that of age: drop counts from the oldest.
	drop := 0
	for c.rows+len(n.rows) > most || len(c.kept)-drop == keepNamed {
		c.rows -= len(c.kept[drop].rows)
		drop++
	}

	c.kept = append(slices.Delete(c.kept, 0, drop), n)
	c.rows += len(n.rows)
}
