package cluster

import (
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/gauge"
)

// metrics are this node's metrics of the cluster. Durations are observed as they happen; everything
// else is read at each scrape.
type metrics struct {
	proposed *prometheus.HistogramVec // seconds of a write, by result
	disk     prometheus.Histogram     // seconds of a write of raft to the disk
	apply    prometheus.Histogram     // seconds to apply a batch
	leaders  atomic.Uint64            // leaders that this node has seen
	state    prometheus.Collector     // everything else; nil until register
}

// clusterGauge is a value that is read at each scrape.
type clusterGauge = gauge.Gauge[*Cluster]

func newMetrics() *metrics {
	// Buckets: 0.5 ms to 16 s for a write, which may wait for a leader; 0.1 ms to 13 s for the
	// disk, whose writes are given up after 15 s.
	return &metrics{
		proposed: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "shoal_propose_seconds", Help: "Seconds from a write until this node has applied it, by result: ok, failed.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}, []string{"result"}),

		disk: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "shoal_raft_disk_seconds", Help: "Seconds of a synced write of raft to the disk.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 18),
		}),

		apply: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "shoal_apply_seconds", Help: "Seconds to apply a batch of entries to the catalog.",
			Buckets: prometheus.ExponentialBuckets(0.00001, 4, 12),
		}),
	}
}

// register registers the metrics of a node. Registering twice is harmless.
func (m *metrics) register(r prometheus.Registerer, c *Cluster) {
	if r == nil {
		return
	}
	m.state = gauge.New(func() (*Cluster, bool) {
		return c, c.env.life.Err() == nil
	}, append(m.raftGauges(), peerGauges()...))
	for _, collector := range []prometheus.Collector{m.proposed, m.disk, m.apply, m.state} {
		if err := r.Register(collector); err != nil {
			c.env.log.Debug("metrics are not registered", "error", err)
		}
	}
}

// unregister removes the metrics from the registry.
func (m *metrics) unregister(r prometheus.Registerer) {
	if r == nil || m.state == nil {
		return
	}
	for _, c := range []prometheus.Collector{m.proposed, m.disk, m.apply, m.state} {
		r.Unregister(c)
	}
}

// numberGauge returns a gauge without labels.
func numberGauge(name, help string, value func(*Cluster) float64) clusterGauge {
	return clusterGauge{Desc: gauge.Desc(name, help), Read: func(c *Cluster, emit gauge.Emit) { emit(value(c)) }}
}

// raftGauges returns the gauges of raft on this node.
func (m *metrics) raftGauges() []clusterGauge {
	// A counter, so that a dashboard shows the rate of elections.
	leaders := numberGauge("shoal_raft_leaders_total", "Leaders that this node has seen since it was started.", func(*Cluster) float64 { return float64(m.leaders.Load()) })
	leaders.Count = true

	replaced := numberGauge("shoal_catalog_replaced_total", "How often the catalog of this node differed from that of the majority and was replaced, since it was started.",
		func(c *Cluster) float64 { return float64(c.arbiter.replaced.Load()) })
	replaced.Count = true

	return []clusterGauge{
		replaced,
		numberGauge("shoal_catalog_disputed", "1 while this node leads and takes no changes, since no majority of the nodes has one catalog.",
			func(c *Cluster) float64 { return gauge.Truth(c.arbiter.disputed.Load()) }),
		{Desc: gauge.Desc("shoal_raft_state", "1 for the state of this node in raft.", "state"), Read: raftState},
		{Desc: gauge.Desc("shoal_raft_servers", "Members of raft, by whether they vote.", "voter"), Read: emitRaftServers},
		leaders,

		numberGauge("shoal_raft_term", "The term of raft.", func(c *Cluster) float64 { return float64(c.replica.raft.CurrentTerm()) }),
		numberGauge("shoal_raft_contact_seconds", "Seconds since this node heard of the leader; 0 on the leader.", raftContact),

		numberGauge("shoal_raft_last_index", "Index of the newest entry of this node's log, committed or not.", func(c *Cluster) float64 { return float64(c.replica.raft.LastIndex()) }),
		numberGauge("shoal_raft_commit_index", "Index of the newest entry that this node knows to be committed.", func(c *Cluster) float64 { return float64(c.replica.raft.CommitIndex()) }),
		numberGauge("shoal_raft_applied_index", "Index of the newest entry that was handed to the catalog.", func(c *Cluster) float64 { return float64(c.replica.raft.AppliedIndex()) }),
		numberGauge("shoal_raft_snapshot_index", "Index of the newest entry that is in a snapshot of this node.", raftSnapshot),
		numberGauge("shoal_catalog_level", "Level of the catalog: the rules by which all nodes apply changes.", func(c *Cluster) float64 { return float64(c.View().Level().Number) }),
		{Desc: gauge.Desc("shoal_member_level", "Highest level of the catalog that the program of a member can apply; 0 where it reports none.", "node"), Read: emitMemberLevel},
		{Desc: gauge.Desc("shoal_cluster_key_info", "Always 1; the label tells the fingerprint of a cluster key that this node accepts.", "key"), Read: func(c *Cluster, emit gauge.Emit) {
			for _, k := range c.keys.valid() {
				emit(1, k.Fingerprint())
			}
		}},
		numberGauge("shoal_raft_log_bytes", "Bytes of the file of the raft log.", raftLogBytes),
	}
}

