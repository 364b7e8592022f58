// Package gauge shows what a part knows as metrics that are read when somebody
// asks. What passes, as a request, is counted where it passes and is not this
// package's business.
//
//	gauge.New(func() (*state, bool) { return now(), open }, []gauge.Gauge[*state]{
//		{Desc: gauge.Desc("shoal_ready", "1 when this node answers."),
//			Read: func(s *state, emit gauge.Emit) { emit(gauge.Truth(s.ready)) }},
//	})
package gauge

import "github.com/prometheus/client_golang/prometheus"

// Emit tells one value of a gauge, with a value for each of its labels.
type Emit func(value float64, labels ...string)

// Gauge is one metric over a state S.
type Gauge[S any] struct {
	Desc  *prometheus.Desc
	Count bool // only grows while the process lives: a counter
	Read  func(S, Emit)
}

// Desc names a metric and its labels.
func Desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Truth is 1 for true and 0 for false.
func Truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Set is gauges over one state. It implements prometheus.Collector.
type Set[S any] struct {
	take   func() (S, bool)
	gauges []Gauge[S]
}

// New makes a set. take is called once for each time that the metrics are
// asked for, by any goroutine; with false nothing is shown.
func New[S any](take func() (S, bool), gauges []Gauge[S]) *Set[S] {
	return &Set[S]{take, gauges}
}

// Describe implements prometheus.Collector.
func (s *Set[S]) Describe(out chan<- *prometheus.Desc) {
	for _, g := range s.gauges {
		out <- g.Desc
	}
}

// Collect implements prometheus.Collector.
func (s *Set[S]) Collect(out chan<- prometheus.Metric) {
	state, ok := s.take()
	if !ok {
		return
	}

	for _, g := range s.gauges {
		kind := prometheus.GaugeValue
		if g.Count {
			kind = prometheus.CounterValue
		}
		g.Read(state, func(value float64, labels ...string) {
			// A value with other labels than the gauge has is a mistake of Read,
			// which the test of the page of metrics finds.
			if metric, err := prometheus.NewConstMetric(g.Desc, kind, value, labels...); err == nil {
				out <- metric
			}
		})
	}
}
