package node

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/job"
)

// metrics is what this node tells of itself. States are read when they are
// asked for; only what passes is counted as it happens.
type metrics struct {
	n *Node

	jobs       *prometheus.HistogramVec // seconds of an attempt, by kind and result
	searches   *prometheus.CounterVec   // searches, by why they ended
	seconds    prometheus.Histogram     // seconds of a search at the root
	exhaustive *prometheus.CounterVec   // searches, by whether the answer was exhaustive
	leaves     *prometheus.CounterVec   // calls to leaves, by result
	damaged    prometheus.Counter       // files put aside

	state []stateMetric
}

// stateMetric is a gauge that is read from the state of the node.
type stateMetric struct {
	desc *prometheus.Desc
	read func(n *Node, s *snapshot, emit func(value float64, labels ...string))
}

// snapshot is what several gauges are read from.
type snapshot struct {
	view  *catalog.View
	repos RepoCounts
	jobs  JobCounts
}

func newMetrics(n *Node) *metrics {
	m := &metrics{
		n: n,
		jobs: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "shoal_job_seconds", Help: "Time of one attempt of a job on this node.",
			Buckets: prometheus.ExponentialBuckets(0.01, 4, 10),
		}, []string{"kind", "result"}),
		searches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shoal_searches_total", Help: "Searches asked of this node, by why they ended.",
		}, []string{"flush"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "shoal_search_seconds", Help: "Time of a search at the node that was asked.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 17),
		}),
		exhaustive: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shoal_search_answers_total", Help: "Answers of this node, by whether they were proved exhaustive.",
		}, []string{"exhaustive"}),
		leaves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shoal_leaf_calls_total", Help: "Calls to leaves by this node, by result: ok, failed, hedged.",
		}, []string{"result"}),
		damaged: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "shoal_damaged_files_total", Help: "Index files of this node that failed a check and were put aside.",
		}),
	}
	copied := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "shoal_copied_bytes_total", Help: "Bytes of index files and mirrors that this node has copied from others.",
	}, func() float64 { return float64(n.copies.Copied()) })
	m.state = stateMetrics()
	for _, c := range []prometheus.Collector{copied, m.jobs, m.searches, m.seconds, m.exhaustive, m.leaves, m.damaged, m} {
		n.opt.Registerer.Register(c) // twice the same is harmless
	}
	return m
}

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// stateMetrics are those of the cluster, then those of this node.
func stateMetrics() []stateMetric { return append(clusterMetrics(), hereMetrics()...) }

func clusterMetrics() []stateMetric {
	return []stateMetric{
		{gauge("shoal_node_info", "Always 1; the labels tell the version and the id of the node.", "version", "node"),
			func(n *Node, s *snapshot, emit func(float64, ...string)) { emit(1, n.opt.Version, n.cluster.Self()) }},
		{gauge("shoal_ready", "1 when this node answers requests."),
			func(n *Node, s *snapshot, emit func(float64, ...string)) { emit(truth(n.Ready().Ready)) }},
		{gauge("shoal_leading", "1 while this node leads the cluster."),
			func(n *Node, s *snapshot, emit func(float64, ...string)) { emit(truth(n.cluster.Leading())) }},
		{gauge("shoal_catalog_index", "Index of the newest entry that this node has applied."),
			func(n *Node, s *snapshot, emit func(float64, ...string)) { emit(float64(s.view.Index())) }},
		{gauge("shoal_catalog_age_seconds", "For how long this node may have missed changes of the catalog."),
			func(n *Node, s *snapshot, emit func(float64, ...string)) { emit(n.cluster.Age().Seconds()) }},
		{gauge("shoal_members", "Members of the cluster, by whether they can be reached.", "alive"),
			func(n *Node, s *snapshot, emit func(float64, ...string)) {
				alive, dead := 0, 0
				for _, m := range n.cluster.Members() {
					if m.Alive {
						alive++
					} else {
						dead++
					}
				}
				emit(float64(alive), "true")
				emit(float64(dead), "false")
			}},
		{gauge("shoal_repos", "Repositories of the catalog, by state: all, indexed, failed.", "state"),
			func(n *Node, s *snapshot, emit func(float64, ...string)) {
				emit(float64(s.repos.Total), "all")
				emit(float64(s.repos.Indexed), "indexed")
				emit(float64(s.repos.Failed), "failed")
			}},
		{gauge("shoal_jobs", "Jobs of the cluster, by state.", "state"),
			func(n *Node, s *snapshot, emit func(float64, ...string)) {
				emit(float64(s.jobs.Pending), "pending")
				emit(float64(s.jobs.Running), "running")
				emit(float64(s.jobs.Failed), "failed")
			}},
	}
}

