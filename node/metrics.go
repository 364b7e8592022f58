package node

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/gauge"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/chronicle"
	"github.com/shoalsearch/shoal/node/configure"
	"github.com/shoalsearch/shoal/node/history"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/node/job"
	"github.com/shoalsearch/shoal/shard"
)

// stateMetric is a gauge whose value is read from a snapshot of the node.
type stateMetric = gauge.Gauge[*snapshot]

// snapshot holds all that the gauges show, read at one moment.
type snapshot struct {
	node, version string
	name          string
	ready         bool
	leading       bool
	view          *catalog.View
	age           time.Duration // since the view was known to be current
	members       []cluster.Member
	repos         RepoCounts
	permissions   *job.PermissionState
	watches       watchState
	jobs          JobCounts
	here          []job.Progress // jobs that run on this node
	config        configure.FileStatus
	short         hold.Shortage // repositories with too few live copies
	untagged      int           // index files here with unknown symbols
	moves         int           // copies into this node under way
	fetches       int           // fetches under way that look for new commits
	fetching      time.Duration // how long the longest of these fetches has run
	files         int           // index files here
	bytes         int64
	older         shard.Rebuild
	tolerates     Tolerance
	saved         int64 // Unix seconds of the last back-up that this node wrote
	caches        []shard.CacheSize
	trail         chronicle.Trail // reads and refusals in this node's audit

	diskFree, diskTotal int64
	running, waiting    int // searches on this node
	kept                browse.KeptFiles
	history             history.Status
}

// newMetrics makes the counters and gauges of a node, and registers them.
func newMetrics(n *Node) *metrics {
	m := newCounters()

	// This counter is kept elsewhere and read on each scrape.
	copied := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "shoal_copied_bytes_total", Help: "Bytes of index files and mirrors that this node has copied from others.",
	}, func() float64 { return float64(n.data.transfers.Copied()) })
	state := gauge.New(func() (*snapshot, bool) { return n.snapshot(), true }, stateMetrics())

	for _, c := range []prometheus.Collector{copied, m.jobs, m.searches, m.seconds, m.exhaustive, m.leaves, m.damaged, m.unusable, m.letters, state} {
		n.opt.Registerer.Register(c) // registering twice is harmless
	}
	return m
}

// snapshot reads the state of the node and the cluster from which the gauges of one scrape are
// computed.
func (n *Node) snapshot() *snapshot {
	// Read one view and one list of members, so that all gauges show the same moment.
	view, members := n.cluster.View(), n.cluster.Members()
	tally := n.census.At(view, hold.LiveOf(members))
	s := &snapshot{
		node:    n.cluster.Self(),
		version: n.opt.Version,
		name:    n.opt.Name,
		ready:   n.Ready().Ready,
		leading: n.cluster.Leading(),
		view:    view,
		age:     n.cluster.Age(),
		members: members,
		repos:   repoCounts(tally, nil),

		permissions: n.permissions.Of(view),
		watches:     n.watchState(),
		jobs:        jobCounts(view, tally, true),
		here:        n.jobs.Runner.Running(),
		config:      n.config.State(),
		short:       tally.Shortage(n.opt.Replicas),

		untagged: sumOf(n.jobs.Symbols.Unknown()),
		history:  n.history.Status(),

		moves: n.data.copier.Moves(view),
		files: len(n.set.Names()),
		bytes: n.set.Bytes(),
		older: n.set.Older(),

		caches: slices.Concat(n.set.Caches(), n.Search.Caches()),
	}

	s.tolerates = tolerance(n.memberStatus(view, tally), s.short, n.cluster.Leader())
	s.saved = n.began.Unix()
	if at := n.Operate.Archive.Saved(); !at.IsZero() {
		s.saved = at.Unix()
	}
	s.trail = n.Chronicle.Trail()
	s.diskFree, s.diskTotal = n.opt.Space(n.opt.Dir)

	// began is only valid while a fetch runs.
	fetches, _, began := n.jobs.Poller.Polls()
	if s.fetches = fetches; fetches > 0 {
		s.fetching = n.opt.Now().Sub(began)
	}

	s.running, s.waiting = n.lanes.searches()
	s.kept = n.Browse.KeptFiles()
	return s
}

// stateMetrics returns the gauges of the cluster, then those of this node.
func stateMetrics() []stateMetric {
	return slices.Concat(clusterMetrics(), connectionMetrics(), permissionMetrics(), watchMetrics(), hereMetrics(), cacheMetrics(), keptMetrics(), historyMetrics(), olderMetrics())
}

