// Package gauge provides metrics that are computed from a state when they are scraped. Events such
// as requests are counted elsewhere, where they happen.
//
//	gauge.New(func() (*state, bool) { return now(), open }, []gauge.Gauge[*state]{
//		{Desc: gauge.Desc("shoal_ready", "1 when this node answers."),
//			Read: func(s *state, emit gauge.Emit) { emit(gauge.Truth(s.ready)) }},
//	})
package gauge

import "github.com/prometheus/client_golang/prometheus"

// Emit reports one value of a gauge, with the values of its labels.
type Emit func(value float64, labels ...string)

// Gauge is a metric that is computed from a state S.
type Gauge[S any] struct {
	Desc  *prometheus.Desc
	Count bool // a counter: it only grows while the process lives
	Read  func(S, Emit)
}

// Desc returns the name, help and labels of a metric.
func Desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Truth returns 1 for true and 0 for false.
func Truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Set is a group of gauges over one state. It implements prometheus.Collector.
type Set[S any] struct {
	take   func() (S, bool)
	gauges []Gauge[S]
}

// New returns a set. Each scrape calls take once, on any goroutine. If take returns false, the
// scrape has no values.
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
			// Skip a value with wrong labels: that is a bug of Read, which the test of the metrics
			// page finds.
			if metric, err := prometheus.NewConstMetric(g.Desc, kind, value, labels...); err == nil {
				out <- metric
			}
		})
	}
}