func hereMetrics() []stateMetric {
	return []stateMetric{
		{gauge("shoal_jobs_here", "Jobs that run on this node, by kind and step.", "kind", "step"),
			func(n *Node, s *snapshot, emit func(float64, ...string)) {
				count := map[[2]string]int{}
				for _, p := range n.jobs.Running() {
					count[[2]string{job.KindName(p.Kind), p.Step}]++
				}
				for k, v := range count {
					emit(float64(v), k[0], k[1])
				}
			}},
		{gauge("shoal_config_refused", "1 while the configuration file of this node is refused."),
			func(n *Node, s *snapshot, emit func(float64, ...string)) {
				emit(truth(len(n.config.state().Errors) > 0))
			}},
		{gauge("shoal_config_errors", "Errors in the configuration file of this node."),
			func(n *Node, s *snapshot, emit func(float64, ...string)) {
				emit(float64(len(n.config.state().Errors)))
			}},
		{gauge("shoal_connection_failed", "1 while the last sync of a connection failed.", "connection"),
			func(n *Node, s *snapshot, emit func(float64, ...string)) {
				for c := range s.view.Connections() {
					emit(truth(c.Error != ""), c.Name)
				}
			}},
		{gauge("shoal_under_replicated_repos", "Repositories with fewer live copies than wanted."),
			func(n *Node, s *snapshot, emit func(float64, ...string)) {
				emit(float64(len(job.UnderReplicated(s.view, n.cluster, n.opt.Replicas))))
			}},
		{gauge("shoal_copies_here", "Copies of files and mirrors into this node that are under way."),
			func(n *Node, s *snapshot, emit func(float64, ...string)) { emit(float64(n.copier.Moves())) }},
		{gauge("shoal_hot_units", "Groups and slices that have more copies than the rest since they are searched so much."),
			func(n *Node, s *snapshot, emit func(float64, ...string)) { emit(float64(n.hotUnits(s.view))) }},
		{gauge("shoal_shard_files", "Index files of this node."),
			func(n *Node, s *snapshot, emit func(float64, ...string)) { emit(float64(len(n.set.Names()))) }},
		{gauge("shoal_shard_bytes", "Bytes of the index files of this node."),
			func(n *Node, s *snapshot, emit func(float64, ...string)) { emit(float64(n.set.Bytes())) }},
		{gauge("shoal_disk_bytes", "Bytes of the volume of the data directory, by kind: free, total.", "kind"),
			func(n *Node, s *snapshot, emit func(float64, ...string)) {
				free, total := diskSpace(n.opt.Dir)
				emit(float64(free), "free")
				emit(float64(total), "total")
			}},
		{gauge("shoal_searches_here", "Searches on the processors of this node, and waiting for them.", "state"),
			func(n *Node, s *snapshot, emit func(float64, ...string)) {
				running, waiting := n.lanes.running()
				emit(float64(running), "running")
				emit(float64(waiting), "waiting")
			}},
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Describe names the gauges of the state.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, s := range m.state {
		out <- s.desc
	}
}

// Collect reads them.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	snap := &snapshot{view: m.n.cluster.View()}
	snap.repos = countRepos(snap.view, nil)
	snap.jobs = countJobs(snap.view)
	for _, s := range m.state {
		s.read(m.n, snap, func(value float64, labels ...string) {
			if metric, err := prometheus.NewConstMetric(s.desc, prometheus.GaugeValue, value, labels...); err == nil {
				out <- metric
			}
		})
	}
}

// job counts one ended attempt.
func (m *metrics) job(kind catalog.JobKind, took time.Duration, err error) {
	result := "good"
	if err != nil {
		result = "failed"
	}
	m.jobs.WithLabelValues(job.KindName(kind), result).Observe(took.Seconds())
}

// search counts one answer.
func (m *metrics) search(out *SearchResponse, err error) {
	if err != nil || out == nil {
		m.searches.WithLabelValues("error").Inc()
		return
	}
	m.searches.WithLabelValues(string(out.Stats.FlushReason)).Inc()
	m.seconds.Observe(out.Stats.Duration.Seconds())
	if out.Exhaustive {
		m.exhaustive.WithLabelValues("true").Inc()
	} else {
		m.exhaustive.WithLabelValues("false").Inc()
	}
	m.leaves.WithLabelValues("hedged").Add(float64(out.Cluster.Hedged))
}
