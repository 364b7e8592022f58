package node

import (
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/job"
)

// A kind of job without running jobs is 0, so that a dashboard does not say "no data".
func TestJobMetrics_idleKindsAreZero(t *testing.T) {
	t.Parallel()
	s := &snapshot{here: []job.Progress{{Kind: catalog.JobIndex, Step: "fetch"}, {Kind: catalog.JobIndex, Step: "fetch"}}}
	got := map[string]float64{}
	for _, m := range hereMetrics() {
		if strings.Contains(m.Desc.String(), `"shoal_jobs_here"`) {
			m.Read(s, func(v float64, labels ...string) { got[strings.Join(labels, " ")] = v })
		}
	}

	if got["index fetch"] != 2 || len(got) != len(catalog.JobKinds()) {
		t.Errorf("got %v, want 2 of index and a 0 for each other kind", got)
	}
	for _, kind := range catalog.JobKinds() {
		if v, there := got[kind.String()+" "]; kind != catalog.JobIndex && (!there || v != 0) {
			t.Errorf("%s: %v, %t", kind, v, there)
		}
	}
}

// Counters begin at 0, so that a rate includes the first event and a panel does not say "no
// data".
func TestMetrics_countersAreZeroBeforeTheFirstEvent(t *testing.T) {
	t.Parallel()
	m := &metrics{
		leaves:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "leaves"}, []string{"result"}),
		letters:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "letters"}, []string{"result"}),
		exhaustive: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "answers"}, []string{"exhaustive", "reason"}),
	}
	m.createAlertSeries()
	for name, c := range map[string]struct {
		of   prometheus.Collector
		want int
	}{"calls to leaves": {m.leaves, 3}, "letters": {m.letters, 2}, "answers": {m.exhaustive, 6}} {
		series := make(chan prometheus.Metric, 100)
		c.of.Collect(series)
		if len(series) != c.want {
			t.Errorf("%s: %d series before anything has happened, want %d", name, len(series), c.want)
		}
	}
}

// Metrics count searches of files indexed by name, by result.
func TestMetrics_countSearchesOfFilesIndexedOnlyByName(t *testing.T) {
	t.Parallel()
	s := &snapshot{kept: browse.KeptFiles{Sketched: 5, Remembered: 3, Read: 2, Bytes: 70}}
	got := map[string]float64{}
	for _, m := range keptMetrics() {
		m.Read(s, func(v float64, labels ...string) { got[strings.Join(labels, " ")] = v })
	}
	if want := map[string]float64{"sketch": 5, "memory": 3, "mirror": 2, "": 70}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Metrics have the fault tolerance as `shoal status` prints it, and the time of the last backup.
func TestMetrics_showTheFaultToleranceOfTheStatus(t *testing.T) {
	t.Parallel()
	s := &snapshot{tolerates: Tolerance{Searches: 1, Writes: -1}, saved: 7}
	got := map[string]float64{}
	for _, m := range clusterMetrics() {
		for _, name := range []string{"shoal_tolerates", "shoal_snapshot_saved_timestamp_seconds"} {
			if strings.Contains(m.Desc.String(), `"`+name+`"`) {
				m.Read(s, func(v float64, labels ...string) { got[name+strings.Join(labels, " ")] = v })
			}
		}
	}
	want := map[string]float64{"shoal_toleratessearches": 1, "shoal_tolerateschanges": -1, "shoal_snapshot_saved_timestamp_seconds": 7}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
