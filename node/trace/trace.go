// Package trace reports to an OpenTelemetry collector how long the parts of a search take: the
// request, its plan, each call to another node, and the search there. It is off unless
// OTEL_EXPORTER_OTLP_ENDPOINT names the collector. It never reports what was searched for.
package trace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// flushTime is how long a node that stops waits for the collector.
const flushTime = 3 * time.Second

// Tracer begins spans. nil is one that traces nothing, and costs nothing.
type Tracer struct {
	spans    trace.Tracer
	provider *sdk.TracerProvider
}

// New makes a Tracer by the variables of OpenTelemetry; nil where they name no collector. node is the
// name of this node.
func New(ctx context.Context, lookup func(name string) (string, bool), version, node string, log *slog.Logger) (*Tracer, error) {
	one, _ := lookup("OTEL_EXPORTER_OTLP_ENDPOINT")
	other, _ := lookup("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if one == "" && other == "" {
		return nil, nil
	}
	if protocol, _ := lookup("OTEL_EXPORTER_OTLP_PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL %q: want http/protobuf", protocol)
	}

	// The library reads what else the variables say: headers, certificates, the ratio of samples.
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "shoal"), attribute.String("service.version", version), attribute.String("service.instance.id", node)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces are lost", "err", err) }))
	return Of(sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))), nil
}

// Of returns a Tracer that sends its spans to a provider.
func Of(p *sdk.TracerProvider) *Tracer { return &Tracer{p.Tracer("shoal"), p} }

// Close sends what is left.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// Start begins a span below that of ctx.
func (t *Tracer) Start(ctx context.Context, name string) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	ctx, span := t.spans.Start(ctx, name)
	return ctx, Span{span}
}

// Past records a span that ended now, below that of ctx.
func (t *Tracer) Past(ctx context.Context, name string, began time.Time) {
	if t != nil {
		_, span := t.spans.Start(ctx, name, trace.WithTimestamp(began))
		span.End()
	}
}

// Span is a part of the work. The zero Span does nothing.
type Span struct{ span trace.Span }

// Text adds a text to the span: never what a person wrote.
func (s Span) Text(key, value string) {
	if s.span != nil {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// Number adds a number to the span.
func (s Span) Number(key string, value int) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int(key, value))
	}
}

// End ends the span. It never records the text of an error, which may contain what was searched
// for.
func (s Span) End(err error) {
	if s.span == nil {
		return
	}
	switch {
	case errors.Is(err, context.Canceled):
		s.span.SetStatus(codes.Error, "canceled")
	case err != nil:
		s.span.SetStatus(codes.Error, "failed")
	}
	s.span.End()
}

// parents is the form in which spans travel, that of W3C.
var parents propagation.TraceContext

// Parent names the span of ctx for another node; "" where there is none.
func Parent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	parents.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// Under returns a context below the span that a client or another node names. An unreadable name is
// ignored.
func Under(ctx context.Context, parent string) context.Context {
	if parent == "" {
		return ctx
	}
	return parents.Extract(ctx, propagation.MapCarrier{"traceparent": parent})
}
