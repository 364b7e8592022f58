package cluster

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/clock"
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
// itself would go on as if nothing was wrong. It also writes marks, has the
// nodes compare their catalogs, and takes snapshots.
type watch struct {
	*env
	replica  *replica
	proposer *proposer
	exit     func(reason string)

	marked uint64 // index of the newest mark
	hashes checker
	saved  saver
}

// run looks until the context ends.
func (w *watch) run(ctx context.Context) {
	w.saved.at = clock.Now()
	for w.pause(ctx, w.scaled(watchPause)) {
		// Raft itself would wait for both without end, and keep the lead meanwhile.
		if w.lasts(&w.replica.machine.busy, applyStuck) {
			w.exit("an entry has been applied for more than a minute")
		}
		if w.lasts(&w.proposer.transferring, transferLong) {
			w.exit("a transfer of leadership does not end")
		}

		w.mark(ctx)
		w.compare(ctx)
		w.save()
	}
}

// lasts reports whether something that began and has not ended takes too long.
func (w *watch) lasts(began *atomic.Pointer[time.Time], atMost time.Duration) bool {
	since := began.Load()
	return since != nil && clock.Since(*since) > w.scaled(atMost)
}

// leadsOthers reports whether this node leads others.
func (w *watch) leadsOthers() bool {
	return w.replica.leading.Load() && len(w.replica.servers()) > 1
}

// mark writes an entry after a quiet while in which there were others: nodes
// know that an entry is committed from the next one on, and a node that starts
// without a quorum serves only what it knows to be committed.
func (w *watch) mark(ctx context.Context) {
	if !w.leadsOthers() || w.replica.machine.applied.Load() == w.marked {
		return
	}
	if quiet := w.proposer.time.now().Sub(w.replica.view().Time()); quiet < w.scaled(quietTime) {
		return
	}

	index, err := w.proposer.propose(ctx, &catalog.Noop{})
	if err != nil {
		w.log.Debug("no mark", "error", fmt.Sprint(err))
		return
	}
	w.marked = index
}

// checker is the last comparison of all nodes' state hashes.
type checker struct {
	at    time.Time
	index uint64 // of the comparison; 0 for none
	hash  uint64 // that this node had there
}

// compare has all nodes compare their state hash, now and then, while this
// node leads. A node whose hash is another stops.
func (w *watch) compare(ctx context.Context) {
	k := &w.hashes
	if !w.leadsOthers() {
		k.index = 0
		return
	}
	if clock.Since(k.at) < w.scaled(checkEvery) {
		return
	}

	k.at = clock.Now()
	index, results, err := w.proposer.proposeAll(ctx, &catalog.CheckHash{At: k.index, Hash: k.hash})

	// No answer tells nothing of the hash: the next comparison begins anew.
	if err != nil {
		k.index = 0
		return
	}
	k.index, k.hash = index, results[0].ID
}

// saver is what there was when the last snapshot was taken here.
type saver struct {
	at    time.Time
	index uint64
	bytes int64
}

// save takes snapshots that raft, which counts entries only, would not take:
// after many bytes, and after a long time.
func (w *watch) save() {
	s := &w.saved
	index, bytes := w.replica.machine.applied.Load(), w.replica.machine.bytes.Load()
	if index == s.index || bytes-s.bytes < snapshotLog && clock.Since(s.at) < w.scaled(snapshotAge) {
		return
	}

	s.at, s.index, s.bytes = clock.Now(), index, bytes
	if err := w.replica.raft.Snapshot().Error(); err != nil {
		w.log.Info("no snapshot", "error", err)
	}
}
