package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Times of the watchdogs, at Timing 1.
const (
	watchPause   = 2 * time.Second
	applyStuck   = 60 * time.Second // for one batch of entries
	transferLong = 30 * time.Second // for a transfer of leadership
	quietTime    = 2 * time.Second  // after which the leader marks what is committed
)

// watch ends the process when raft can no longer do its work, where raft
// itself would go on as if nothing was wrong, and writes marks.
func (c *Cluster) watch(ctx context.Context) {
	marked := uint64(0)
	for c.pause(ctx, c.scaled(watchPause)) {
		if since := c.machine.busy.Load(); since != 0 && time.Since(time.Unix(0, since)) > c.scaled(applyStuck) {
			c.o.Exit("an entry has been applied for more than a minute")
		}
		if since := c.transferring.Load(); since != 0 && time.Since(time.Unix(0, since)) > c.scaled(transferLong) {
			c.o.Exit("a transfer of leadership does not end")
		}
		marked = c.mark(ctx, marked)
	}
}

// mark writes an entry after a quiet while in which there were others: nodes
// know that an entry is committed from the next one on, and a node that starts
// without a quorum serves only what it knows to be committed.
func (c *Cluster) mark(ctx context.Context, marked uint64) uint64 {
	applied := c.machine.applied.Load()
	if !c.Leading() || len(c.servers()) < 2 || applied == marked || c.o.Now().Sub(c.View().Time()) < c.scaled(quietTime) {
		return marked
	}
	index, err := c.Propose(ctx, &catalog.Noop{})
	if err != nil {
		c.log.Debug("no mark", "error", fmt.Sprint(err))
		return marked
	}
	return index
}
