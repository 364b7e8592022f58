package trace

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// Without a collector nothing is made, and nothing is allocated on the way.
func TestTracer_withoutACollectorAllocatesNothing(t *testing.T) {
	tracer, err := New(t.Context(), func(string) (string, bool) { return "", false }, "1", "a", nil)
	if err != nil || tracer != nil {
		t.Fatalf("%v, %v", tracer, err)
	}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		in, span := tracer.Start(ctx, "search")
		span.Number("shards", 7)
		tracer.Past(in, "verify", time.Time{})
		span.End(nil)
		if Parent(in) != "" || Under(in, "") != ctx {
			t.Error("there is a span")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if err := tracer.Close(); err != nil {
		t.Error(err)
	}
}

// A collector gets the spans by HTTP, with no word of an error.
func TestTracer_sendsToACollector(t *testing.T) {
	got := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r.URL.Path + " " + r.Header.Get("Content-Type") + " " + string(body)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment=test-place")
	tracer, err := New(t.Context(), os.LookupEnv, "1.2.3", "node-a", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ctx, span := tracer.Start(Under(t.Context(), parent), "search shards")
	span.Text("node", "n7")
	if here := Parent(ctx); !strings.HasPrefix(here, parent[:35]) || here == parent {
		t.Errorf("the span is %s", here)
	}
	tracer.Past(ctx, "verify", time.Now().Add(-time.Second))
	span.End(errors.New("secret words"))
	if err := tracer.Close(); err != nil {
		t.Fatal(err)
	}
	text := <-got
	for _, want := range []string{"/v1/traces application/x-protobuf", "search shards", "n7", "verify", "shoal", "1.2.3", "service.instance.id", "node-a", "test-place", "failed"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if strings.Contains(text, "secret") {
		t.Errorf("%q has words of an error", text)
	}

	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	if _, err := New(t.Context(), os.LookupEnv, "1", "a", nil); err == nil {
		t.Error("another protocol is taken")
	}
	if got := Under(context.Background(), "nonsense"); Parent(got) != "" {
		t.Error("nonsense is a span")
	}
}
