package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Settings of raft, at Timing 1. The timeouts are three times the library's default: a node under
// load must not lose its leadership for one slow second.
const (
	heartbeatTimeout  = 2 * time.Second // two election rounds with the longest waits take less than 10 s
	leaderLease       = 1500 * time.Millisecond
	commitTimeout     = 50 * time.Millisecond
	snapshotInterval  = 30 * time.Second
	snapshotThreshold = 4096
	trailingLogs      = 20480
	maxAppendEntries  = 128
	snapshotsKept     = 3
	diskStall         = 15 * time.Second
	handOverTime      = 5 * time.Second
	hurryPatience     = 10 * time.Second
	announceSoon      = 25 * time.Millisecond
	announcePause     = time.Second
	keyFileMode       = 0o600
	transportTimeout  = 10 * time.Second
	transportPool     = 3
)

// replica is raft on this node, with its log, and the catalog that it feeds. Its methods are safe
// for concurrent use after start.
type replica struct {
	*env
	self    *self
	machine *machine
	metrics *metrics

	store   *store
	snaps   *raft.FileSnapshotStore
	trans   *transport
	raft    *raft.Raft
	leading atomic.Bool // an entry of this term was applied here
}

// openLog opens the log and the snapshots, which must fit together.
func (r *replica) openLog(exit func(reason string)) (err error) {
	dog := &watchdog{limit: diskStall, exit: exit, duration: r.metrics.disk}
	if r.store, err = openStore(r.self.home.raft, dog); err != nil {
		return err
	}
	if r.snaps, err = raft.NewFileSnapshotStoreWithLogger(r.self.home.raft, snapshotsKept, newRaftLog(r.log)); err != nil {
		return fmt.Errorf("cluster: open snapshots: %w", err)
	}

	newest, err := r.lastSnapshot()
	if err != nil {
		return err
	}
	return r.checkComplete(newest)
}

// bootstrap writes the raft state of a new cluster with this node as its only voter. Calling it again
// changes nothing.
func (r *replica) bootstrap(trans *transport) error {
	if err := r.dropTerm(); err != nil {
		return fmt.Errorf("cluster: make a new cluster: %w", err)
	}

	err := raft.BootstrapCluster(r.config(), r.store, r.store, r.snaps, trans, r.onlySelf())
	if err != nil && !errors.Is(err, raft.ErrCantBootstrap) {
		return fmt.Errorf("cluster: make a new cluster: %w", err)
	}
	return nil
}

// dropTerm resets a term that a crash left without an entry. Raft writes the term of a new cluster
// before its first entry. After a crash in between it would believe in an existing cluster, and wait
// for its leader for ever. The reset is safe, because only this node founds the cluster: nobody else
// can have its vote in that term.
func (r *replica) dropTerm() error {
	last, err := r.store.LastIndex()
	if err != nil {
		return err
	}
	covered, err := r.lastSnapshot()
	if err != nil || last > 0 || covered > 0 {
		return err
	}
	return r.store.SetUint64(currentTerm, 0)
}

// start starts raft, and returns when all entries known to be committed are applied.
func (r *replica) start(trans *transport) error {
	r.trans = trans
	err := r.newRaft()
	// If a snapshot was refused, that is the reason for whatever else failed.
	if newer := r.machine.refusedSnapshot(); newer != nil {
		return newer
	}
	if err != nil {
		return fmt.Errorf("cluster: start raft on %s: %s: %w", r.self.home.raft, startAnew, err)
	}
	r.metrics.watchLeaders(r.raft)

	known, err := r.store.knownCommit()
	if err != nil {
		return fmt.Errorf("cluster: read raft log: %w", err)
	}
	return r.machine.replay(r.store, known)
}

