package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shoalsearch/shoal/node/trace"
)

// Options configures a server.
type Options struct {
	Listen        string // host:port; port 0 picks one
	MetricsListen string // host:port for /metrics, /livez and /readyz only; "" for none
	DataDir       string // directory of the operator's socket; "" for none
	TLSCert       string // file with the certificate chain for Listen and MetricsListen; "" for plain HTTP
	TLSKey        string // file with the key of TLSCert
	ACME          ACME   // authority of the certificate, in place of TLSCert and TLSKey
	// AllowedHosts are host names by which clients may call the API, besides that of the base
	// URL: host, or host:port. "*" allows any.
	AllowedHosts []string
	// EmbedAncestors are the sites that may embed files, as ParseAncestors returns them. If
	// empty, embedding is off.
	EmbedAncestors []string
	Version        string
	Limits         Limits
	// TrustedProxies are networks of proxies, which connect for many clients. Limits by address
	// do not apply to a proxy, and the client's address is read from its X-Forwarded-For.
	TrustedProxies []netip.Prefix
	Linger         time.Duration         // time from reporting not ready to refusing connections, so that load balancers notice
	Finish         func(context.Context) // called during Linger, which lasts until it returns; nil calls nothing
	Tracer         *trace.Tracer         // nil traces nothing
	Slow           time.Duration         // slower reads are logged; 0 logs none
	Log            *slog.Logger          // nil discards
	Gatherer       prometheus.Gatherer   // has the metrics that /metrics shows; nil shows none
	Registerer     prometheus.Registerer // gets this package's metrics; may be nil
	Now            func() time.Time      // nil means the machine's clock

	tools    http.Handler  // the tool server; nil means package mcp
	patience time.Duration // time for a body's first byte; 0 means bodyPatience
}
