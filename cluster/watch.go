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
	checkEvery   = 10 * time.Minute // compares the state hashes of all nodes
	snapshotAge  = time.Hour        // after which there is a new snapshot, if anything changed
	snapshotLog  = 20 << 20         // bytes applied after which there is one
)

// watch ends the process when raft can no longer do its work, where raft
// itself would go on as if nothing was wrong, and writes marks.
func (c *Cluster) watch(ctx context.Context) {
	marked := uint64(0)
	hashes := &checker{c: c}
	saved := &saver{c: c, at: time.Now()}
	for c.pause(ctx, c.scaled(watchPause)) {
		if since := c.machine.busy.Load(); since != 0 && time.Since(time.Unix(0, since)) > c.scaled(applyStuck) {
			c.o.Exit("an entry has been applied for more than a minute")
		}
		if since := c.transferring.Load(); since != 0 && time.Since(time.Unix(0, since)) > c.scaled(transferLong) {
			c.o.Exit("a transfer of leadership does not end")
		}
		marked = c.mark(ctx, marked)
		hashes.look(ctx)
		saved.look()
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

// checker has all nodes compare their state hash, now and then, while this
// node leads. A node whose hash is another stops.
type checker struct {
	c     *Cluster
	at    time.Time
	index uint64 // of the last comparison
	hash  uint64 // that this node had there
}

func (k *checker) look(ctx context.Context) {
	if !k.c.Leading() || len(k.c.servers()) < 2 {
		k.index = 0
		return
	}
	if time.Since(k.at) < k.c.scaled(checkEvery) {
		return
	}
	k.at = time.Now()
	index, results, err := k.c.ProposeAll(ctx, &catalog.CheckHash{At: k.index, Hash: k.hash})
	if err != nil {
		k.index = 0
		return
	}
	k.index, k.hash = index, results[0].ID
}

// saver takes snapshots that raft, which counts entries only, would not take:
// after many bytes, and after a long time.
type saver struct {
	c     *Cluster
	at    time.Time
	index uint64
	bytes int64
}

func (s *saver) look() {
	index, bytes := s.c.machine.applied.Load(), s.c.machine.bytes.Load()
	if index == s.index || bytes-s.bytes < snapshotLog && time.Since(s.at) < s.c.scaled(snapshotAge) {
		return
	}
	s.at, s.index, s.bytes = time.Now(), index, bytes
	if err := s.c.raft.Snapshot().Error(); err != nil {
		s.c.log.Info("no snapshot", "error", err)
	}
}
