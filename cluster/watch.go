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
	quietTime    = 2 * time.Second  // after which the leader checks what is committed
	checkEvery   = 30 * time.Second // after a change that no quiet follows
	snapshotAge  = time.Hour        // after which there is a new snapshot, if anything changed
	snapshotLog  = 20 << 20         // bytes applied after which there is one
)

// checkEntries is after how many entries state hashes are compared.
const checkEntries = 1000

// watch ends the process when raft can no longer do its work, where raft
// itself would go on as if nothing was wrong. It also has the nodes compare their
// catalogs, raises the level of the catalog, and takes snapshots.
type watch struct {
	*env
	replica  *replica
	proposer *proposer
	arbiter  *arbiter
	build    catalog.Build
	expect   int       // nodes that form a cluster together
	started  time.Time // when this node was
	exit     func(reason string)

	checked checkpoint
	saved   saver
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

		w.check(ctx)
		w.raise(ctx)
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

// checkpoint is the newest check of this leader.
type checkpoint struct {
	at    time.Time
	index uint64 // of the last entry that needs no other check; 0: this node began to lead
	open  bool   // too few voters told their hashes
}

// checkpointAt is the check of all entries up to applied, whose own entry has an index.
// Entries may have come between the two: nobody has compared what they led to.
func checkpointAt(applied, index uint64, open bool) checkpoint {
	if index > applied+1 {
		index = applied
	}
	return checkpoint{clock.Now(), index, open}
}

// due reports whether a state must be checked: soon where the log is quiet, and
// after many entries or a while where it is not, and at once by a new leader.
// Nothing follows a check itself, but after a while another try where it is open.
func (k checkpoint) due(applied uint64, quiet, waited time.Duration) bool {
	if applied == k.index {
		return k.open && waited >= checkEvery
	}
	return k.index == 0 || quiet >= quietTime || applied >= k.index+checkEntries || waited >= checkEvery
}

// check writes an entry with this leader's state hash, where that is due. Each node
// compares it with what it had after the same entry. The entry is a mark, too:
// nodes know that an entry is committed from the next one on, and a node that
// starts without a quorum serves only what it knows to be committed.
func (w *watch) check(ctx context.Context) {
	k := &w.checked
	applied, v := w.replica.machine.applied.Load(), w.replica.view()
	if !w.leadsOthers() {
		k.index = 0
		w.arbiter.resign()
	}
	if k.index == applied && !k.open || !w.leadsOthers() {
		k.at = clock.Now() // nothing waits to be checked
		return
	}
	quiet := w.proposer.time.now().Sub(v.Time())
	if !k.due(applied, w.unscaled(quiet), w.unscaled(clock.Since(k.at))) {
		return
	}

	// A hash that a majority has not confirmed is not told: the entry is a mark alone.
	claim := &catalog.CheckHash{At: v.Index(), Hash: v.Hash()}
	what := w.arbiter.judge(ctx, claim.At, claim.Hash)
	switch what {
	case outvoted, disputed:
		return
	case unproved:
		if k.at = clock.Now(); k.index == applied {
			return // the mark is there
		}
		claim = &catalog.CheckHash{}
	}

	index, err := w.proposer.propose(ctx, claim)
	if err != nil {
		w.log.Debug("the catalogs were not compared", "error", fmt.Sprint(err))
		return
	}
	*k = checkpointAt(applied, index, what == unproved)
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