// clusterMetrics returns the metrics about this node in its cluster.
func clusterMetrics() []stateMetric {
	return []stateMetric{
		{Desc: gauge.Desc("shoal_node_info", "Always 1; the labels tell the version, the id and the name of the node.", "version", "node", "name"),
			Read: func(s *snapshot, emit gauge.Emit) { emit(1, s.version, s.node, s.name) }},
		{Desc: gauge.Desc("shoal_ready", "1 while this node is ready, as /readyz says."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(gauge.Truth(s.ready)) }},
		{Desc: gauge.Desc("shoal_leading", "1 while this node leads the cluster."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(gauge.Truth(s.leading)) }},
		{Desc: gauge.Desc("shoal_catalog_index", "Index of the newest entry that this node has applied."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(float64(s.view.Index())) }},
		{Desc: gauge.Desc("shoal_catalog_age_seconds", "For how long this node may have missed changes of the catalog."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(s.age.Seconds()) }},

		{Desc: gauge.Desc("shoal_members", "Members of the cluster, by whether they can be reached.", "alive"),
			Read: func(s *snapshot, emit gauge.Emit) {
				alive, dead := 0, 0
				for _, m := range s.members {
					if m.Alive {
						alive++
					} else {
						dead++
					}
				}
				emit(float64(alive), "true")
				emit(float64(dead), "false")
			}},

		{Desc: gauge.Desc("shoal_tolerates", "How many nodes may still fail, by what goes on without them: changes, searches; -1 where they do not go on now.", "of"),
			Read: func(s *snapshot, emit gauge.Emit) {
				emit(float64(s.tolerates.Writes), "changes")
				emit(float64(s.tolerates.Searches), "searches")
			}},
		{Desc: gauge.Desc("shoal_snapshot_saved_timestamp_seconds", "When this node last gave a back-up of the catalog; if it never did, when it started."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(float64(s.saved)) }},

		{Desc: gauge.Desc("shoal_clock_apart_seconds", "The most that the clock of another member that can be reached differs from that of this node, to the half of a second."),
			Read: func(s *snapshot, emit gauge.Emit) {
				var most time.Duration
				for _, m := range s.members {
					if m.Alive {
						most = max(most, m.Ahead.Abs())
					}
				}
				emit(most.Seconds())
			}},

		{Desc: gauge.Desc("shoal_repos", "Repositories of the catalog, by state: all, indexed, failed.", "state"),
			Read: func(s *snapshot, emit gauge.Emit) {
				emit(float64(s.repos.Total), "all")
				emit(float64(s.repos.Indexed), "indexed")
				emit(float64(s.repos.Failed), "failed")
			}},
		{Desc: gauge.Desc("shoal_jobs", "Jobs of the cluster, by state.", "state"),
			Read: func(s *snapshot, emit gauge.Emit) {
				emit(float64(s.jobs.Pending), "pending")
				emit(float64(s.jobs.Running), "running")
				emit(float64(s.jobs.Failed), "failed")
			}},
	}
}

// emitAll emits each value with its key as the label.
func emitAll(values map[string]int64, emit gauge.Emit) {
	for label, v := range values {
		emit(float64(v), label)
	}
}

// hereMetrics returns the metrics about the data and the work of this node.
func hereMetrics() []stateMetric {
	return []stateMetric{
		{Desc: gauge.Desc("shoal_jobs_here", "Jobs that run on this node, by kind and step.", "kind", "step"),
			Read: func(s *snapshot, emit gauge.Emit) {
				count := map[[2]string]int{}
				for _, p := range s.here {
					count[[2]string{p.Kind.String(), p.Step}]++
				}
				for k, v := range count {
					emit(float64(v), k[0], k[1])
				}

				// A kind without a running job is 0, not absent.
				for _, kind := range catalog.JobKinds() {
					if !slices.ContainsFunc(s.here, func(p job.Progress) bool { return p.Kind == kind }) {
						emit(0, kind.String(), "")
					}
				}
			}},

		{Desc: gauge.Desc("shoal_audit_lines_total", "Reads and refusals that this node has written down for the audit.", "files"), Count: true,
			Read: func(s *snapshot, emit gauge.Emit) { emitAll(s.trail.Written, emit) }},
		{Desc: gauge.Desc("shoal_audit_lost_total", "Reads and refusals that this node could not write down for the audit.", "files"), Count: true,
			Read: func(s *snapshot, emit gauge.Emit) { emitAll(s.trail.Lost, emit) }},
		{Desc: gauge.Desc("shoal_audit_bytes", "Bytes of the audit's files on this node."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(float64(s.trail.Bytes)) }},

		{Desc: gauge.Desc("shoal_config_refused", "1 while the configuration file of this node is refused."),
			Read: func(s *snapshot, emit gauge.Emit) {
				emit(gauge.Truth(len(s.config.Errors) > 0))
			}},
		{Desc: gauge.Desc("shoal_config_file_differs", "1 while the configuration file of this node is not the one in force."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(gauge.Truth(s.config.Differs)) }},
		{Desc: gauge.Desc("shoal_config_errors", "Errors in the configuration file of this node."),
			Read: func(s *snapshot, emit gauge.Emit) {
				emit(float64(len(s.config.Errors)))
			}},

		// Copies: too few, none, and those on their way.
		{Desc: gauge.Desc("shoal_under_replicated_repos", "Repositories with fewer live copies than wanted."),
			Read: func(s *snapshot, emit gauge.Emit) {
				emit(float64(s.short.Few.GetCardinality()))
			}},
		{Desc: gauge.Desc("shoal_repos_without_live_copy", "Repositories of which something has no live copy: they are made anew from their remotes."),
			Read: func(s *snapshot, emit gauge.Emit) {
				emit(float64(s.short.None.GetCardinality()))
			}},

		{Desc: gauge.Desc("shoal_files_with_unknown_symbols", "Files on this node whose symbols are not known, since ctags failed on them."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(float64(s.untagged)) }},
		{Desc: gauge.Desc("shoal_copies_here", "Copies of files and mirrors into this node that are under way."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(float64(s.moves)) }},
		{Desc: gauge.Desc("shoal_fetches_here", "Repositories that this node fetches to see whether something is new."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(float64(s.fetches)) }},
		{Desc: gauge.Desc("shoal_fetch_longest_seconds", "For how long the longest of the fetches that shoal_fetches_here counts has run; 0 where none does."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(s.fetching.Seconds()) }},

		// What this node has on disk, and what it is busy with.
		{Desc: gauge.Desc("shoal_shard_files", "Index files of this node."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(float64(s.files)) }},
		{Desc: gauge.Desc("shoal_shard_bytes", "Bytes of the index files of this node."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(float64(s.bytes)) }},
		{Desc: gauge.Desc("shoal_disk_bytes", "Bytes of the volume of the data directory, by kind: free, total.", "kind"),
			Read: func(s *snapshot, emit gauge.Emit) {
				emit(float64(s.diskFree), "free")
				emit(float64(s.diskTotal), "total")
			}},
		{Desc: gauge.Desc("shoal_searches_here", "Searches on the processors of this node, and waiting for them.", "state"),
			Read: func(s *snapshot, emit gauge.Emit) {
				emit(float64(s.running), "running")
				emit(float64(s.waiting), "waiting")
			}},
	}
}

