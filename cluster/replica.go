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

// Settings of raft, at Timing 1. The timeouts are three times the library's:
// a node under load must not lose its leadership for a slow second.
const (
	heartbeatTimeout  = 2 * time.Second // two rounds of an election that both wait longest are over in 10 s
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

// replica is raft on this node, its log, and the catalog that it feeds. Its
// methods are safe for concurrent use once it has started.
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

// openLog opens log and snapshots, which must fit together.
func (r *replica) openLog(exit func(reason string)) (err error) {
	dog := &watchdog{limit: diskStall, exit: exit, took: r.metrics.disk}
	if r.store, err = openStore(r.self.home.raft, dog); err != nil {
		return err
	}
	if r.snaps, err = raft.NewFileSnapshotStoreWithLogger(r.self.home.raft, snapshotsKept, newRaftLog(r.log)); err != nil {
		return fmt.Errorf("cluster: open snapshots: %w", err)
	}

	// Before raft starts: it would begin with what is there and call that everything.
	newest, err := r.snapshotted()
	if err != nil {
		return err
	}
	return r.whole(newest)
}

// begin makes raft's part of a new cluster with this node as its only voter.
// Done again it changes nothing.
func (r *replica) begin(trans *transport) error {
	if err := r.dropTerm(); err != nil {
		return fmt.Errorf("cluster: make a new cluster: %w", err)
	}

	err := raft.BootstrapCluster(r.config(), r.store, r.store, r.snaps, trans, r.onlySelf())
	if err != nil && !errors.Is(err, raft.ErrCantBootstrap) {
		return fmt.Errorf("cluster: make a new cluster: %w", err)
	}
	return nil
}

// dropTerm takes the term back that a crash has left without an entry. Raft writes the
// term of a new cluster before its first entry, and would take it for the sign of a
// cluster that there is, of which this node would wait to hear for ever. The node
// founds that cluster itself: nobody else can have had a vote of it in that term.
func (r *replica) dropTerm() error {
	last, err := r.store.LastIndex()
	if err != nil {
		return err
	}
	covered, err := r.snapshotted()
	if err != nil || last > 0 || covered > 0 {
		return err
	}
	return r.store.SetUint64(currentTerm, 0)
}

// start starts raft, and returns when what was known to be committed is applied.
func (r *replica) start(trans *transport) error {
	r.trans = trans
	err := r.newRaft()
	// Raft goes on with an older snapshot, or says that there is none: neither is the reason.
	if newer := r.machine.refusedSnapshot(); newer != nil {
		return newer
	}
	if err != nil {
		return fmt.Errorf("cluster: start raft on %s: %s: %w", r.self.home.raft, startAnew, err)
	}
	r.metrics.watchLeaders(r.raft)

	known, err := r.store.known()
	if err != nil {
		return fmt.Errorf("cluster: read raft log: %w", err)
	}
	return r.machine.replay(r.store, known)
}

func (r *replica) config() *raft.Config {
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(r.self.node)

	// A leader gives its office up before another can be elected: lease <= heartbeat.
	conf.HeartbeatTimeout = r.scaled(heartbeatTimeout)
	conf.ElectionTimeout = r.scaled(heartbeatTimeout)
	conf.LeaderLeaseTimeout = r.scaled(leaderLease)

	conf.CommitTimeout = commitTimeout
	conf.MaxAppendEntries = maxAppendEntries

	conf.BatchApplyCh = true

	conf.SnapshotInterval = snapshotInterval
	conf.SnapshotThreshold = snapshotThreshold
	conf.TrailingLogs = trailingLogs

	// What this node does when it is removed the catalog says, not raft.
	conf.ShutdownOnRemove = false
	conf.NoLegacyTelemetry = true
	conf.Logger = newRaftLog(r.log)
	return conf
}

// whole refuses a log whose beginning is in no snapshot up to the index covered:
// raft would take what is left for all there is.
func (r *replica) whole(covered uint64) error {
	first, err := r.store.FirstIndex()
	if err != nil {
		return fmt.Errorf("cluster: read raft log: %w", err)
	}

	needed := max(first, 1) - 1
	if first == 0 { // a snapshot of the leader has replaced all of the log
		if needed, err = r.store.kept(); err != nil {
			return fmt.Errorf("cluster: read raft log: %w", err)
		}
	}

	if covered < needed {
		return fmt.Errorf("cluster: the snapshots in %s are gone or damaged: %s: they have the first %d entries of the raft log, and the log begins after %d", r.self.home.raft, startAnew, covered, needed)
	}
	return nil
}

// snapshotted is the index of the newest snapshot that can be read, 0 for none.
func (r *replica) snapshotted() (uint64, error) {
	list, err := r.snaps.List()
	if err != nil {
		return 0, fmt.Errorf("cluster: list snapshots: %w", err)
	}

	// A damaged one is passed over: with an older one and enough of the log all is there.
	for _, s := range list { // newest first
		_, file, err := r.snaps.Open(s.ID) // checks the sum over all of it
		if err != nil {
			r.log.Error("a snapshot is damaged", "snapshot", s.ID, "err", err)
			continue
		}
		return s.Index, file.Close()
	}
	return 0, nil
}

// newRaft starts raft. Where it falls back to a snapshot before the
// beginning of the log, since the newest is of a later version, it panics.
func (r *replica) newRaft() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("snapshots and log do not fit together: %v", p)
		}
	}()
	r.raft, err = raft.NewRaft(r.config(), r.machine, r.store, r.store, r.snaps, r.trans)
	return err
}

