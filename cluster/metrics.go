package cluster

import (
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what an operator sees of the cluster on this node. Times are
// measured where they pass; all else is read when it is asked for.
type metrics struct {
	c *Cluster

	proposed *prometheus.HistogramVec // seconds of a write, by result
	disk     prometheus.Histogram     // seconds of a write of raft to the disk
	apply    prometheus.Histogram     // seconds to apply a batch
	leaders  atomic.Uint64            // leaders that this node has seen

	gauges []clusterGauge
}

// clusterGauge is a value that is read at each scrape.
type clusterGauge struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(emit func(value float64, labels ...string))
}

func newMetrics(c *Cluster) *metrics {
	m := &metrics{
		c: c,
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
	m.gauges = append(m.raftGauges(), m.peerGauges()...)
	return m
}

// register makes the metrics visible. Twice the same is harmless.
func (m *metrics) register(r prometheus.Registerer) {
	if r == nil {
		return
	}
	for _, c := range []prometheus.Collector{m.proposed, m.disk, m.apply, m} {
		if err := r.Register(c); err != nil {
			m.c.log.Debug("metrics are not registered", "error", err)
		}
	}
}

// unregister takes them away again.
func (m *metrics) unregister(r prometheus.Registerer) {
	if r == nil {
		return
	}
	for _, c := range []prometheus.Collector{m.proposed, m.disk, m.apply, m} {
		r.Unregister(c)
	}
}

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

func (m *metrics) raftGauges() []clusterGauge {
	r := func() *raft.Raft { return m.c.raft }
	one := func(value func() float64) func(func(float64, ...string)) {
		return func(emit func(float64, ...string)) { emit(value()) }
	}
	const g = prometheus.GaugeValue
	return []clusterGauge{
		{gauge("shoal_raft_state", "1 for the state of this node in raft.", "state"), g, func(emit func(float64, ...string)) {
			for _, s := range []raft.RaftState{raft.Follower, raft.Candidate, raft.Leader} {
				emit(truth(r().State() == s), s.String())
			}
		}},
		{gauge("shoal_raft_term", "The term of raft."), g, one(func() float64 { return float64(r().CurrentTerm()) })},
		{gauge("shoal_raft_last_index", "Index of the newest entry of this node's log, committed or not."), g, one(func() float64 { return float64(r().LastIndex()) })},
		{gauge("shoal_raft_commit_index", "Index of the newest entry that this node knows to be committed."), g, one(func() float64 { return float64(r().CommitIndex()) })},
		{gauge("shoal_raft_applied_index", "Index of the newest entry that was handed to the catalog."), g, one(func() float64 { return float64(r().AppliedIndex()) })},
		{gauge("shoal_raft_snapshot_index", "Index of the newest entry that is in a snapshot of this node."), g, one(func() float64 {
			n, _ := strconv.ParseFloat(r().Stats()["last_snapshot_index"], 64)
			return n
		})},
		{gauge("shoal_raft_contact_seconds", "Seconds since this node heard of the leader; 0 on the leader."), g, one(func() float64 {
			if last := r().LastContact(); r().State() != raft.Leader && !last.IsZero() {
				return time.Since(last).Seconds()
			}
			return 0
		})},
		{gauge("shoal_raft_servers", "Members of raft, by whether they vote.", "voter"), g, func(emit func(float64, ...string)) {
			voters, others := 0, 0
			for _, s := range m.c.servers() {
				if s.Suffrage == raft.Voter {
					voters++
				} else {
					others++
				}
			}
			emit(float64(voters), "true")
			emit(float64(others), "false")
		}},
		{gauge("shoal_raft_log_bytes", "Bytes of the file of the raft log."), g, one(func() float64 {
			info, err := os.Stat(filepath.Join(m.c.home.raft, logFile))
			if err != nil {
				return 0
			}
			return float64(info.Size())
		})},
		{gauge("shoal_raft_leaders_total", "Leaders that this node has seen since it was started."), prometheus.CounterValue, one(func() float64 { return float64(m.leaders.Load()) })},
	}
}

func (m *metrics) peerGauges() []clusterGauge {
	const g = prometheus.GaugeValue
	return []clusterGauge{
		{gauge("shoal_gossip_nodes", "Nodes that gossip has heard of, by whether they are alive.", "alive"), g, func(emit func(float64, ...string)) {
			alive, dead := 0, 0
			for _, p := range m.c.gossip.Peers() {
				if p.Alive {
					alive++
				} else {
					dead++
				}
			}
			emit(float64(alive), "true")
			emit(float64(dead), "false")
		}},
		{gauge("shoal_gossip_health", "0 while gossip of this node is in time; up to 7 the slower the node itself is."), g, func(emit func(float64, ...string)) {
			emit(float64(m.c.gossip.Health()))
		}},
		{gauge("shoal_wire_connections", "Open connections to and from other nodes, by protocol.", "protocol"), g, func(emit func(float64, ...string)) {
			for protocol, n := range m.c.port.Connections() {
				emit(float64(n), string(protocol))
			}
		}},
		{gauge("shoal_member_lag", "Entries by which the catalog of a member is behind this node's, as gossip last told.", "node"), g, func(emit func(float64, ...string)) {
			applied := m.c.machine.applied.Load()
			for _, x := range m.c.Members() {
				if !x.Self && x.Alive {
					emit(float64(applied)-float64(min(x.Load.Applied, applied)), x.ID)
				}
			}
		}},
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, g := range m.gauges {
		out <- g.desc
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	select {
	case <-m.c.closed:
		return
	default:
	}
	for _, g := range m.gauges {
		g.read(func(value float64, labels ...string) {
			if metric, err := prometheus.NewConstMetric(g.desc, g.kind, value, labels...); err == nil {
				out <- metric
			}
		})
	}
}

// watchLeaders counts the leaders that raft tells of.
func (m *metrics) watchLeaders(r *raft.Raft) {
	// The filter does all the work: nothing is sent.
	r.RegisterObserver(raft.NewObserver(nil, false, func(o *raft.Observation) bool {
		if l, ok := o.Data.(raft.LeaderObservation); ok && l.LeaderID != "" {
			m.leaders.Add(1)
		}
		return false
	}))
}

// observe notes how long something took.
func observe(h prometheus.Observer, since time.Time) { h.Observe(time.Since(since).Seconds()) }
