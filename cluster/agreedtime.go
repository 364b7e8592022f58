package cluster

import (
	"sync"
	"time"
)

// agreedTime is the clock by which a leader stamps entries and plans. It follows the clock of most
// members, but is never before the newest entry, which a leader with a wrong clock may have
// stamped. From such an entry on it runs at half speed, until the clocks catch up.
//
//	clock         12:00   12:10   12:20 ...  14:00   14:10
//	newest entry  13:00
//	agreed        13:00   13:05   13:10 ...  14:00   14:10
type agreedTime struct {
	own    func() time.Time // the clock of most members
	newest func() time.Time // stamp of the newest entry

	mu   sync.Mutex // guards the fields below
	last time.Time  // the last result
	read time.Time  // the own clock at that moment
}

// now returns the agreed time, which never goes back. While this node's clock is behind it, it advances
// at half the speed of that clock.
func (c *agreedTime) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	// A newer entry came from another leader: continue from there.
	own := c.own()
	if newest := c.newest(); newest.After(c.last) {
		c.last, c.read = newest, own
	}

	// Ignore a clock that was set back.
	at := c.last.Add(max(0, own.Sub(c.read)) / 2)
	if own.After(at) {
		at = own
	}

	c.last, c.read = at, own
	return at
}
