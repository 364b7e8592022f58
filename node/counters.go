package node

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
)

// metrics are the Prometheus metrics of this node. Gauges read the state on each scrape; only
// events are counted as they happen.
type metrics struct {
	jobs       *prometheus.HistogramVec // seconds of an attempt, by kind and result
	searches   *prometheus.CounterVec   // searches, by why they ended
	seconds    prometheus.Histogram     // seconds of a search at the root
	exhaustive *prometheus.CounterVec   // searches, by whether the answer was exhaustive
	leaves     *prometheus.CounterVec   // calls to leaves, by result
	damaged    prometheus.Counter       // files put aside
	unusable   prometheus.Counter       // reads of files that are kept
	letters    *prometheus.CounterVec   // with links, by what came of sending them
}

func newCounters() *metrics {
	m := &metrics{
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
			Name: "shoal_search_answers_total", Help: "Answers of this node, by whether they were proved exhaustive, and what kept them from it: complete, limit (asked for by clients), timeout, shards_unavailable, symbols_unavailable, not_indexed.",
		}, []string{"exhaustive", "reason"}),

		leaves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shoal_leaf_calls_total", Help: "Calls to leaves by this node, by result: ok, failed, hedged.",
		}, []string{"result"}),
		damaged: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "shoal_damaged_files_total", Help: "Index files of this node that failed a check and were put aside.",
		}),
		unusable: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "shoal_unusable_files_total", Help: "How often an index file of this node could not be used though nothing shows that it is damaged. It is kept. This is a mistake of the program.",
		}),
		letters: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shoal_letters_total", Help: "Letters with links to sign in, by result: sent, failed.",
		}, []string{"result"}),
	}
	m.createAlertSeries()
	return m
}

// countAttempt counts one finished attempt of a job.
func (m *metrics) countAttempt(kind catalog.JobKind, took time.Duration, err error) {
	result := "good"
	if err != nil {
		result = "failed"
	}
	m.jobs.WithLabelValues(kind.String(), result).Observe(took.Seconds())
}

// createAlertSeries creates the series of the counters that alerts watch. Otherwise the first event would
// start a series instead of raising it from 0.
func (m *metrics) createAlertSeries() {
	for _, result := range []string{"ok", "failed", "hedged"} {
		m.leaves.WithLabelValues(result)
	}
	for _, result := range []string{"sent", "failed"} {
		m.letters.WithLabelValues(result)
	}
	m.exhaustive.WithLabelValues("true", "complete")
	for _, reason := range []search.FlushReason{search.FlushLimit, search.FlushTimeout, search.FlushUnavailable, search.FlushUntagged, notIndexed} {
		m.exhaustive.WithLabelValues("false", string(reason))
	}
}

// notIndexed is the reason of an answer that searched every index, while some repository has
// none.
const notIndexed = "not_indexed"

// exhaustiveLabels returns the metric labels of an answer: whether it was proved exhaustive, and if not,
// why.
func exhaustiveLabels(c coverage.Coverage) (exhaustive, reason string) {
	flush := search.FlushReasonOf(c)
	switch {
	case c.Exhaustive():
		return "true", "complete"
	case flush == search.FlushFinal:
		return "false", notIndexed
	}
	return "false", string(flush)
}

// countSearch counts one search.
func (m *metrics) countSearch(out *search.Response, err error) {
	// A failed search has no reason and no duration to count.
	if err != nil || out == nil {
		m.searches.WithLabelValues("error").Inc()
		return
	}
	m.searches.WithLabelValues(string(out.Stats.FlushReason)).Inc()
	m.seconds.Observe(out.Stats.Duration.Seconds())
	exhaustive, reason := exhaustiveLabels(out.Coverage)
	m.exhaustive.WithLabelValues(exhaustive, reason).Inc()
	m.leaves.WithLabelValues("hedged").Add(float64(out.Cluster.Hedged))
}
