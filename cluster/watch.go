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
	applyStuck   = 60 * time.Second // longest time to apply one batch of entries
	transferLong = 30 * time.Second // longest transfer of leadership
	quietTime    = 2 * time.Second  // after this time without writes the leader checks the catalogs
	checkEvery   = 30 * time.Second // after this time they are checked even without quiet
	snapshotAge  = time.Hour        // after this time a snapshot is taken, if anything changed
	snapshotLog  = 20 << 20         // after this many applied bytes a snapshot is taken
)

// checkEntries is after how many entries state hashes are compared.
const checkEntries = 1000

// watch ends the process if raft can no longer do its work but would carry on silently. It also
// lets the nodes compare their catalogs, raises the catalog's level, and takes snapshots.
type watch struct {
	*env
	replica  *replica
	proposer *proposer
	arbiter  *arbiter
	build    catalog.Build
	expect   int       // number of nodes that form the cluster
	started  time.Time // start time of this node
	exit     func(reason string)

	checked checkpoint
	saved   saver
}

// run watches until the context ends.
func (w *watch) run(ctx context.Context) {
	w.saved.at = clock.Now()
	for w.pause(ctx, w.scaled(watchPause)) {
		// Raft itself would wait for ever, and keep the leadership.
		if w.lastsTooLong(&w.replica.machine.busy, applyStuck) {
			w.exit("an entry has been applied for more than a minute")
		}
		if w.lastsTooLong(&w.proposer.transferring, transferLong) {
			w.exit("a transfer of leadership does not end")
		}

		w.checkCatalogs(ctx)
		w.raiseLevel(ctx)
		w.snapshotIfDue()
	}
}

// lastsTooLong reports whether work that began at a time has taken longer than atMost; nil: there
// is no work now.
func (w *watch) lastsTooLong(began *atomic.Pointer[time.Time], atMost time.Duration) bool {
	since := began.Load()
	return since != nil && clock.Since(*since) > w.scaled(atMost)
}

// leadsOthers reports whether this node leads a cluster with other nodes.
func (w *watch) leadsOthers() bool {
	return w.replica.leading.Load() && len(w.replica.servers()) > 1
}

// checkpoint is the latest check by this leader.
type checkpoint struct {
	at    time.Time
	index uint64 // last entry that needs no further check; 0: this node has just begun to lead
	open  bool   // too few voters sent their hashes
}

// checkpointAt returns the checkpoint for all entries up to applied. index is that of the check's
// own entry. If entries came between the two, they are not checked yet.
func checkpointAt(applied, index uint64, open bool) checkpoint {
	if index > applied+1 {
		index = applied
	}
	return checkpoint{clock.Now(), index, open}
}

// isDue reports whether a check is due. A new leader checks at once. After changes it checks when the
// log is quiet, after many entries, or after a while. After a check nothing is due, but an open
// check is repeated after a while.
func (k checkpoint) isDue(applied uint64, quiet, waited time.Duration) bool {
	if applied == k.index {
		return k.open && waited >= checkEvery
	}
	return k.index == 0 || quiet >= quietTime || applied >= k.index+checkEntries || waited >= checkEvery
}

// checkCatalogs writes an entry with this leader's state hash, if that is due. Each node compares
// it with its own hash after the same entry. The entry also confirms the entries before it: nodes
// know that an entry is committed only from the next one, and a node that starts without a quorum
// serves only committed entries.
func (w *watch) checkCatalogs(ctx context.Context) {
	k := &w.checked
	applied, v := w.replica.machine.applied.Load(), w.replica.view()
	if !w.leadsOthers() {
		k.index = 0
		w.arbiter.resign()
	}
	if k.index == applied && !k.open || !w.leadsOthers() {
		k.at = clock.Now() // nothing waits for a check
		return
	}
	quiet := w.proposer.time.now().Sub(v.Time())
	if !k.isDue(applied, w.unscaled(quiet), w.unscaled(clock.Since(k.at))) {
		return
	}

	// Write only a hash that a majority confirmed. Otherwise the entry is just a mark.
	claim := &catalog.CheckHash{At: v.Index(), Hash: v.Hash()}
	result := w.arbiter.judge(ctx, claim.At, claim.Hash)
	switch result {
	case outvoted, disputed:
		return
	case unproved:
		if k.at = clock.Now(); k.index == applied {
			return // the mark already exists
		}
		claim = &catalog.CheckHash{}
	}

	index, err := w.proposer.propose(ctx, claim)
	if err != nil {
		w.log.Debug("the catalogs were not compared", "error", fmt.Sprint(err))
		return
	}
	*k = checkpointAt(applied, index, result == unproved)
}

// saver records the state at the last snapshot.
type saver struct {
	at    time.Time
	index uint64
	bytes int64
}

// snapshotIfDue takes snapshots that raft, which only counts entries, would not take: after many
// bytes or a long time.
func (w *watch) snapshotIfDue() {
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