// config returns the settings of raft.
func (r *replica) config() *raft.Config {
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(r.self.node)

	// lease <= heartbeat: a leader gives up before another can be elected.
	conf.HeartbeatTimeout = r.scaled(heartbeatTimeout)
	conf.ElectionTimeout = r.scaled(heartbeatTimeout)
	conf.LeaderLeaseTimeout = r.scaled(leaderLease)

	conf.CommitTimeout = commitTimeout
	conf.MaxAppendEntries = maxAppendEntries

	conf.BatchApplyCh = true

	conf.SnapshotInterval = snapshotInterval
	conf.SnapshotThreshold = snapshotThreshold
	conf.TrailingLogs = trailingLogs

	// The catalog decides what this node does when it is removed, not raft.
	conf.ShutdownOnRemove = false
	conf.NoLegacyTelemetry = true
	conf.Logger = newRaftLog(r.log)
	return conf
}

// checkComplete returns an error if entries are missing between the snapshots, which cover the index
// covered, and the beginning of the log. Raft would not notice that.
func (r *replica) checkComplete(covered uint64) error {
	first, err := r.store.FirstIndex()
	if err != nil {
		return fmt.Errorf("cluster: read raft log: %w", err)
	}

	needed := max(first, 1) - 1
	if first == 0 { // the leader's snapshot has replaced the whole log
		if needed, err = r.store.savedCommit(); err != nil {
			return fmt.Errorf("cluster: read raft log: %w", err)
		}
	}

	if covered < needed {
		return fmt.Errorf("cluster: the snapshots in %s are gone or damaged: %s: they have the first %d entries of the raft log, and the log begins after %d", r.self.home.raft, startAnew, covered, needed)
	}
	return nil
}

// lastSnapshot returns the index of the newest readable snapshot, or 0.
func (r *replica) lastSnapshot() (uint64, error) {
	list, err := r.snaps.List()
	if err != nil {
		return 0, fmt.Errorf("cluster: list snapshots: %w", err)
	}

	// Skip a damaged one: an older snapshot and the log may have everything.
	for _, s := range list { // newest first
		_, file, err := r.snaps.Open(s.ID) // verifies the checksum
		if err != nil {
			r.log.Error("a snapshot is damaged", "snapshot", s.ID, "err", err)
			continue
		}
		return s.Index, file.Close()
	}
	return 0, nil
}

// newRaft starts raft. It turns a panic into an error: raft panics if it falls back to a snapshot
// that ends before the log begins.
func (r *replica) newRaft() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("snapshots and log do not fit together: %v", p)
		}
	}()
	r.raft, err = raft.NewRaft(r.config(), r.machine, r.store, r.store, r.snaps, r.trans)
	return err
}

// startAnew tells what to do about an incomplete state.
const startAnew = "move the data directory away to let this node join as a new one (`shoal remove` the old one), or restore a snapshot if it is the only one"

// onlySelf returns the raft configuration of a new cluster.
func (r *replica) onlySelf() raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(r.self.node), Address: raft.ServerAddress(r.self.node)}}}
}

// leadAlone lets a lone voter elect itself at once, since no other leader can exist. It returns when
// the whole log is applied: everything that a lone voter wrote is committed.
func (r *replica) leadAlone() error {
	r.trans.electSelf(r.self.node)
	last, err := r.lastCommand()
	if err != nil {
		return err
	}

	// Limit the wait, so that the start does not hang silently. The rest is applied later.
	ctx, cancel := context.WithTimeout(context.Background(), hurryPatience)
	defer cancel()
	if err := r.machine.await(ctx, last); err != nil {
		r.log.Info("not all of the log is applied yet", "error", err)
	}
	return nil
}

// isLoneVoter reports whether this node is the only voter.
func (r *replica) isLoneVoter() bool {
	voters := r.voters()
	return len(voters) == 1 && voters[0] == r.self.node
}

// lastCommand returns the index of the last log entry that raft will pass to the machine, or 0 if there
// is none after what the machine has applied.
func (r *replica) lastCommand() (uint64, error) {
	first, err := r.store.FirstIndex()
	if err != nil {
		return 0, fmt.Errorf("cluster: read raft log: %w", err)
	}
	if first == 0 { // everything is in a snapshot
		return 0, nil
	}

	// Search backwards: the machine never sees raft's own entries, as of elections.
	for index := r.raft.LastIndex(); index >= first && index > r.machine.applied.Load(); index-- {
		var l raft.Log
		if err := r.store.GetLog(index, &l); err != nil {
			return 0, fmt.Errorf("cluster: read raft log: %w", err)
		}
		if l.Type == raft.LogCommand || l.Type == raft.LogConfiguration {
			return index, nil
		}
	}
	return 0, nil
}