// cacheMetrics returns the gauges of the caches of searches.
func cacheMetrics() []stateMetric {
	return []stateMetric{
		{Desc: gauge.Desc("shoal_search_cache_bytes", "Bytes of memory that searches on this node remember things in.", "cache"),
			Read: func(s *snapshot, emit gauge.Emit) {
				for _, c := range s.caches {
					emit(float64(c.Bytes), c.Name)
				}
			}},
		{Desc: gauge.Desc("shoal_search_cache_limit_bytes", "Bytes that shoal_search_cache_bytes stays below, but for the last group of each file.", "cache"),
			Read: func(s *snapshot, emit gauge.Emit) {
				for _, c := range s.caches {
					emit(float64(c.Most), c.Name)
				}
			}},
	}
}

// keptMetrics returns the metrics of files that are indexed by name only. A grep in one
// repository reads them.
func keptMetrics() []stateMetric {
	return []stateMetric{
		{Desc: gauge.Desc("shoal_kept_files_searched_total", "Files kept by name only that this node has searched, by what it took: sketch (of the text, which rules out a match), memory (the text, remembered), mirror.", "by"), Count: true,
			Read: func(s *snapshot, emit gauge.Emit) {
				emit(float64(s.kept.Sketched), "sketch")
				emit(float64(s.kept.Remembered), "memory")
				emit(float64(s.kept.Read), "mirror")
			}},
		{Desc: gauge.Desc("shoal_kept_files_bytes", "Bytes of memory that this node remembers files kept by name only in."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(float64(s.kept.Bytes)) }},
	}
}

// historyMetrics returns the gauges of the index of changes.
func historyMetrics() []stateMetric {
	return []stateMetric{
		{Desc: gauge.Desc("shoal_history_repositories", "Repositories with a mirror here, by whether their commits are indexed: covered, waiting, excluded.", "state"),
			Read: func(s *snapshot, emit gauge.Emit) {
				emit(float64(s.history.Covered), "covered")
				emit(float64(s.history.Repositories-s.history.Covered), "waiting")
				emit(float64(s.history.Excluded), "excluded")
			}},
		{Desc: gauge.Desc("shoal_history_commits", "Commits that are indexed here."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(float64(s.history.Commits)) }},
		{Desc: gauge.Desc("shoal_history_bytes", "Bytes of the index of commits here."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(float64(s.history.Bytes)) }},
	}
}

// olderMetrics returns the gauges of index files that an upgrade still has to rebuild.
func olderMetrics() []stateMetric {
	return []stateMetric{
		{Desc: gauge.Desc("shoal_older_files", "Index files of this node of an earlier version, which are made anew, by whether this version reads them.", "read"),
			Read: func(s *snapshot, emit gauge.Emit) {
				emit(float64(s.older.Left-s.older.Unread), "true")
				emit(float64(s.older.Unread), "false")
			}},
	}
}
