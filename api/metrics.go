package api

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// meter is the metrics of this package.
type meter struct {
	duration *prometheus.HistogramVec // from the request's last byte to the answer's being ready
	gone     prometheus.Counter
	limited  prometheus.Counter
	panics   prometheus.Counter
	dropped  *prometheus.CounterVec
}

func newMeter(reg prometheus.Registerer) *meter {
	m := &meter{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "shoal_http_request_duration_seconds",
			Help:    "Time from the last byte of a request to its answer, by route, method and status.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"method", "route", "status"}),
		gone:    prometheus.NewCounter(prometheus.CounterOpts{Name: "shoal_http_clients_gone_total", Help: "Requests stopped because their client left."}),
		limited: prometheus.NewCounter(prometheus.CounterOpts{Name: "shoal_http_limited_total", Help: "Requests refused with 429."}),
		panics:  prometheus.NewCounter(prometheus.CounterOpts{Name: "shoal_http_panics_total", Help: "Panics caught while answering: each is a defect."}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shoal_http_connections_dropped_total",
			Help: "Connections closed because there were too many: waited (made room for another), full, address (too many of one address).",
		}, []string{"reason"}),
	}
	for _, reason := range []string{dropWaiting, dropFull, dropAddress} {
		m.dropped.WithLabelValues(reason)
	}
	if reg != nil {
		reg.MustRegister(m.duration, m.gone, m.limited, m.panics, m.dropped)
	}
	return m
}

// watch shows how many connections are open and how much of the memory for
// bodies and answers is held.
func (m *meter) watch(reg prometheus.Registerer, connections, held func() float64) {
	if reg == nil {
		return
	}
	reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "shoal_http_connections", Help: "Open connections to the API."}, connections),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "shoal_http_held_bytes", Help: "Bytes of request bodies and of answers that wait to be written."}, held),
	)
}

// done counts an answered request. Methods come from a closed set, so that a
// client cannot make series.
func (m *meter) done(route, method string, status int, took time.Duration) {
	switch method {
	case "GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH":
	default:
		method = "other"
	}
	m.duration.WithLabelValues(method, route, strconv.Itoa(status)).Observe(took.Seconds())
}
