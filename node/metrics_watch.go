package node

import (
	"github.com/shoalsearch/shoal/cluster/gauge"
	"github.com/shoalsearch/shoal/node/watch"
)

// watchState is what the metrics tell of watches.
type watchState struct {
	all, failing, backlogs int // in the cluster
	here                   watch.Counts
}

// watchMetrics returns the gauges of watches.
func watchMetrics() []stateMetric {
	return []stateMetric{
		{Desc: gauge.Desc("shoal_watches", "Watches of all accounts in the cluster."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(float64(s.watches.all)) }},
		{Desc: gauge.Desc("shoal_watches_failing", "Watches in the cluster whose receiver does not take what is sent."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(float64(s.watches.failing)) }},
		{Desc: gauge.Desc("shoal_watch_backlog_repositories", "Repositories in the cluster with something new that no watch has been checked against."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(float64(s.watches.backlogs)) }},
		{Desc: gauge.Desc("shoal_watch_checks_total", "Checks of watches on this node after an index, by result: done, failed.", "result"), Count: true,
			Read: func(s *snapshot, emit gauge.Emit) {
				emit(float64(s.watches.here.Checked), "done")
				emit(float64(s.watches.here.Failed), "failed")
			}},
		{Desc: gauge.Desc("shoal_watch_sends_total", "Requests to webhooks and letters of watches from this node, by result: sent, failed.", "result"), Count: true,
			Read: func(s *snapshot, emit gauge.Emit) {
				emit(float64(s.watches.here.Sent), "sent")
				emit(float64(s.watches.here.SendFailed), "failed")
			}},
		{Desc: gauge.Desc("shoal_watch_notices_total", "What checks on this node found for watches."), Count: true,
			Read: func(s *snapshot, emit gauge.Emit) { emit(float64(s.watches.here.Found)) }},
	}
}

// watchState reads the state of watches.
func (n *Node) watchState() (s watchState) {
	s.all, s.failing = n.Watches.Total()
	for range n.cluster.View().Backlogs() {
		s.backlogs++
	}
	s.here = n.Watches.Counts()
	return s
}
