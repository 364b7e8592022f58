package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
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

// scaled is a timeout at the chosen Timing.
func (c *Cluster) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) * c.o.Timing)
}

func (c *Cluster) raftConfig() *raft.Config {
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(c.id.NodeID)
	conf.HeartbeatTimeout = c.scaled(heartbeatTimeout)
	conf.ElectionTimeout = c.scaled(heartbeatTimeout)
	conf.LeaderLeaseTimeout = c.scaled(leaderLease)
	conf.CommitTimeout = commitTimeout
	conf.MaxAppendEntries = maxAppendEntries
	conf.BatchApplyCh = true
	conf.SnapshotInterval = snapshotInterval
	conf.SnapshotThreshold = snapshotThreshold
	conf.TrailingLogs = trailingLogs
	conf.ShutdownOnRemove = false
	conf.NoLegacyTelemetry = true
	conf.Logger = newRaftLog(c.log)
	return conf
}

// openRaft opens log and snapshots, makes a cluster of one where that is
// asked for, starts raft, and waits until what was known to be committed is
// applied.
func (c *Cluster) openRaft() (err error) {
	dog := &watchdog{limit: diskStall, exit: c.o.Exit, took: c.metrics.disk}
	if c.store, err = openStore(c.home.raft, dog); err != nil {
		return err
	}
	conf := c.raftConfig()
	if c.snaps, err = raft.NewFileSnapshotStoreWithLogger(c.home.raft, snapshotsKept, conf.Logger); err != nil {
		return fmt.Errorf("cluster: open snapshots: %w", err)
	}
	newest, err := c.snapshotted()
	if err != nil {
		return err
	}
	if err := c.whole(newest); err != nil {
		return err
	}
	c.trans = c.newTransport()
	if c.foundsAlone() {
		if err := c.found(conf); err != nil {
			return err
		}
	}
	if err := c.newRaft(conf); err != nil {
		return fmt.Errorf("cluster: start raft on %s: %s: %w", c.home.raft, startAnew, err)
	}
	c.metrics.watchLeaders(c.raft)
	if err := c.replay(); err != nil {
		return err
	}
	return c.hurry()
}

// whole refuses a log whose beginning is in no snapshot up to the index covered:
// raft would take what is left for all there is.
func (c *Cluster) whole(covered uint64) error {
	first, err := c.store.FirstIndex()
	if err != nil {
		return fmt.Errorf("cluster: read raft log: %w", err)
	}
	needed := max(first, 1) - 1
	if first == 0 { // a snapshot of the leader has replaced all of the log
		if needed, err = c.store.kept(); err != nil {
			return fmt.Errorf("cluster: read raft log: %w", err)
		}
	}
	if covered < needed {
		return fmt.Errorf("cluster: the snapshots in %s are gone or damaged: %s: they have the first %d entries of the raft log, and the log begins after %d", c.home.raft, startAnew, covered, needed)
	}
	return nil
}

// snapshotted is the index of the newest snapshot that can be read, 0 for none.
func (c *Cluster) snapshotted() (uint64, error) {
	list, err := c.snaps.List()
	if err != nil {
		return 0, fmt.Errorf("cluster: list snapshots: %w", err)
	}
	for _, s := range list { // newest first
		_, r, err := c.snaps.Open(s.ID) // checks the sum over all of it
		if err != nil {
			c.log.Error("a snapshot is damaged", "snapshot", s.ID, "err", err)
			continue
		}
		return s.Index, r.Close()
	}
	return 0, nil
}

// newRaft starts raft. Where it falls back to a snapshot before the
// beginning of the log, since the newest is of a later version, it panics.
func (c *Cluster) newRaft(conf *raft.Config) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("snapshots and log do not fit together: %v", p)
		}
	}()
	c.raft, err = raft.NewRaft(conf, c.machine, c.store, c.store, c.snaps, c.trans)
	return err
}

// startAnew is what can be done about a state that is not whole.
const startAnew = "empty the data directory to let this node join as a new one, or restore a snapshot if it is the only one"

// onlySelf is raft's membership of a new cluster.
func (c *Cluster) onlySelf() raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(c.id.NodeID), Address: raft.ServerAddress(c.id.NodeID)}}}
}

// replay applies what was known to be committed when the node stopped.
func (c *Cluster) replay() error {
	known, err := c.store.known()
	if err != nil {
		return fmt.Errorf("cluster: read raft log: %w", err)
	}
	return c.machine.replay(c.store, known)
}