// startAnew is what can be done about a state that is not whole.
const startAnew = "move the data directory away to let this node join as a new one (`shoal remove` the old one), or restore a snapshot if it is the only one"

// onlySelf is raft's membership of a new cluster.
func (r *replica) onlySelf() raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(r.self.node), Address: raft.ServerAddress(r.self.node)}}}
}

// hurry makes a lone voter ask for its own vote at once instead of waiting
// for a leader that cannot exist, and returns when all of its log is applied:
// what it has written, it has committed.
func (r *replica) hurry() error {
	r.trans.electSelf(r.self.node)
	last, err := r.lastCommand()
	if err != nil {
		return err
	}

	// Bounded, since a start that waits for ever says nothing: the rest is applied later.
	ctx, cancel := context.WithTimeout(context.Background(), hurryPatience)
	defer cancel()
	if err := r.machine.await(ctx, last); err != nil {
		r.log.Info("not all of the log is applied yet", "error", err)
	}
	return nil
}

// lone reports whether this node is the only voter.
func (r *replica) lone() bool {
	voters := r.voters()
	return len(voters) == 1 && voters[0] == r.self.node
}

// lastCommand is the index of the last entry of the log that the machine gets
// to see.
func (r *replica) lastCommand() (uint64, error) {
	first, err := r.store.FirstIndex()
	if err != nil {
		return 0, fmt.Errorf("cluster: read raft log: %w", err)
	}
	if first == 0 { // everything is in a snapshot
		return 0, nil
	}

	// From the end: entries of raft itself, as of an election, the machine never sees.
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

// servers are the members that raft knows, by the newest configuration,
// which may not be committed yet.
func (r *replica) servers() []raft.Server {
	f := r.raft.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return f.Configuration().Servers
}

// voters are the ids of those that vote.
func (r *replica) voters() []string {
	var out []string
	for _, s := range r.servers() {
		if s.Suffrage == raft.Voter {
			out = append(out, string(s.ID))
		}
	}
	return out
}

// others are the members beside this one that may remember it, raft's voters
// among them.
func (r *replica) others() []string {
	var out []string
	for m := range r.view().Members() {
		if m.State != catalog.MemberRemoved && m.ID != r.self.node {
			out = append(out, m.ID)
		}
	}

	// A voter that has not announced itself is in no catalog, and may have heard of this node.
	for _, v := range r.voters() {
		if v != r.self.node && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// view is the catalog as this node has applied it.
func (r *replica) view() *catalog.View { return r.machine.view.Load() }

// leader is the id of the leader as this node knows it; empty when none.
func (r *replica) leader() string {
	_, id := r.raft.LeaderWithID()
	return string(id)
}

// term is raft's, 0 before it has started.
func (r *replica) term() uint64 {
	if r.raft == nil {
		return 0
	}
	return r.raft.CurrentTerm()
}

// far is how far this node is: its last entry and its term.
func (r *replica) far() mark { return mark{r.raft.LastIndex(), r.raft.CurrentTerm()} }

// position is the end of the log of this node.
func (r *replica) position() raftPosition {
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

// leaderIndex is the index that a linearizable read must see. The leader has
// applied an entry of its own term, so it has all that was acknowledged in
// earlier ones; what is acknowledged in this term it has applied before; and
// a quorum says that there is no later leader.
func (r *replica) leaderIndex(ctx context.Context) (uint64, error) {
	if !r.leading.Load() {
		return 0, errNotLeader
	}
	index := r.machine.applied.Load()
	if err := wait(ctx, r.raft.VerifyLeader()); err != nil {
		return 0, raftError(err)
	}
	return index, nil
}

// watchLeadership keeps leading: true once an entry of the own term is
// applied here.
func (r *replica) watchLeadership(ctx context.Context) {
	defer r.leading.Store(false)
	for {
		select {
		case leads := <-r.raft.LeaderCh():
			r.leading.Store(false)
			if !leads {
				continue
			}

			// It leads when it has applied all that others agreed on before.
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

// close stops raft, and keeps what it knows to be committed.
func (r *replica) close() {
	if r.raft != nil {
		if err := r.raft.Shutdown().Error(); err != nil {
			r.log.Warn("raft did not stop well", "error", err)
		}
	}

	if r.store != nil {
		// After raft has stopped: from here on nothing is committed any more.
		if r.raft != nil {
			if err := r.store.keep(); err != nil {
				r.log.Warn("the commit index was not kept", "error", err)
			}
		}

		if err := r.store.Close(); err != nil {
			r.log.Warn("raft log was not closed well", "error", err)
		}
	}
}
