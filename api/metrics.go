package api

import (
	"bytes"
	"context"
	"log/slog"
	"sort"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// meter has the metrics of this package.
type meter struct {
	duration *prometheus.HistogramVec // from the request's last byte until the answer is ready
	gone     prometheus.Counter
	limited  prometheus.Counter
	panics   prometheus.Counter
	dropped  prometheus.Counter
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

		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "shoal_http_connections_dropped_total",
			Help: "Connections without a request under way that were closed to make room for another one.",
		}),
	}

	if reg != nil {
		reg.MustRegister(m.duration, m.gone, m.limited, m.panics, m.dropped)
	}
	return m
}

// addGauges adds the gauges of open connections and of held memory; without reg it does nothing.
func (m *meter) addGauges(reg prometheus.Registerer, connections, held func() float64) {
	if reg == nil {
		return
	}
	reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "shoal_http_connections", Help: "Open connections to the API."}, connections),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "shoal_http_held_bytes", Help: "Bytes of request bodies and of answers that wait to be written."}, held),
	)
}

// addCertificateGauge adds the gauge of the certificate's expiry; without reg it does nothing.
func (m *meter) addCertificateGauge(reg prometheus.Registerer, ends func() time.Time) {
	if reg != nil {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "shoal_certificate_expires_timestamp_seconds",
			Help: "When the certificate of the API ends; absent where it speaks plain HTTP.",
		}, func() float64 { return float64(ends().Unix()) }))
	}
}

// observe counts an answered request and its duration. Unknown methods count as "other", so that
// clients cannot create time series.
func (m *meter) observe(route, method string, status int, took time.Duration) {
	switch method {
	case "GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH":
	default:
		method = "other"
	}
	m.duration.WithLabelValues(method, route, strconv.Itoa(status)).Observe(took.Seconds())
}

// metricsRoutes handles GET /metrics.
type metricsRoutes struct {
	gatherer prometheus.Gatherer // nil shows no metrics
	log      *slog.Logger
}

func (a *metricsRoutes) routes() []route {
	return []route{
		newRoute("GET", "/metrics", accessMetrics, 0, a.show),
	}
}

// show handles GET /metrics, in the text format of Prometheus.
func (a *metricsRoutes) show(_ context.Context, c *call) error {
	var families []*dto.MetricFamily
	var gatherErr error
	if a.gatherer != nil {
		families, gatherErr = a.gatherer.Gather()
	}

	if gatherErr != nil { // show the metrics that were gathered
		a.log.Warn("gather metrics", "error", gatherErr)
	}

	// Sort the metrics, so that two answers can be compared.
	sort.Slice(families, func(i, k int) bool { return families[i].GetName() < families[k].GetName() })
	format := expfmt.NewFormat(expfmt.TypeTextPlain)

	var b bytes.Buffer
	enc := expfmt.NewEncoder(&b, format)
	for _, family := range families {
		if err := enc.Encode(family); err != nil {
			return err
		}
	}

	c.mime, c.body = string(format), b.Bytes()
	return nil
}
