package cluster

import (
	"sync"
	"time"
)

// agreedTime is the clock that a leader stamps entries with, and plans by. It is
// the clock of most members, but never before the newest entry, which a leader that
// nobody could tell better may have stamped. Time does not stand still then: it goes
// on from there at half the speed, until the clock has caught up.
//
//	clock         12:00   12:10   12:20 ...  14:00   14:10
//	newest entry  13:00
//	agreed        13:00   13:05   13:10 ...  14:00   14:10
type agreedTime struct {
	own    func() time.Time // what most members say
	newest func() time.Time // when the newest entry was stamped

	mu   sync.Mutex // guards the fields below
	last time.Time  // what was told last
	read time.Time  // what the own clock said then
}

func (c *agreedTime) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	// Nothing is known of the time that went by since another leader's entry.
	own := c.own()
	if newest := c.newest(); newest.After(c.last) {
		c.last, c.read = newest, own
	}

	// A clock that was set back has not gone on.
	at := c.last.Add(max(0, own.Sub(c.read)) / 2)
	if own.After(at) {
		at = own
	}

	c.last, c.read = at, own
	return at
}
