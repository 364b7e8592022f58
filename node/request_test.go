package node_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/trace"
)

// logged is a log that a test reads while a node writes it.
type logged struct {
	mu  sync.Mutex // guards the field below
	out bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// The id of a search reaches the other nodes: the node that searches for another logs it too.
func TestRequestID_isLoggedByTheNodeThatSearches(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"main.go": "package main // whale\n"})
	logs := map[string]*logged{}
	f := nodetest.StartFleet(t, 2, nodetest.Config{File: unpolled(dir), Edit: func(o *node.Options) {
		log := new(logged)
		logs[o.Dir] = log
		o.Replicas, o.Slow, o.Log = 1, time.Nanosecond, slog.New(slog.NewTextHandler(log, nil))
	}})
	f.Nodes[0].WaitIndexed(1)

	for i, n := range f.Nodes {
		id, ctx := fmt.Sprintf("id-of-%d", i), t.Context()
		n.Wait("the file", func() error {
			res, err := n.Search.Search(call.WithRequest(ctx, id), catalog.Operator(), search.Request{Query: "whale", Matches: 1})
			if err == nil && len(res.Files) != 1 {
				err = fmt.Errorf("%d files", len(res.Files))
			}
			return err
		})
	}

	// If one node has the file, it logs both.
	holder := f.Nodes[0].View().Holders(catalog.MirrorKey(1))
	var both string
	for _, n := range f.Nodes {
		if len(holder) == 1 && n.ID() == holder[0] {
			both = logs[n.Dir].String()
		}
	}
	for i := range f.Nodes {
		if line := fmt.Sprintf(`msg="slow search of shards" request=id-of-%d `, i); !strings.Contains(both, line) {
			t.Errorf("the log of the node with the file (%q) lacks %s:\n%s", holder, line, both)
		}
	}
}

// The spans of one search are of one trace, whichever node they are of.
func TestTracing_spansOfTwoNodesAreInOneTrace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"main.go": "package main // whale\n"})
	spans := map[string]*tracetest.SpanRecorder{}
	f := nodetest.StartFleet(t, 2, nodetest.Config{File: unpolled(dir), Edit: func(o *node.Options) {
		recorder := tracetest.NewSpanRecorder()
		spans[o.Dir] = recorder
		o.Replicas, o.Tracer = 1, trace.Of(sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder)))
	}})
	f.Nodes[0].WaitIndexed(1)
	asks, holds := f.Nodes[0], f.Nodes[1]
	asks.Wait("one holder", func() error {
		if on := asks.View().Holders(catalog.MirrorKey(1)); len(on) != 1 {
			return fmt.Errorf("it is on %q", on)
		}
		return nil
	})
	if asks.View().Holders(catalog.MirrorKey(1))[0] == asks.ID() {
		asks, holds = holds, asks
	}

	// Below the span of a client.
	const id = "0af7651916cd43dd8448eb211c80319c"
	ctx := trace.Under(t.Context(), "00-"+id+"-b7ad6b7169203331-01")
	asks.Wait("the file", func() error {
		res, err := asks.Search.Search(ctx, catalog.Operator(), search.Request{Query: "whale", Matches: 1})
		if err == nil && len(res.Files) != 1 {
			err = fmt.Errorf("%d files", len(res.Files))
		}
		return err
	})
	for n, want := range map[*nodetest.Node][]string{asks: {"plan", "ask a node"}, holds: {"search shards", "verify"}} {
		var names []string
		for _, s := range spans[n.Dir].Ended() {
			if s.SpanContext().TraceID().String() == id {
				names = append(names, s.Name())
			}
			for _, a := range s.Attributes() {
				if strings.Contains(a.Value.String(), "whale") {
					t.Errorf("%s tells what was searched for", s.Name())
				}
			}
		}
		for _, name := range want {
			if !slices.Contains(names, name) {
				t.Errorf("the spans %q lack %q", names, name)
			}
		}
	}
}