// foundsAlone tells whether this node is to be a cluster of one, or was about
// to found one when it stopped.
func (c *Cluster) foundsAlone() bool {
	return c.id.Founding || c.id.ClusterID == "" && c.id.Promise.Cluster == "" && len(c.o.Join) == 0 && c.o.BootstrapExpect == 1
}

// found makes a new cluster with this node as its only voter. The id is
// written first, so that a crash at any point is finished by the next start.
func (c *Cluster) found(conf *raft.Config) error {
	if c.id.ClusterID == "" {
		c.id.ClusterID, c.id.Founding = randomID(), true
		if err := c.id.save(); err != nil {
			return err
		}
	}
	if err := c.port.SetCluster(c.id.ClusterID); err != nil {
		return err
	}
	err := raft.BootstrapCluster(conf, c.store, c.store, c.snaps, c.trans, c.onlySelf())
	if err != nil && !errors.Is(err, raft.ErrCantBootstrap) {
		return fmt.Errorf("cluster: make a new cluster: %w", err)
	}
	return nil
}

// hurry makes a lone voter ask for its own vote at once instead of waiting
// for a leader that cannot exist, and waits until all of its log is applied:
// what it has written, it has committed.
func (c *Cluster) hurry() error {
	if !c.lone() {
		return nil
	}
	c.trans.electSelf(c.id.NodeID)
	ctx, cancel := context.WithTimeout(context.Background(), hurryPatience)
	defer cancel()
	last, err := c.lastCommand()
	if err != nil {
		return err
	}
	if err := c.machine.await(ctx, last); err != nil {
		c.log.Info("not all of the log is applied yet", "error", err)
	}
	return nil
}

// lone tells whether this node is the only voter.
func (c *Cluster) lone() bool {
	voters := 0
	for _, s := range c.servers() {
		if s.Suffrage == raft.Voter {
			voters++
			if string(s.ID) != c.id.NodeID {
				return false
			}
		}
	}
	return voters == 1
}

// lastCommand is the index of the last entry of the log that the machine gets
// to see.
func (c *Cluster) lastCommand() (uint64, error) {
	first, err := c.store.FirstIndex()
	if err != nil {
		return 0, fmt.Errorf("cluster: read raft log: %w", err)
	}
	if first == 0 { // everything is in a snapshot
		return 0, nil
	}
	for index := c.raft.LastIndex(); index >= first && index > c.machine.applied.Load(); index-- {
		var l raft.Log
		if err := c.store.GetLog(index, &l); err != nil {
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
func (c *Cluster) servers() []raft.Server {
	f := c.raft.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return f.Configuration().Servers
}

// watchLeadership keeps c.leading: true once an entry of the own term is
// applied here.
func (c *Cluster) watchLeadership(ctx context.Context) {
	defer c.leading.Store(false)
	for {
		select {
		case leads := <-c.raft.LeaderCh():
			c.leading.Store(false)
			if !leads {
				continue
			}
			if err := c.raft.Barrier(0).Error(); err != nil {
				c.log.Info("leadership was lost at once", "error", err)
				continue
			}
			c.leading.Store(c.raft.State() == raft.Leader)
			c.log.Info("this node leads", "term", c.raft.CurrentTerm())
		case <-ctx.Done():
			return
		}
	}
}

func (c *Cluster) clusterID() string {
	c.idMu.Lock()
	defer c.idMu.Unlock()
	return c.id.ClusterID
}

// handOver gives the leadership to another voter, so that a restart costs no
// election timeout.
func (c *Cluster) handOver() {
	if c.raft.State() != raft.Leader || len(c.servers()) < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), handOverTime)
	defer cancel()
	if err := wait(ctx, c.raft.LeadershipTransfer()); err != nil {
		c.log.Info("leadership was not handed over", "error", err)
	}
}

// closeNetwork ends ports that were never run.
func (c *Cluster) closeNetwork() {
	if c.port != nil {
		c.port.Close()
	}
	if c.gossip != nil {
		c.gossip.Close()
	}
}

func (c *Cluster) closeRaft() {
	if c.raft != nil {
		if err := c.raft.Shutdown().Error(); err != nil {
			c.log.Warn("raft did not stop well", "error", err)
		}
	}
	if c.store != nil {
		if c.raft != nil {
			if err := c.store.keep(); err != nil {
				c.log.Warn("the commit index was not kept", "error", err)
			}
		}
		if err := c.store.Close(); err != nil {
			c.log.Warn("raft log was not closed well", "error", err)
		}
	}
}