func raftState(c *Cluster, emit gauge.Emit) {
	for _, s := range []raft.RaftState{raft.Follower, raft.Candidate, raft.Leader} {
		emit(gauge.Truth(c.replica.raft.State() == s), s.String())
	}
}

func emitRaftServers(c *Cluster, emit gauge.Emit) {
	voters, others := 0, 0
	for _, s := range c.replica.servers() {
		if s.Suffrage == raft.Voter {
			voters++
		} else {
			others++
		}
	}

	emit(float64(voters), "true")
	emit(float64(others), "false")
}

// raftContact returns the seconds since this node heard of the leader; 0 on the leader.
func raftContact(c *Cluster) float64 {
	last := c.replica.raft.LastContact()
	if c.replica.raft.State() == raft.Leader || last.IsZero() {
		return 0
	}
	return clock.Since(last).Seconds()
}

// raftSnapshot reads the snapshot index, which raft offers only as text.
func raftSnapshot(c *Cluster) float64 {
	n, _ := strconv.ParseFloat(c.replica.raft.Stats()["last_snapshot_index"], 64)
	return n
}

func raftLogBytes(c *Cluster) float64 {
	info, err := os.Stat(filepath.Join(c.self.home.raft, logFile))
	if err != nil {
		return 0
	}
	return float64(info.Size())
}

// peerGauges returns the gauges of the other nodes as this one sees them.
func peerGauges() []clusterGauge {
	return []clusterGauge{
		{Desc: gauge.Desc("shoal_gossip_nodes", "Nodes that gossip has heard of, by whether they are alive.", "alive"), Read: emitGossipNodes},
		numberGauge("shoal_gossip_health", "0 while gossip of this node is in time; up to 7 the slower the node itself is.", func(c *Cluster) float64 { return float64(c.network.gossip.Health()) }),
		{Desc: gauge.Desc("shoal_wire_connections", "Open connections to and from other nodes, by protocol.", "protocol"), Read: wireConnections},
		{Desc: gauge.Desc("shoal_member_lag", "Entries by which the catalog of a member is behind this node's, as gossip last told.", "node"), Read: emitMemberLag},
	}
}

func emitGossipNodes(c *Cluster, emit gauge.Emit) {
	alive, dead := 0, 0
	for _, p := range c.network.gossip.Peers() {
		if p.Alive {
			alive++
		} else {
			dead++
		}
	}

	emit(float64(alive), "true")
	emit(float64(dead), "false")
}

func wireConnections(c *Cluster, emit gauge.Emit) {
	for protocol, n := range c.network.port.Connections() {
		emit(float64(n), string(protocol))
	}
}

// emitMemberLag emits how many log entries each member is behind.
func emitMemberLag(c *Cluster, emit gauge.Emit) {
	applied := c.replica.machine.applied.Load()
	for _, x := range c.Members() {
		// Gossip may be newer than this node's catalog, so never report less than 0.
		if !x.Self && x.Alive {
			emit(float64(applied)-float64(min(x.Load.Applied, applied)), x.ID)
		}
	}
}

// emitMemberLevel emits the highest level that each member can apply.
func emitMemberLevel(c *Cluster, emit gauge.Emit) {
	for m := range c.View().Members() {
		if m.State != catalog.MemberRemoved {
			emit(float64(m.Highest), m.ID)
		}
	}
}

// watchLeaders counts the leaders that raft reports.
func (m *metrics) watchLeaders(r *raft.Raft) {
	// The filter function counts; it never sends the observation.
	r.RegisterObserver(raft.NewObserver(nil, false, func(o *raft.Observation) bool {
		if l, ok := o.Data.(raft.LeaderObservation); ok && l.LeaderID != "" {
			m.leaders.Add(1)
		}
		return false
	}))
}

// observe records the time since a moment, in seconds.
func observe(h prometheus.Observer, since time.Time) { h.Observe(clock.Since(since).Seconds()) }