// servers returns the members in raft's newest configuration, which may not be committed yet.
func (r *replica) servers() []raft.Server {
	f := r.raft.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return f.Configuration().Servers
}

// voters returns the ids of the servers with a vote.
func (r *replica) voters() []string {
	var out []string
	for _, s := range r.servers() {
		if s.Suffrage == raft.Voter {
			out = append(out, string(s.ID))
		}
	}
	return out
}

// otherMembers returns the other members that may remember this node, including raft's voters.
func (r *replica) otherMembers() []string {
	var out []string
	for m := range r.view().Members() {
		if m.State != catalog.MemberRemoved && m.ID != r.self.node {
			out = append(out, m.ID)
		}
	}

	// A voter that has not announced itself is not in the catalog, but may know this node.
	for _, v := range r.voters() {
		if v != r.self.node && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// view returns the catalog as applied by this node.
func (r *replica) view() *catalog.View { return r.machine.view.Load() }

// leader returns the id of the leader, or "" if this node knows none.
func (r *replica) leader() string {
	_, id := r.raft.LeaderWithID()
	return string(id)
}

// term returns raft's term, or 0 before raft has started.
func (r *replica) term() uint64 {
	if r.raft == nil {
		return 0
	}
	return r.raft.CurrentTerm()
}

// currentMark returns this node's last entry and term.
func (r *replica) currentMark() mark { return mark{r.raft.LastIndex(), r.raft.CurrentTerm()} }

// endOfLog returns the end of this node's log.
func (r *replica) endOfLog() raftPosition {
	last := r.raft.LastIndex()
	var l raft.Log
	if err := r.store.GetLog(last, &l); err == nil {
		return raftPosition{l.Term, last}
	}

	// The last entry is in a snapshot.
	if list, err := r.snaps.List(); err == nil && len(list) > 0 && list[0].Index == last {
		return raftPosition{list[0].Term, last}
	}
	return raftPosition{0, last}
}

// leaderIndex returns the index that a linearizable read must see. The leader has applied an entry
// of its own term, and so everything acknowledged in earlier terms. It applied what was
// acknowledged in this term. A quorum confirms that there is no later leader.
func (r *replica) leaderIndex(ctx context.Context) (uint64, error) {
	if !r.leading.Load() {
		return 0, errNotLeader
	}
	index := r.machine.applied.Load()
	if err := waitFuture(ctx, r.raft.VerifyLeader()); err != nil {
		return 0, translateRaftError(err)
	}
	return index, nil
}

// watchLeadership keeps leading up to date. It is true once an entry of the own term is applied
// here.
func (r *replica) watchLeadership(ctx context.Context) {
	defer r.leading.Store(false)
	for {
		select {
		case leads := <-r.raft.LeaderCh():
			r.leading.Store(false)
			if !leads {
				continue
			}

			// First apply everything that was committed before.
			if err := r.raft.Barrier(0).Error(); err != nil {
				r.log.Info("leadership was lost at once", "error", err)
				continue
			}

			r.leading.Store(r.raft.State() == raft.Leader)
			r.log.Info("this node leads", "term", r.raft.CurrentTerm())
		case <-ctx.Done():
			return
		}
	}
}

// close stops raft, and writes the commit index.
func (r *replica) close() {
	if r.raft != nil {
		if err := r.raft.Shutdown().Error(); err != nil {
			r.log.Warn("raft did not stop well", "error", err)
		}
	}

	if r.store != nil {
		// Raft has stopped, so the commit index is final.
		if r.raft != nil {
			if err := r.store.saveCommit(); err != nil {
				r.log.Warn("the commit index was not kept", "error", err)
			}
		}

		if err := r.store.Close(); err != nil {
			r.log.Warn("raft log was not closed well", "error", err)
		}
	}
}
